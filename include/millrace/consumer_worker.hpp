#pragma once

#include <millrace/dead_letters.hpp>
#include <millrace/error.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/export.hpp>
#include <millrace/handler.hpp>
#include <millrace/observer.hpp>
#include <millrace/stream_id.hpp>
#include <millrace/stream_options.hpp>
#include <millrace/worker_stats.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

namespace detail {
class Worker;
}

/// What to do when the group is gone while a worker runs.
enum class OnMissingGroup : std::uint8_t {
  kRecreate,  ///< Make it again, where nothing is lost, and tell the observer.
  kFail,      ///< End in WorkerState::kFailed.
};

/// How a worker works. Checked when the worker is made: InvalidArgument names the option, the value
/// and the rule.
struct WorkerOptions {
  std::string group{};  ///< Must be given.
  /// The same at each start, and unique among the workers that run: of two with one name the newer
  /// goes on, and the older ends in WorkerState::kFailed. Empty: `<host>-<pid>-<8 random hex
  /// digits>`.
  std::string consumer{};
  /// Must be given: where the group starts if it has to be made. The stream is made as well.
  std::optional<GroupStart> group_start{};
  /// Handler calls at once, 1 to 1,000. With 1 the thread that reads calls the handler.
  std::size_t concurrency = 1;
  /// Entries that wait for a handler at most, 1 to 10,000; a read asks for as many as there is
  /// room.
  std::size_t prefetch = 16;
  /// Bytes of payload that are held before reading stops, more than 0. A soft bound: one reply can
  /// overshoot it. What waits behind a retry of its `key` is held without its payload.
  std::size_t prefetch_bytes = std::size_t{64} << 20;
  /// How long a read waits on the server, more than 0. None: 2 s or a quarter of `min_idle`,
  /// whichever is less; a longer one is refused.
  std::optional<std::chrono::milliseconds> block{};
  /// How long a pending entry must have been idle before it is taken over, more than 0. The same in
  /// every worker of the group: another one fails to start. None: the stream's `claim_min_idle`.
  std::optional<std::chrono::milliseconds> min_idle{};
  /// How often the leases of held entries are renewed: more than 0 and at most half of `min_idle`.
  /// None: a third of it.
  std::optional<std::chrono::milliseconds> lease_renew_every{};
  /// Time between full sweeps for idle pending entries, with jitter; a small page is looked at once
  /// a `block` besides. 0: never by itself, see reap_idle_pending().
  std::chrono::milliseconds reap_every{15'000};
  /// Starts of the handler for one entry, then it becomes a dead letter; at least 2.
  std::uint64_t max_deliveries = 5;
  /// The pause before the first retry of an entry, more than 0. It doubles with each attempt, with
  /// jitter, up to `min_idle`.
  std::chrono::milliseconds retry_backoff{1'000};
  DeadLetterOptions dead_letter{};
  OnMissingGroup on_missing_group = OnMissingGroup::kRecreate;
  /// Pauses between attempts to connect grow from the first to the second, with full jitter. A
  /// worker tries for ever.
  std::chrono::milliseconds reconnect_min{100}, reconnect_max{5'000};
  /// Entries for which it returns the same are handled one after another, in the order of the
  /// stream, within this worker; a retry holds back its own key alone. Called by those who read or
  /// reap; one that throws stands for no key. None: no order.
  std::function<std::string(const Entry&)> key{};
  std::shared_ptr<Observer> observer{};  ///< Hears what happens. None: nobody does.
  /// How long one handler call may take, more than 0: then Delivery::stop fires, and the entry's
  /// lease ends, so that a peer takes it. None: as long as it likes, the lease is renewed.
  std::optional<std::chrono::milliseconds> max_handler_time{};
  /// Measures times: WorkerStats::handler_time, age and last_completion. Counters are always kept.
  bool metrics = true;
};

/// What stop() did.
struct StopReport {
  std::size_t finished = 0;  ///< Handler calls that returned after stop() was called.
  std::vector<StreamId>
      released{};  ///< Delivered but not started: given back, a peer has them soon.
  std::vector<StreamId> abandoned{};  ///< Their handlers still ran at the deadline.
};

/// What reap_idle_pending() did.
struct ReapReport {
  std::size_t claimed = 0;              ///< Entries taken over.
  std::size_t processed = 0;            ///< Of these, handled and acknowledged.
  std::vector<StreamId> deleted_ids{};  ///< Pending, but no longer in the stream: dropped.
  std::optional<Error> error{};         ///< Why it ended early. What came before it is counted.
};

/// Reads a stream as one consumer of a group, calls a handler for each entry, acknowledges what
/// succeeded, tries again what failed, puts aside what fails for good, and takes over what other
/// consumers, or itself before a crash, left pending.
///
/// Guarantee: at least once. An entry leaves the pending list only after its handler succeeded, its
/// dead letter was written, or the server said that the entry no longer exists. Never two handler
/// calls at once for one entry in one worker; across workers only if a lease could not be renewed
/// for `min_idle`, and then the one that lost it hears of it by Delivery::stop.
///
/// Threads: one that reads, one that keeps acknowledgements and leases, and with a `concurrency` of
/// more than 1 as many that call the handler. They end in stop(), or in the destructor, never by an
/// exception: those of a handler mean retry(), those of an Observer are swallowed. All member
/// functions may be called from any thread. In a child after fork() they throw UnsupportedError,
/// but for request_stop() and the destructor, which do nothing there.
///
///     ConsumerWorker worker{orders, {.group = "billing", .group_start = GroupStart::beginning()},
///                           [](const Delivery& delivery) { charge(delivery.entry); }};
///     worker.start();
class MILLRACE_EXPORT ConsumerWorker {
 public:
  /// Checks the options and does no I/O.
  ConsumerWorker(const EventStream& stream, const WorkerOptions& options, Handler handler);
  ConsumerWorker(const EventStream& stream, const WorkerOptions& options, BatchHandler handler);
  ConsumerWorker(const ConsumerWorker&) = delete;
  ConsumerWorker& operator=(const ConsumerWorker&) = delete;
  /// Stops, and waits for handlers that run (saying so once a minute), and for nothing else.
  ~ConsumerWorker();

  /// Starts the threads; once. What the server thinks of it shows later: see wait_ready(). Throws
  /// std::system_error where a thread cannot be had; the worker has failed then.
  void start();

  /// Ends reading at once, lets running handlers finish for up to `drain`, gives back what was not
  /// started, and flushes acknowledgements. At the deadline `Delivery::stop` fires and stop()
  /// returns with the abandoned ids. A negative `drain` counts as 0. Stopping again reports nothing
  /// new. Refused from a handler and from an Observer that is told on one of the worker's own
  /// threads: it would wait for itself.
  StopReport stop(std::chrono::milliseconds drain = std::chrono::seconds{30});

  /// Asks for the same and does not wait; for handlers and signal-driven loops.
  void request_stop() noexcept;

  /// Stops reading and taking over. What was delivered is still handled; a read that waits on the
  /// server may still bring entries, which are.
  void pause();

  /// Reads and takes over again, where it had stopped. Nothing without a pause().
  void resume();

  /// Takes over and handles, now and on the caller's thread, what has been idle for `min_idle`.
  /// Safe beside the loop: its calls of the handler count towards `concurrency`. Works without
  /// start(): then leases are not renewed, so what it takes must be handled within `min_idle`.
  /// Refused from a handler, from an Observer as stop() is, and after stop.
  ReapReport reap_idle_pending();

  /// Waits until the worker reads, for up to `timeout`; false if it does not by then, or has ended.
  /// A negative `timeout` counts as 0.
  bool wait_ready(std::chrono::milliseconds timeout);

  WorkerState state() const;             ///< As of now; it may have changed when this returns.
  std::optional<Error> failure() const;  ///< Why state() is kFailed.
  WorkerStats stats() const;             ///< No I/O; each number is right, all together may not be.

  /// True in WorkerState::kRunning: it reads, and the server answers. No I/O.
  bool is_ready() const;

  /// False if the process should be ended, since the worker goes on no more: it is in
  /// WorkerState::kFailed; or work has waited for longer than `within` and in that time no handler
  /// call started or ended. Work is an entry that a handler has, or (while the server is there)
  /// that one could have; not a retry that is not due, nor an acknowledgement. So a worker without
  /// work, and one whose server is away, is alive, however long that lasts: a new process would not
  /// do better. `within` must be longer than a handler call takes. No I/O.
  bool is_alive(std::chrono::milliseconds within) const;

  const std::string& consumer() const noexcept;  ///< The name it reads by.

 private:
  friend class WorkerGroup;
  std::unique_ptr<detail::Worker> worker_;
};

}  // namespace millrace

#pragma once

#include <millrace/entry.hpp>
#include <millrace/error.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/export.hpp>
#include <millrace/observer.hpp>
#include <millrace/stream_id.hpp>
#include <millrace/stream_options.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {

namespace detail {
class Worker;
}

/// What a handler says of an entry. A handler that returns nothing says ack().
class [[nodiscard]] Verdict {
 public:
  /// Done: acknowledge it.
  static Verdict ack() noexcept { return Verdict{Kind::kAck}; }
  /// It failed: it stays pending and is handled again when it has been idle for `min_idle`, by this
  /// worker or a peer. An exception that leaves the handler means the same.
  static Verdict retry() noexcept { return Verdict{Kind::kRetry}; }
  /// Not by us, and no failure: it stays pending and comes back as after retry().
  static Verdict leave_pending() noexcept { return Verdict{Kind::kLeavePending}; }

  enum class Kind : std::uint8_t { kAck, kRetry, kLeavePending };
  Kind kind() const noexcept { return kind_; }

  friend bool operator==(const Verdict&, const Verdict&) = default;

 private:
  explicit Verdict(Kind kind) noexcept : kind_{kind} {}
  Kind kind_;
};

/// One entry, handed to a handler.
///
/// Copyable, but its entry and strings are views: they live until the handler returns. Keep
/// `entry.to_owned()` for longer.
struct Delivery {
  Entry entry{};
  std::uint64_t attempt = 1;  ///< Starts of the handler for this entry, this one included.
  bool reclaimed = false;     ///< It was pending before: after a retry, a crash or a lost reply.
  /// Fires when the handler should give up: at the deadline of ConsumerWorker::stop.
  std::stop_token stop{};
  std::string_view stream{}, group{}, consumer{};
};

/// What a ConsumerWorker calls for each entry: any callable on `const Delivery&` that returns
/// exactly Verdict, or nothing (then a return acknowledges). Anything else does not compile, so a
/// forgotten `co_await`, or a bool that means the opposite, cannot pass for success. Move-only.
///
/// Throws InvalidArgument for an empty std::function or a null pointer.
class Handler {
 public:
  template <typename F>
  requires(!std::same_as<std::remove_cvref_t<F>, Handler> &&
           std::invocable<std::decay_t<F>&, const Delivery&> &&
           (std::same_as<std::invoke_result_t<std::decay_t<F>&, const Delivery&>, Verdict> ||
            std::is_void_v<std::invoke_result_t<std::decay_t<F>&, const Delivery&>>))
      Handler(
          F&& callable) {  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
    using Plain = std::remove_reference_t<F>;
    if constexpr (requires { callable == nullptr; } && !std::is_function_v<Plain>) {
      if (callable == nullptr) throw InvalidArgument{"the handler is an empty function"};
    }
    callable_ = std::make_unique<Model<std::decay_t<F>>>(std::forward<F>(callable));
  }

  Verdict operator()(const Delivery& delivery) { return callable_->call(delivery); }

 private:
  struct Callable {
    virtual ~Callable() = default;
    virtual Verdict call(const Delivery& delivery) = 0;
  };

  template <typename F>
  struct Model final : Callable {
    template <typename G>
    explicit Model(G&& callable) : function{std::forward<G>(callable)} {}

    Verdict call(const Delivery& delivery) override {
      if constexpr (std::is_void_v<std::invoke_result_t<F&, const Delivery&>>) {
        std::invoke(function, delivery);
        return Verdict::ack();
      } else {
        return std::invoke(function, delivery);
      }
    }

    F function;
  };

  std::unique_ptr<Callable> callable_;
};

/// What to do when the group is gone while a worker runs.
enum class OnMissingGroup : std::uint8_t {
  kRecreate,  ///< Make it again, where nothing is lost, and tell the observer.
  kFail,      ///< End in WorkerState::kFailed.
};

/// How a worker works. Checked when the worker is made: InvalidArgument names the option, the value
/// and the rule.
struct WorkerOptions {
  std::string group{};  ///< Must be given.
  /// Must be unique among the workers that run. Empty: `<host>-<pid>-<8 random hex digits>`.
  std::string consumer{};
  /// Must be given: where the group starts if it has to be made. The stream is made as well.
  std::optional<GroupStart> group_start{};
  std::size_t prefetch = 16;  ///< Entries a read asks for, and so the most that wait; 1 to 10,000.
  /// How long a read waits on the server, more than 0. None: 2 s or a quarter of `min_idle`,
  /// whichever is less; a longer one is refused.
  std::optional<std::chrono::milliseconds> block{};
  /// How long a pending entry must have been idle before it is taken over, more than 0. The same in
  /// every worker of the group. None: the stream's `claim_min_idle`.
  std::optional<std::chrono::milliseconds> min_idle{};
  /// Time between full sweeps for idle pending entries, with jitter; a small page is looked at once
  /// a `block` besides. 0: never by itself, see reap_idle_pending().
  std::chrono::milliseconds reap_every{15'000};
  OnMissingGroup on_missing_group = OnMissingGroup::kRecreate;
  /// Pauses between attempts to connect grow from the first to the second, with full jitter. A
  /// worker tries for ever.
  std::chrono::milliseconds reconnect_min{100}, reconnect_max{5'000};
  std::shared_ptr<Observer> observer{};  ///< Hears what happens. None: nobody does.
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

/// Counters since the worker was made, and gauges.
struct WorkerStats {
  std::uint64_t delivered = 0;    ///< Entries that came, those taken over included.
  std::uint64_t succeeded = 0;    ///< Handler calls that ended in ack.
  std::uint64_t failed = 0;       ///< Handler calls that ended in retry, or threw.
  std::uint64_t reclaimed = 0;    ///< Entries taken over: idle ones of anybody, and own orphans.
  std::uint64_t released = 0;     ///< Entries given back at the stop.
  std::uint64_t leases_lost = 0;  ///< Found to be a peer's: before a start, or by an XACK of 0.
  std::uint64_t trimmed = 0;      ///< Pending entries whose payload was gone.
  std::uint64_t reconnects = 0;   ///< Connections made after the first.
  std::size_t in_flight = 0;      ///< Entries held now: queued, running, or not yet acknowledged.
};

/// Reads a stream as one consumer of a group, calls a handler for each entry, acknowledges what
/// succeeded, and takes over what other consumers, or itself before a crash, left pending.
///
/// Guarantee: at least once. An entry leaves the pending list only after its handler succeeded, or
/// when the server said that the entry no longer exists. Never two handler calls at once for one
/// entry in one worker.
///
/// Threads: one that reads and calls the handler, and one that acknowledges. They end in stop(), or
/// in the destructor. Neither ends by an exception: those of a handler mean retry(), those of an
/// Observer are swallowed. All member functions may be called from any thread.
///
///     ConsumerWorker worker{orders, {.group = "billing", .group_start = GroupStart::beginning()},
///                           [](const Delivery& delivery) { charge(delivery.entry); }};
///     worker.start();
class MILLRACE_EXPORT ConsumerWorker {
 public:
  /// Checks the options and does no I/O.
  ConsumerWorker(const EventStream& stream, const WorkerOptions& options, Handler handler);
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
  /// Safe beside the loop: the handler is called by one of the two at a time. Works without
  /// start(). Refused from a handler, from an Observer as stop() is, and after stop.
  ReapReport reap_idle_pending();

  /// Waits until the worker reads, for up to `timeout`; false if it does not by then, or has ended.
  /// A negative `timeout` counts as 0.
  bool wait_ready(std::chrono::milliseconds timeout);

  WorkerState state() const;             ///< As of now; it may have changed when this returns.
  std::optional<Error> failure() const;  ///< Why state() is kFailed.
  WorkerStats stats() const;             ///< No I/O; each number is right, all together may not be.
  const std::string& consumer() const noexcept;  ///< The name it reads by.

 private:
  std::unique_ptr<detail::Worker> worker_;
};

}  // namespace millrace

#pragma once

#include <millrace/consumer_worker.hpp>
#include <millrace/error.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/export.hpp>
#include <millrace/handler.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

/// So many ConsumerWorkers of one consumer group in this process, started and stopped as one.
///
/// Each is a consumer of its own, with its own threads and two connections of its own; an entry
/// goes to one of them. To handle more at once in one consumer, see WorkerOptions::concurrency:
/// several workers are for more reads at once, and where a WorkerOptions::key keeps an order, it
/// does so within each of them.
///
/// Where a consumer name is given, they are `<name>-1` to `<name>-N`, the same at each start: then
/// what one held when the process died is had at once by its successor, and no names pile up. Else
/// each is `<host>-<pid>-<8 random hex digits>`; what was left by names that are no more is taken
/// over, and the names are removed, by those that live. Names must differ between the processes of
/// a group: of two workers with one name the newer goes on, and the older fails.
///
/// A worker that fails leaves its work to the others, which go on: state() is kDegraded then, and
/// failure() says why. Nothing starts it again.
///
/// All member functions may be called from any thread.
///
///     WorkerGroup billing{orders, {.group = "billing", .group_start = GroupStart::beginning()}, 4,
///                         [](const Delivery& delivery) { charge(delivery.entry); }};
///     billing.start();
class MILLRACE_EXPORT WorkerGroup {
 public:
  /// `workers` of them, 1 to 1,000, that all call this handler, from their threads, at once: it
  /// must be safe from any thread. Checks the options and does no I/O; InvalidArgument names the
  /// option, the value and the rule.
  WorkerGroup(const EventStream& stream, const WorkerOptions& options, std::size_t workers,
              Handler handler);
  WorkerGroup(const EventStream& stream, const WorkerOptions& options, std::size_t workers,
              BatchHandler handler);
  /// The same, but each worker has a handler of its own, of those that `make` returns when it is
  /// called here, once for each: for handlers that must not be called by two threads at once (with
  /// a `concurrency` of 1, that is enough).
  WorkerGroup(const EventStream& stream, const WorkerOptions& options, std::size_t workers,
              const std::function<Handler()>& make);
  WorkerGroup(const EventStream& stream, const WorkerOptions& options, std::size_t workers,
              const std::function<BatchHandler()>& make);
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;
  /// Stops all, and waits for handlers that run, as a ConsumerWorker does.
  ~WorkerGroup();

  /// Starts all; once. Throws std::system_error where a thread cannot be had: those that had
  /// started have been stopped then, as by stop().
  void start();

  /// Stops all at once, with one deadline for all: see ConsumerWorker::stop(). The report is that
  /// of all together, its ids in order. Refused from a handler and an Observer of any of them.
  StopReport stop(std::chrono::milliseconds drain = std::chrono::seconds{30});

  /// Asks all for the same and does not wait; for handlers and signal-driven loops.
  void request_stop() noexcept;

  void pause();   ///< All: see ConsumerWorker::pause().
  void resume();  ///< All: see ConsumerWorker::resume().

  /// Takes over and handles what has been idle, in the first worker that has not ended: see
  /// ConsumerWorker::reap_idle_pending(). Refused from a handler of any of them.
  ReapReport reap_idle_pending();

  /// Waits until all read, for up to `timeout`; false if one does not by then, or has ended.
  bool wait_ready(std::chrono::milliseconds timeout);

  /// kFailed or kStopped only if all have ended. While one runs: kDraining if a stop has begun,
  /// else kDegraded if one is, or has failed; else kStarting, kPaused or kRunning, the first that
  /// one of them is in.
  WorkerState state() const;
  std::optional<Error> failure() const;  ///< Of the first of them, in their order, that has failed.
  WorkerStats stats() const;             ///< The sums of all; of no one consumer.

  std::size_t size() const noexcept { return workers_.size(); }
  /// One of them, to look at: `index` is less than size().
  const ConsumerWorker& operator[](std::size_t index) const noexcept { return *workers_[index]; }

 private:
  template <typename Make>
  void add_workers(const EventStream& stream, const WorkerOptions& options, std::size_t workers,
                   Make&& make);
  void refuse_inside(const char* call) const;

  std::vector<std::unique_ptr<ConsumerWorker>> workers_;
  std::atomic<bool> started_{false};
};

}  // namespace millrace

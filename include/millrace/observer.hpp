#pragma once

#include <millrace/error.hpp>
#include <millrace/stream_id.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace {

struct DeadLetter;
struct Delivery;
class Verdict;

/// Where a ConsumerWorker is in its life. One way, but for running, paused and degraded.
enum class WorkerState : std::uint8_t {
  kCreated,   ///< Not started.
  kStarting,  ///< Connecting, making the group, taking its own pending entries.
  kRunning,   ///< Reading.
  kPaused,    ///< Told not to read.
  kDegraded,  ///< Something is wrong with the server or the way to it; trying again.
  kDraining,  ///< Stopping.
  kStopped,   ///< Ended as asked.
  kFailed,    ///< Ended, because no trying again can help; see ConsumerWorker::failure.
};

/// Hears what a ConsumerWorker does: for logs, metrics and traces. Override what matters.
///
/// Called from the worker's threads and from those that call its functions, sometimes at once, and
/// never with a lock held. Be quick: the worker waits. An exception is swallowed. Do not destroy
/// the worker from here. ConsumerWorker::stop() is refused where it would wait for itself, as it is
/// in a handler; ConsumerWorker::request_stop() does not wait.
class Observer {
 public:
  enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  /// A line for people. A fault that repeats is said once a minute, with its count.
  virtual void on_log(LogLevel /*level*/, std::string_view /*line*/) {}

  virtual void on_state(WorkerState /*from*/, WorkerState /*to*/) {}

  /// The reading connection was made.
  virtual void on_connected(std::string_view /*endpoint*/) {}
  /// A connection was lost or could not be made.
  virtual void on_connection_lost(const Error& /*error*/) {}

  /// A handler call that is about to be made.
  class Call {
   public:
    /// Makes it, the first time and on the thread that it was given to. What the handler throws
    /// does not come out of it.
    virtual void operator()() = 0;

   protected:
    Call() = default;
    Call(const Call&) = default;
    Call& operator=(const Call&) = default;
    ~Call() = default;
  };

  /// Around each handler call, on its thread, for what has to be there during it: a trace context.
  /// on_delivery, on_handler_exception and on_verdict of the call come from inside `call()`. The
  /// deliveries are one, or those of a batch. A call that is not made from here is made afterwards;
  /// a second one does nothing.
  ///
  ///     void around_call(std::span<const Delivery> deliveries, Call& call) override {
  ///       const auto span = tracer->StartSpan("process", {}, link_to(deliveries.front().entry));
  ///       const auto scope = tracer->WithActiveSpan(span);
  ///       call();
  ///     }
  virtual void around_call(std::span<const Delivery> /*deliveries*/, Call& call) { call(); }

  /// Right before and right after each handler call, on its thread. The verdict of a deferred one
  /// comes when that is finished, on the thread that does it.
  virtual void on_delivery(const Delivery& /*delivery*/) {}
  virtual void on_verdict(const Delivery& /*delivery*/, const Verdict& /*verdict*/) {}
  /// The handler threw; `what` is the exception's text. on_verdict follows.
  virtual void on_handler_exception(const Delivery& /*delivery*/, std::string_view /*what*/) {}

  /// Acknowledged; `pending` of them were still pending. The others are counted as leases lost, but
  /// for those that were trimmed, acknowledged before, or told of as lost.
  virtual void on_acknowledged(std::span<const StreamId> /*ids*/, std::size_t /*pending*/) {}

  /// Entries taken over, and pending entries that were dropped because their payload is gone.
  virtual void on_reclaimed(std::span<const StreamId> /*ids*/,
                            std::span<const StreamId> /*deleted_ids*/) {}

  /// The dead letter of an entry was written, and the entry acknowledged. Not called for one that a
  /// script wrote while it took over: see the deleted ids of on_reclaimed().
  virtual void on_dead_letter(const DeadLetter& /*letter*/) {}

  /// An entry that we held turned out to be a peer's, or our lease of it ran out: Delivery::stop of
  /// its call has fired.
  virtual void on_lease_lost(StreamId /*id*/) {}

  /// The group is gone, or the stream with it; `error` is what the server said. on_group_recreated
  /// follows, or the worker ends in WorkerState::kFailed: see OnMissingGroup.
  virtual void on_group_lost(const Error& /*error*/) {}

  /// The group was gone and has been made again, to read after `position`. What was appended may be
  /// delivered again; what was in a stream that is gone is lost with it.
  virtual void on_group_recreated(StreamId /*position*/) {}
};

}  // namespace millrace

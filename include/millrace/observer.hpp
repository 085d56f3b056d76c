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

  /// Right before and right after each handler call, on its thread.
  virtual void on_delivery(const Delivery& /*delivery*/) {}
  virtual void on_verdict(const Delivery& /*delivery*/, const Verdict& /*verdict*/) {}
  /// The handler threw; `what` is the exception's text. on_verdict follows.
  virtual void on_handler_exception(const Delivery& /*delivery*/, std::string_view /*what*/) {}

  /// Acknowledged; `pending` of them were still pending (the others are counted as leases lost).
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

  /// The group was gone and has been made again, to read after `position`. What was appended may be
  /// delivered again; what was in a stream that is gone is lost with it.
  virtual void on_group_recreated(StreamId /*position*/) {}
};

}  // namespace millrace

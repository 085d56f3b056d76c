#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "worker/faults.hpp"
#include "worker/reader.hpp"
#include "worker/shared.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>

namespace millrace::detail {

/// What has to happen on time whatever the handler does, on a thread and a connection of its own:
/// acknowledgements that no read takes along, the group's low-water mark, and the end of a read
/// that waits when a stop comes.
///
/// Invariant: after run() nothing of this worker is on its way to the server.
class Keeper {
 public:
  Keeper(const Shared& shared, Reader& reader)
      : shared_{shared},
        reader_{reader},
        backoff_{shared.config.reconnect_min, shared.config.reconnect_max} {}

  /// Until `stop`, and then until reader_ended().
  void run(const std::stop_token& stop);

  /// Something is due at this time. From any thread; cheap if the keeper is up by then anyway.
  void wake(TimePoint by);

  /// The reader has returned: flush, and end. Without a connection at its end there is no consumer
  /// to remove, or no way to the server.
  void reader_ended(bool connected);

 private:
  TimePoint next_due() const;
  void tick();
  void flush_acks();
  void send_acks(Connection& to);
  void end_read();
  void finish();
  Connection& connection(const std::stop_token& stop);
  void note(const Error& error);

  const Shared& shared_;
  Reader& reader_;
  std::stop_token stop_;
  std::unique_ptr<Connection> connection_;
  Backoff backoff_;
  FaultLog faults_;
  bool is_cut_off_ = false;  // The last attempt to reach the server failed.
  TimePoint retry_at_{};
  TimePoint observe_at_{};  // At once: a stop needs the connection as well.

  std::mutex mutex_;
  std::condition_variable_any changed_;
  TimePoint due_ = TimePoint::min();  // When it wakes up by itself; min() while it is awake.
  bool woken_ = false;
  bool reader_ended_ = false;
  bool reader_was_connected_ = false;
};

}  // namespace millrace::detail

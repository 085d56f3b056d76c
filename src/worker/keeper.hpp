#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "worker/faults.hpp"
#include "worker/settling.hpp"
#include "worker/shared.hpp"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// What has to happen on time whatever handlers do, on a thread and a connection of its own:
/// leases, retries and dead letters, acknowledgements that no read takes along, consumers that are
/// no more, and at a stop the end of a read that waits, and giving back what was not started.
///
/// What the user may not do is asked for slowly, and keeps nothing else from being done.
///
/// Invariant: after run() nothing of this worker is on its way to the server. Leases come before
/// all else: whenever it wakes up it first ends those that ran out by the clock, which goes on
/// while the machine is suspended, and it wakes up within kLongestNap after that. Then they are
/// renewed, and what releases and parks entries is the thread that renews them, so that no renewal
/// undoes it.
class Keeper {
 public:
  /// What it asks of the others.
  struct Others {
    std::function<void()> recover;           ///< There are entries that nobody holds.
    std::function<void()> hang_up;           ///< End a read by closing its connection.
    std::function<void()> interrupt;         ///< The same, at once: without a server.
    std::function<void(const Error&)> fail;  ///< Nothing can help: end the worker.
  };

  Keeper(const Shared& shared, Others others)
      : shared_{shared},
        others_{std::move(others)},
        settling_{shared},
        backoff_{shared.config.reconnect_min, shared.config.reconnect_max} {}

  /// Until `stop`, and then until work_ended().
  void run(const std::stop_token& stop);

  /// Something is due at this time. From any thread; cheap if the keeper is up by then anyway.
  void wake(TimePoint by);

  /// No thread reads or handles any more: flush, and end. Without a connection at the end there is
  /// no consumer to remove, or no way to the server.
  void work_ended(bool connected);

  /// Do not wait for deferred calls.
  void abandon();

  /// Given back at the stop. For after run().
  const std::vector<StreamId>& released() const noexcept { return released_; }

 private:
  /// What a server's user may be allowed to do, or not.
  enum class Duty : std::uint8_t { kRenew, kRelease, kSettle, kAcknowledge };
  struct Refusals {
    std::optional<TimePoint> until{};  ///< It was refused the last time: not to be tried before.
    FaultLog faults{};                 ///< Of its own, or one would keep another from being named.
  };

  TimePoint next_due() const;
  /// When something that is due then is done, if the server allowed it the last time.
  TimePoint allowed(Duty duty, TimePoint due) const;
  /// Does it, unless it was refused a short while ago.
  void attempt(Duty duty, FunctionRef<void()> work);
  void refuse(Duty duty, const Error& error);
  void show_refusals();
  Refusals& refusals(Duty duty) { return refusals_.at(static_cast<std::size_t>(duty)); }
  bool is_over() const;
  void tick();
  void expire();
  void renew();
  void note_found(const std::vector<std::pair<Ticket, std::uint64_t>>& asked, std::size_t first,
                  const std::vector<scripts::Holding>& found, TimePoint sent_at);
  void park_again();
  void settle();
  void settle_until(TimePoint until);
  void flush_acks();
  void send_acks();
  void remove_stale_consumers();
  void end_read();
  void break_off_read();
  void give_back_unseen();
  void end_late_read();
  bool unblock(std::uint64_t client);
  void gather_unstarted();
  void bury_trimmed(Work&& work);
  void release();
  void give_back(std::vector<Work> works);
  void finish();
  Connection& connection();
  TimePoint in_time() const;
  Reply eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
             std::span<const std::string_view> args);
  void note(const Error& error);
  void pause(const Error& error);
  void report(FaultLog& faults, const Error& error);
  template <typename Use>
  void with_server(Use&& use);

  const Shared& shared_;
  const Others others_;
  std::stop_token stop_;
  bool is_stopping_ = false;
  std::unique_ptr<Connection> connection_;
  Settling settling_;
  Backoff backoff_;
  FaultLog faults_;
  bool is_cut_off_ = false;       // The last attempt to reach the server failed.
  bool was_interrupted_ = false;  // The stop came while it was about to connect.
  TimePoint retry_at_{};
  bool is_locked_out_ = false;          // The server takes neither this user nor this password.
  std::array<Refusals, 4> refusals_{};  // of each duty
  bool is_hampered_ = false;
  bool is_open_ = false;
  TimePoint renew_at_{};
  TimePoint unblock_at_ = TimePoint::max();  // A read that was not yet there to be ended.
  TimePoint settle_at_{};  // Later than now where the last dead letter was refused.
  TimePoint stale_at_{};
  TimePoint interrupt_at_ = TimePoint::max();  // If the read has not ended by then.
  // What came since then may have come with a reply that nobody has seen.
  std::optional<TimePoint> unseen_since_{};
  std::vector<Work> unstarted_;  // to be given back
  std::vector<StreamId> released_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  TimePoint due_ = TimePoint::min();  // When it wakes up by itself; min() while it is awake.
  bool woken_ = false;
  bool work_ended_ = false;
  bool was_connected_ = false;
  bool abandoned_ = false;
};

}  // namespace millrace::detail

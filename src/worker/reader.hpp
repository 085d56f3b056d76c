#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "worker/acknowledging.hpp"
#include "worker/faults.hpp"
#include "worker/handling.hpp"
#include "worker/page_size.hpp"
#include "worker/shared.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// The loop: connect, make the group, take what is pending for us, then read, and look for what
/// others left idle and for retries that are due in between. Runs on one thread, which handles as
/// well where `concurrency` is 1.
///
/// Invariant: whenever the connection was lost, or a reply with entries may have been, the own
/// pending list is read before anything new is. An entry that is held is never queued again.
class Reader {
 public:
  /// `due` is told when something is to be done on the server that no read takes along.
  /// `fail` is told of what nothing can help against.
  Reader(const Shared& shared, Handling& handling, std::function<void(TimePoint)> due,
         std::function<void(const Error&)> fail);

  /// Until `stop`, or until nothing can help. What is queued then stays in the ledger.
  void run(const std::stop_token& stop);

  /// There are entries pending for us that nobody here holds. From any thread.
  void recover_soon() noexcept { must_recover_.store(true); }

  /// Breaks off what the connection waits for. What its reply would have brought stays pending.
  void interrupt() noexcept { interrupted_.request_stop(); }

  /// Ends a read by closing its connection, once the server has closed it as well. What it brings
  /// until then is taken.
  void hang_up() noexcept { hung_up_.request_stop(); }

  void set_paused(bool paused);

  /// Whether it had a connection at its end, be it one that the stop broke off. For after run().
  bool was_connected() const noexcept { return connection_ != nullptr; }

 private:
  void step();
  void connect();
  void open_group();
  void remake_group();
  void recover();
  void retry_due();
  void reap_if_due();
  void reaping_refused(const Error& error);
  void take_in(scripts::Taken&& taken, TimePoint sent_at);
  void read();
  EntryBatch read_new(Acknowledging& acks, std::size_t room);
  EntryBatch read_in_time(Acknowledging& acks, std::size_t room);
  Milliseconds time_to_block() const;
  scripts::Taken in_page(FunctionRef<scripts::Taken(std::size_t)> ask);
  scripts::Taken retake(std::span<const Pending> pending);
  void step_past_stuck();
  void work_off();
  bool wait_for_room();
  void renew_old_name();
  void renew_place();
  bool wait_while_paused();

  void flush_acks();
  void mend(const Error& error);
  void end_connection(const Error& error);
  void degrade(const Error& error, Milliseconds pause);
  void well();
  void pause_for(Milliseconds pause);
  Reply eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
             std::span<const std::string_view> args);

  const Shared& shared_;
  const WorkerConfig& config_;
  Handling& handling_;
  std::function<void(TimePoint)> due_;
  std::function<void(const Error&)> fail_;
  std::stop_token stop_;
  std::stop_source interrupted_;
  std::stop_source hung_up_;

  std::unique_ptr<Connection> connection_;
  bool group_is_open_ = false;
  bool group_is_missing_ = false;
  std::atomic<bool> must_recover_{true};
  bool probing_ = true;  // The next read does not wait: it is to show whether all is well.
  bool sweeping_ = false;
  // Until then, who had our name before may hold what is pending for us.
  TimePoint recover_from_{};
  std::optional<TimePoint> remade_at_{};

  StreamId cursor_{};
  PageSize page_size_;  // Of recovery, retries and reaping.
  PageSize read_size_;
  std::optional<StreamId> slow_{};  // It did not arrive, although it was asked for alone, once.
  std::optional<Pending> stuck_{};  // Nor did it the second time.
  TimePoint next_page_{};
  TimePoint next_sweep_{};

  Backoff backoff_;
  Backoff remake_backoff_;
  FaultLog faults_;
  FaultLog reaping_faults_;
  std::mt19937_64 random_{std::random_device{}()};

  std::mutex pause_mutex_;
  std::condition_variable_any pause_changed_;
  bool paused_ = false;
};

}  // namespace millrace::detail

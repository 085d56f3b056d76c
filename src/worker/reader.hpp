#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "worker/acknowledging.hpp"
#include "worker/faults.hpp"
#include "worker/handling.hpp"
#include "worker/oversized.hpp"
#include "worker/page_size.hpp"
#include "worker/shared.hpp"

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

/// The loop: connect, make the group, take what is pending for us, then read and handle, and look
/// for what others left idle in between. Runs on one thread.
///
/// Invariant: whenever the connection was lost, or a reply with entries may have been, the own
/// pending list is read before anything new is. An entry that is held is never started again.
class Reader {
 public:
  /// `acks_due` is told when acknowledgements should be sent although no read takes them along.
  Reader(const Shared& shared, Handling& handling, std::function<void(TimePoint)> acks_due);

  /// Until `stop`, or until nothing can help; then gives back what was not started.
  void run(const std::stop_token& stop);

  /// Breaks off what the connection waits for. What its reply would have brought stays pending.
  void interrupt() noexcept { interrupted_.request_stop(); }

  void set_paused(bool paused);

  /// Whether it had a connection at its end, be it one that the stop broke off. For after run().
  bool was_connected() const noexcept { return connection_ != nullptr; }

  /// What was given back. For after run().
  const std::vector<StreamId>& released() const noexcept { return released_; }

 private:
  void step();
  void connect();
  void remake_group();
  void recover();
  using AskForPage = FunctionRef<scripts::Taken(std::size_t, std::span<const StreamId>)>;
  scripts::Taken in_page(AskForPage ask, std::optional<StreamId> alone = {});
  std::optional<StreamId> next_alone();
  void reap_if_due();
  void read();
  EntryBatch read_new(Acknowledging& acks);
  bool wait_while_paused();

  void let_rest_go(std::span<const Work> rest);
  void flush_acks();
  void handle(const std::vector<Work>& batch);
  void mend(const Error& error);
  void end_connection(const Error& error);
  void degrade(const Error& error, Milliseconds pause);
  void well();
  void release_unstarted();
  void pause_for(Milliseconds pause);
  Reply eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
             std::span<const std::string_view> args);

  const Shared& shared_;
  const WorkerConfig& config_;
  Handling& handling_;
  std::function<void(TimePoint)> acks_due_;
  std::stop_token stop_;
  std::stop_source interrupted_;

  std::unique_ptr<Connection> connection_;
  bool group_is_open_ = false;
  bool group_is_missing_ = false;
  bool must_recover_ = true;
  bool remade_since_read_ = false;
  bool probing_ = true;  // The next read does not wait: it is to show whether all is well.

  StreamId cursor_{};
  PageSize page_size_;  // Of recovery and reaping.
  bool page_timed_out_ = false;
  StreamId recovered_to_{};  // 0-0 but between the pages of a recovery.
  Oversized oversized_;
  bool sweeping_ = false;
  TimePoint next_page_{};
  TimePoint next_sweep_{};

  Backoff backoff_;
  FaultLog faults_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<scripts::Hold> unstarted_;
  std::vector<StreamId> released_;

  std::mutex pause_mutex_;
  std::condition_variable_any pause_changed_;
  bool paused_ = false;
};

}  // namespace millrace::detail

#pragma once

#include <millrace/consumer_worker.hpp>

#include "core/clock.hpp"
#include "net/process.hpp"
#include "worker/config.hpp"
#include "worker/events.hpp"
#include "worker/group.hpp"
#include "worker/handling.hpp"
#include "worker/keeper.hpp"
#include "worker/ledger.hpp"
#include "worker/page_size.hpp"
#include "worker/read_gate.hpp"
#include "worker/reader.hpp"
#include "worker/shared.hpp"
#include "worker/stats.hpp"
#include "worker/status.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

namespace millrace::detail {

/// What a ConsumerWorker is: its parts, its threads, and their start and end.
///
/// Invariant: the keeper's thread outlives those that read and handle. Threads are started once and
/// joined, never detached; `lifecycle_` orders start, stop and the end, and no callback runs with
/// it held.
class Worker {
 public:
  Worker(const EventStream& stream, const WorkerOptions& options, Handling::AnyHandler handler,
         const Clock& clock = Clock::system());
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  void start();
  StopReport stop(Milliseconds drain);
  void request_stop() noexcept;
  void pause();
  void resume();
  ReapReport reap();
  bool wait_ready(Milliseconds timeout) const;

  WorkerState state() const { return status_.state(); }
  std::optional<Error> failure() const { return status_.failure(); }
  bool is_ready() const { return state() == WorkerState::kRunning; }
  bool is_alive(Milliseconds within) const;
  WorkerStats stats() const;
  const std::string& consumer() const noexcept { return config_.consumer; }

  /// False in a child after fork(), which has neither the threads nor, maybe, the locks: there it
  /// is not to be touched.
  bool is_here() const noexcept { return made_in_.is_here(); }
  /// Throws UnsupportedError there.
  void check_process() const;
  /// The end of one that is not to be touched: only the end of the process gives its memory back.
  static void leave_behind(std::unique_ptr<Worker> worker);

  /// Throws InvalidArgument on a thread that is at work for this worker: `call` would wait for
  /// itself there.
  void refuse_inside(const char* call) const;

 private:
  /// A reap_idle_pending() that runs: the end waits for it.
  class Reaping {
   public:
    explicit Reaping(Worker& worker);
    Reaping(const Reaping&) = delete;
    Reaping& operator=(const Reaping&) = delete;
    ~Reaping();

   private:
    Worker& worker_;
  };

  void read_until_stopped();
  void handle_until_stopped();
  void keep_until_done();
  void start_threads();
  void thread_ended();
  void fail(const Error& error);
  bool wait_until_ended(TimePoint deadline);
  void end_without_threads(bool reaped);
  void join();
  void reap_page(ReapReport& report, StreamId& cursor);
  scripts::Taken take_page(StreamId cursor);
  void acknowledge(ReapReport& report, AckBatch& done);
  bool has_keeper();
  void note_reaped();
  void settle_without_keeper();
  void give_back(const std::vector<Work>& unstarted);

  const HomeProcess made_in_;
  const EventStream stream_;
  const WorkerConfig config_;
  const Clock& clock_;
  const Events events_;
  Ledger ledger_{{.prefetch = config_.prefetch,
                  .prefetch_bytes = config_.prefetch_bytes,
                  .min_idle = config_.min_idle}};
  Counters counters_;
  Status status_{events_};
  Group group_{config_};
  ReadGate gate_;
  const Shared shared_;
  Handling handling_;
  Reader reader_;
  Keeper keeper_;
  PageSize reap_page_size_{std::min(config_.prefetch, scripts::kMostIds)};  // On demand.
  std::stop_source stop_;

  std::mutex lifecycle_;
  std::condition_variable ended_changed_;
  bool started_ = false;
  int reaping_ = 0;
  bool reaped_ = false;  // The server may have made our consumer for it.
  std::vector<StreamId> released_by_reaping_;
  std::size_t working_ = 0;  // threads that read or handle
  bool ending_ = false;      // Without threads: one of those who wait does their last work.
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace millrace::detail

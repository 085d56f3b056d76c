#include "worker_test.hpp"

#include <atomic>
#include <mutex>
#include <set>

namespace millrace::test {
namespace {

/// Calls stop() and reap_idle_pending() from whatever it is told of, and notes where that was
/// refused and where not.
class Meddling : public Observer {
 public:
  void on_log(LogLevel /*level*/, std::string_view /*line*/) override { meddle("on_log"); }
  void on_state(WorkerState /*from*/, WorkerState to) override {
    meddle(to == WorkerState::kStarting ? "on_state, in start()" : "on_state");
  }
  void on_connected(std::string_view /*endpoint*/) override { meddle("on_connected"); }
  void on_connection_lost(const Error& /*error*/) override { meddle("on_connection_lost"); }
  void on_delivery(const Delivery& /*delivery*/) override { meddle("on_delivery"); }
  void on_acknowledged(std::span<const StreamId> /*ids*/, std::size_t /*pending*/) override {
    meddle("on_acknowledged");
  }
  void on_reclaimed(std::span<const StreamId> /*ids*/,
                    std::span<const StreamId> /*deleted_ids*/) override {
    meddle("on_reclaimed");
  }

  void meddle_with(ConsumerWorker* worker) { worker_ = worker; }
  std::set<std::string> refused() const {
    const std::lock_guard lock{mutex_};
    return refused_;
  }
  std::set<std::string> allowed() const {
    const std::lock_guard lock{mutex_};
    return allowed_;
  }

 private:
  void meddle(const std::string& where) {
    ConsumerWorker* const worker = worker_;
    if (worker == nullptr) return;
    try {
      worker->stop(0ms);  // so that a worker that lets it through does not take long to say so
      note(allowed_, where + ": stop");
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("request_stop()"));
      note(refused_, where);
    }
    try {
      worker->reap_idle_pending();
      note(allowed_, where + ": reap_idle_pending");
    } catch (const InvalidArgument&) {
      note(refused_, where);
    }
  }
  void note(std::set<std::string>& set, const std::string& where) {
    const std::lock_guard lock{mutex_};
    set.insert(where);
  }

  std::atomic<ConsumerWorker*> worker_{nullptr};
  mutable std::mutex mutex_;
  std::set<std::string> refused_;
  std::set<std::string> allowed_;
};

class WorkerOwnThreads : public WorkerTest {
 protected:
  WorkerOptions watched(const std::shared_ptr<Observer>& observer) {
    WorkerOptions watched = options();
    watched.min_idle = 1h;
    watched.block = 50ms;
    watched.observer = observer;
    return watched;
  }

  const std::shared_ptr<Meddling> meddling_ = std::make_shared<Meddling>();
};

TEST_F(WorkerOwnThreads, AreNoPlaceForAnObserverToWaitForTheWorker) {
  append_ids(2);
  orphan("alice", 1);
  Journal journal;
  ConsumerWorker worker{stream(), watched(meddling_), journal.handler()};
  meddling_->meddle_with(&worker);
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}}));
  // A server that is away is said on a line, and changes the state.
  server().stop();
  forget_raw();
  const std::set<std::string> all{
      "on_log",      "on_state",           "on_connected", "on_state, in start()",
      "on_delivery", "on_connection_lost", "on_reclaimed", "on_acknowledged"};
  EXPECT_TRUE(wait_until([&] { return meddling_->refused() == all; }))
      << ::testing::PrintToString(meddling_->refused());
  EXPECT_EQ(meddling_->allowed(), std::set<std::string>{});
  meddling_->meddle_with(nullptr);
}

TEST_F(WorkerOwnThreads, AreThoseThatReapAsWell) {
  append_ids(1);
  orphan("bob");
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "JUSTID");
  ConsumerWorker worker{stream(), watched(meddling_), [](const Delivery&) {}};
  meddling_->meddle_with(&worker);
  EXPECT_EQ(worker.reap_idle_pending().processed, 1U);
  EXPECT_EQ(meddling_->refused(),
            (std::set<std::string>{"on_acknowledged", "on_delivery", "on_reclaimed"}));
  EXPECT_EQ(meddling_->allowed(), std::set<std::string>{});
  meddling_->meddle_with(nullptr);
}

/// Asks for the stop as soon as the worker runs.
class Asking : public Observer {
 public:
  void on_state(WorkerState /*from*/, WorkerState to) override {
    if (to == WorkerState::kRunning) worker.load()->request_stop();
  }
  std::atomic<ConsumerWorker*> worker{nullptr};
};

TEST_F(WorkerOwnThreads, MayAskForTheStop) {
  const auto asking = std::make_shared<Asking>();
  ConsumerWorker worker{stream(), watched(asking), [](const Delivery&) {}};
  asking->worker = &worker;
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kStopped; }));
}

}  // namespace
}  // namespace millrace::test

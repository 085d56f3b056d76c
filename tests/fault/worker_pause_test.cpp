#include "worker_test.hpp"

#include <stdexcept>

namespace millrace::test {
namespace {

class WorkerPause : public WorkerTest {
 protected:
  WorkerOptions soon() {
    WorkerOptions soon = options();
    soon.min_idle = 1h;
    soon.block = 20ms;
    return soon;
  }
  [[nodiscard]] static bool is(const ConsumerWorker& worker, WorkerState state) {
    return wait_until([&] { return worker.state() == state; });
  }
};

TEST_F(WorkerPause, ReadsNothingUntilItIsOver) {
  Journal journal;
  ConsumerWorker worker{stream(), soon(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.pause();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  EXPECT_FALSE(worker.wait_ready(1ms));

  const auto reads = calls_of("xreadgroup");
  const Ids ids = append_ids(3);
  EXPECT_EQ(calls_of("xreadgroup"), reads);
  EXPECT_EQ(pending(), 0);
  worker.resume();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(is(worker, WorkerState::kRunning));
  EXPECT_TRUE(worker.wait_ready(kGenerous));
}

TEST_F(WorkerPause, IsSeenAtOnceByWhoWaitsForANegativeTime) {
  ConsumerWorker worker{stream(), soon(), [](const Delivery&) {}};
  EXPECT_FALSE(worker.wait_ready(-1h));
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  EXPECT_TRUE(worker.wait_ready(-1h)) << "it reads already";
  worker.pause();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  EXPECT_FALSE(worker.wait_ready(-1h));
}

TEST_F(WorkerPause, StillHandlesWhatWasDelivered) {
  const Ids ids = append_ids(3);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), soon(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  worker.pause();
  gate.open();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_TRUE(is(worker, WorkerState::kPaused));
}

TEST_F(WorkerPause, BeforeTheStartTakesNothingOver) {
  append_ids(2);
  orphan("alice", 1);
  Journal journal;
  ConsumerWorker worker{stream(), soon(), journal.handler()};
  worker.pause();
  worker.start();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  EXPECT_EQ(calls_of("xreadgroup"), 1U) << "our own, that made the orphan";
  EXPECT_EQ(journal.size(), 0U);
  worker.resume();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}}));
}

TEST_F(WorkerPause, MayBeCalledFromAHandler) {
  append_ids(2);
  Journal journal;
  ConsumerWorker* self = nullptr;
  WorkerOptions one = soon();
  one.prefetch = 1;
  ConsumerWorker worker{stream(), one, journal.handler([&](const Delivery&) {
                          self->pause();
                          return Verdict::ack();
                        })};
  self = &worker;
  worker.start();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}}));
  worker.resume();
  EXPECT_TRUE(journal.wait_for(Ids{{2, 0}}));
}

TEST_F(WorkerPause, SurvivesALostConnection) {
  Journal journal;
  ConsumerWorker worker{stream(), soon(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.pause();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  kill_clients();
  const Ids ids = append_ids(3);
  worker.resume();
  EXPECT_TRUE(journal.wait_for(ids));
}

TEST_F(WorkerPause, TwiceIsOnceAndSoIsItsEnd) {
  Journal journal;
  ConsumerWorker worker{stream(), soon(), journal.handler()};
  worker.start();
  worker.resume();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.pause();
  worker.pause();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  worker.resume();
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
}

class WorkerReady : public WorkerTest {};

TEST_F(WorkerReady, IsWhatItIsOnceItReads) {
  ConsumerWorker worker{stream(), options(), [](const Delivery&) {}};
  EXPECT_FALSE(worker.wait_ready(1ms)) << "not started";
  worker.start();
  EXPECT_TRUE(worker.wait_ready(kGenerous));
  EXPECT_EQ(raw()("XINFO", "GROUPS", "s")[0].field("name"), R"("g")");
  EXPECT_TRUE(worker.wait_ready(0ms));
  worker.stop();
  EXPECT_FALSE(worker.wait_ready(kGenerous)) << "and not when it has ended";
}

TEST_F(WorkerReady, MayBeWaitedForFarLongerThanTimeCanBeReckonedWith) {
  ConsumerWorker worker{stream(), options(), [](const Delivery&) {}};
  worker.start();
  EXPECT_TRUE(worker.wait_ready(milliseconds::max()));
  EXPECT_FALSE(worker.stop(milliseconds::max()).finished > 0);
}

class WorkerObserver : public WorkerTest {};

TEST_F(WorkerObserver, HearsTheStatesInTheirOrder) {
  ConsumerWorker worker{stream(), options(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.stop();
  using enum WorkerState;
  EXPECT_EQ(heard().states(),
            (std::vector<std::pair<WorkerState, WorkerState>>{{kCreated, kStarting},
                                                              {kStarting, kRunning},
                                                              {kRunning, kDraining},
                                                              {kDraining, kStopped}}));
}

/// Throws in every hook, and counts how often it was asked.
class ThrowingObserver : public Observer {
 public:
  std::atomic<std::size_t> thrown{0};

  void on_log(LogLevel, std::string_view) override { fail(); }
  void on_state(WorkerState, WorkerState) override { fail(); }
  void on_connected(std::string_view) override { fail(); }
  void on_connection_lost(const Error&) override { fail(); }
  void on_delivery(const Delivery&) override { fail(); }
  void on_verdict(const Delivery&, const Verdict&) override { fail(); }
  void on_handler_exception(const Delivery&, std::string_view) override { fail(); }
  void on_acknowledged(std::span<const StreamId>, std::size_t) override { fail(); }
  void on_reclaimed(std::span<const StreamId>, std::span<const StreamId>) override { fail(); }
  void on_lease_lost(StreamId) override { fail(); }
  void on_group_recreated(StreamId) override { fail(); }

 private:
  void fail() {
    ++thrown;
    throw std::runtime_error{"an observer's own fault"};
  }
};

TEST_F(WorkerObserver, HarmsNothingByThrowingInEveryHook) {
  append_ids(4);
  orphan("alice", 3);
  raw()("XDEL", "s", "3-0");
  const auto observer = std::make_shared<ThrowingObserver>();
  Journal journal;
  WorkerOptions options = this->options();
  options.observer = observer;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            raw()("XCLAIM", "s", "g", "carol", 0, "2-0");
                            throw 42;
                          }
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{4, 0}}));
  EXPECT_EQ(worker.stats().leases_lost, 1U);
  kill_clients();
  ASSERT_TRUE(journal.wait_for(append_ids(1, 4)));
  raw()("DEL", "s");
  ASSERT_TRUE(wait_until([&] { return raw()("EXISTS", "s").integer == 1; }));
  ASSERT_TRUE(journal.wait_for(append_ids(1, 5)));
  worker.stop();
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_EQ(pending(), 0);
  EXPECT_GE(observer->thrown, 20U);
}

TEST_F(WorkerObserver, NeedNotBeThere) {
  WorkerOptions options = this->options();
  options.observer = nullptr;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
}

TEST_F(WorkerObserver, MayAskTheWorkerWhatItIsToldOf) {
  class AskingBack : public Observer {
   public:
    std::atomic<ConsumerWorker*> worker{nullptr};
    void on_state(WorkerState, WorkerState) override { ask(); }
    void on_delivery(const Delivery&) override { ask(); }
    void on_acknowledged(std::span<const StreamId>, std::size_t) override { ask(); }

   private:
    void ask() {
      if (worker == nullptr) return;
      worker.load()->state();
      worker.load()->stats();
      worker.load()->failure();
      worker.load()->wait_ready(0ms);
      worker.load()->resume();
    }
  };
  const auto observer = std::make_shared<AskingBack>();
  WorkerOptions options = this->options();
  options.observer = observer;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler()};
  observer->worker = &worker;
  worker.start();
  EXPECT_TRUE(journal.wait_for(append_ids(20)));
  EXPECT_TRUE(nothing_is_pending()) << "no lock is held where it is told";
  worker.stop();
  observer->worker = nullptr;
}

}  // namespace
}  // namespace millrace::test

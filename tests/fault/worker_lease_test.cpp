#include "worker_test.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

class WorkerLease : public WorkerTest {
 protected:
  /// Long enough for a keeper that shares a slow machine with many others.
  static constexpr milliseconds kMinIdle{1'000};

  WorkerOptions eager(const std::string& name = "alice") {
    WorkerOptions eager = options();
    eager.consumer = name;
    eager.min_idle = kMinIdle;
    eager.block = 50ms;
    eager.reap_every = 20ms;
    return eager;
  }
};

TEST_F(WorkerLease, KeepsAnEntryWhoseHandlerTakesFiveTimesMinIdle) {
  append_ids(1);
  Journal journal;
  const auto slow = [](const Delivery&) {
    std::this_thread::sleep_for(5 * kMinIdle);
    return Verdict::ack();
  };
  ConsumerWorker worker{stream(), eager(), journal.handler(slow)};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(1));
  ConsumerWorker peer{stream(), eager("bob"), journal.handler(slow)};
  peer.start();
  ASSERT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.size(), 1U);
  EXPECT_EQ(worker.stats().leases_lost + peer.stats().leases_lost, 0U);
  EXPECT_EQ(peer.stats().reclaimed, 0U);
}

TEST_F(WorkerLease, KeepsWhatIsQueuedToo) {
  append_ids(30);
  Journal journal;
  WorkerOptions options = eager();
  options.prefetch = 100;
  const auto handler = [](const Delivery&) {
    std::this_thread::sleep_for(100ms);  // 30 of them take three times min_idle
    return Verdict::ack();
  };
  ConsumerWorker worker{stream(), options, journal.handler(handler)};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(1));
  ConsumerWorker peer{stream(), eager("bob"), journal.handler(handler)};
  peer.start();
  ASSERT_TRUE(journal.wait_for_calls(30));
  ASSERT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.size(), 30U) << "each once";
  EXPECT_TRUE(journal.overlapping().empty());
  EXPECT_EQ(worker.stats().leases_lost + peer.stats().leases_lost, 0U);
  EXPECT_EQ(peer.stats().reclaimed, 0U);
}

TEST_F(WorkerLease, ThatAPeerHasTakenIsHeardOfAndAFailureChangesNothing) {
  append_ids(1);
  std::atomic<bool> told = false;
  Journal journal;
  ConsumerWorker worker{stream(), eager(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.consumer != "alice") return Verdict::ack();
                          raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 0, "JUSTID");
                          told = wait_until([&] { return delivery.stop.stop_requested(); });
                          return Verdict::dead_letter("no");
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_TRUE(told);
  EXPECT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
  EXPECT_EQ(worker.stats().leases_lost, 1U);
  EXPECT_EQ(heard().leases_lost(), (Ids{{1, 0}}));
  EXPECT_EQ(raw()("EXISTS", "{s}:dlq"), ":0");
  worker.stop();
  EXPECT_EQ(owner({1, 0}), "bob");
}

TEST_F(WorkerLease, RunsOutByItsOwnClockWhereTheServerIsSilent) {
  append_ids(1);
  std::atomic<bool> told = false;
  Journal journal;
  ConsumerWorker worker{stream(), eager(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.attempt > 1) return Verdict::ack();
                          server().pause();
                          told = wait_until([&] { return delivery.stop.stop_requested(); });
                          server().resume();
                          return Verdict::retry();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_TRUE(told);
  EXPECT_EQ(heard().leases_lost(), (Ids{{1, 0}}));
  EXPECT_TRUE(nothing_is_pending()) << "nobody took it meanwhile, so it is retried";
}

TEST_F(WorkerLease, EndsWithACallThatTakesTooLongSoThatAPeerTakesTheEntry) {
  append_ids(1);
  WorkerOptions options = eager();
  options.max_handler_time = 100ms;
  Journal journal;
  Gate peer_has_it;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          EXPECT_TRUE(wait_until([&] { return delivery.stop.stop_requested(); }));
                          peer_has_it.pass();
                          return Verdict::retry();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(1));
  ConsumerWorker peer{stream(), eager("bob"), journal.handler([&](const Delivery&) {
                        peer_has_it.open();
                        return Verdict::ack();
                      })};
  peer.start();
  ASSERT_TRUE(journal.wait_for_calls(2));
  EXPECT_EQ(journal.calls()[1].consumer, "bob");
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerLease, OfACallThatTakesTooLongEndsOnTimeHoweverLongTheLeaseIs) {
  append_ids(1);
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.max_handler_time = 100ms;
  std::atomic<bool> told = false;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          told = wait_until([&] { return delivery.stop.stop_requested(); });
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_TRUE(told);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerLease, IsKeptForACallThatAskedForMoreTime) {
  append_ids(1);
  WorkerOptions options = eager();
  options.max_handler_time = 300ms;
  Journal journal;
  std::atomic<bool> told = false;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          for (int i = 0; i < 12; ++i) {
                            EXPECT_TRUE(delivery.extend(1min));
                            std::this_thread::sleep_for(50ms);
                          }
                          told = delivery.stop.stop_requested();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_FALSE(told);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(worker.stats().leases_lost, 0U);
}

class WorkerName : public WorkerLease {};

TEST_F(WorkerName, IsTakenByTheNewestAndTheOlderEndsWithTheReason) {
  append_ids(1);
  Journal journal;
  std::atomic<bool> told = false;
  WorkerOptions options = eager();
  options.min_idle = 1s;
  options.block = 100ms;
  ConsumerWorker older{stream(), options, journal.handler([&](const Delivery& delivery) {
                         told = wait_until([&] { return delivery.stop.stop_requested(); });
                         return Verdict::ack();
                       })};
  older.start();
  ASSERT_TRUE(journal.wait_for_calls(1));

  ConsumerWorker newer{stream(), options, journal.handler()};
  newer.start();
  ASSERT_TRUE(wait_until([&] { return older.state() == WorkerState::kFailed; }));
  EXPECT_EQ(older.failure()->prefix(), "SUPERSEDED");
  EXPECT_TRUE(wait_until([&] { return told.load(); }));
  EXPECT_TRUE(newer.wait_ready(kGenerous));
  EXPECT_TRUE(journal.wait_for(append_ids(3, 1)));
  EXPECT_EQ(newer.state(), WorkerState::kRunning);
}

TEST_F(WorkerName, TakesWhatIsPendingAtOnceWhereNobodyRenewsIt) {
  append_ids(3);
  orphan("alice");
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.block = 100ms;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}}));
}

TEST_F(WorkerName, LeavesWhatIsPendingToAWorkerThatMayStillHoldIt) {
  append_ids(1);
  Journal journal;
  Gate gate;
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.lease_renew_every = 10min;  // so the older one does not hear of it soon
  options.block = 50ms;
  ConsumerWorker older{stream(), options, journal.handler([&](const Delivery&) {
                         gate.pass();
                         return Verdict::ack();
                       })};
  older.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  ConsumerWorker newer{stream(), options, journal.handler()};
  newer.start();
  ASSERT_TRUE(newer.wait_ready(kGenerous));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 1)));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {2, 0}}));
  gate.open();
}

TEST_F(WorkerName, TakesWhatIsIdleFromAWorkerThatMayStillHoldTheRest) {
  append_ids(2);
  orphan("alice");
  raw()("XCLAIM", "s", "g", "alice", 0, "1-0", "IDLE", 7'200'000, "JUSTID");
  const std::int64_t now = std::stoll(raw()("TIME")[0].text) * 1000;
  raw()("HSET", "{s}:millrace:g", "token:alice", "older", "at:alice", now);
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.block = 50ms;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 2)));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_TRUE(wait_until([&] { return pending() == 1; }));
  EXPECT_EQ(owner({2, 0}), "alice");
}

TEST_F(WorkerName, TakesWhatIsPendingAtOnceWhereNobodyHasRenewedItForLong) {
  append_ids(2);
  orphan("alice");
  const std::int64_t now = std::stoll(raw()("TIME")[0].text) * 1000;
  raw()("HSET", "{s}:millrace:g", "token:alice", "older", "at:alice", now - 31 * 60'000);
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.lease_renew_every = 20min;
  options.block = 50ms;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}}));
}

class WorkerMinIdle : public WorkerLease {};

TEST_F(WorkerMinIdle, MustBeThatOfTheOthers) {
  WorkerOptions long_idle = eager();
  long_idle.min_idle = 1h;
  ConsumerWorker worker{stream(), long_idle, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  WorkerOptions other = eager("bob");
  other.min_idle = 2s;
  ConsumerWorker peer{stream(), other, [](const Delivery&) {}};
  peer.start();
  ASSERT_TRUE(wait_until([&] { return peer.state() == WorkerState::kFailed; }));
  EXPECT_THAT(peer.failure()->what(),
              ::testing::HasSubstr("min_idle of 3600000 ms, this one of 2000"));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
}

class WorkerConsumers : public WorkerLease {};

TEST_F(WorkerConsumers, ThatAreNoMoreAreRemovedButNeverWithPendingEntries) {
  append_ids(1);
  orphan("bob");
  for (int i = 0; i < 20; ++i)
    raw()("XGROUP", "CREATECONSUMER", "s", "g", "gone-" + std::to_string(i));
  WorkerOptions options = eager();
  options.min_idle = 100ms;
  options.block = 25ms;
  options.reap_every = 0ms;
  ConsumerWorker worker{stream(), options, [](const Delivery&) {}};
  worker.start();
  EXPECT_TRUE(wait_until([&] {
    return raw()("XINFO", "CONSUMERS", "s", "g").str().find("gone-") == std::string::npos;
  }));
  EXPECT_EQ(owner({1, 0}), "bob");
}

}  // namespace
}  // namespace millrace::test

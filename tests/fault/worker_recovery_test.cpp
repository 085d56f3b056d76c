#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <future>
#include <thread>

namespace millrace::test {
namespace {

class WorkerRecovery : public WorkerTest {
 protected:
  /// Nothing is idle for long enough by itself, and a wait that is not ended is noticed.
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 10min;
    patient.reconnect_min = patient.reconnect_max = 1ms;
    return patient;
  }

  /// True once the worker waits for new entries on a connection made after `connected` others.
  [[nodiscard]] bool reads_again(std::size_t connected) {
    return wait_until([&] { return heard().connected() > connected; }) && blocked();
  }
};

TEST_F(WorkerRecovery, HandlesItsOwnPendingEntriesBeforeNewOnes) {
  append_ids(3);
  orphan("alice");
  const Ids ids = append_ids(2, 3);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();

  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(heard().reclaimed(), (Ids{{1, 0}, {2, 0}, {3, 0}}));
  for (const Journal::Call& call : journal.calls()) {
    const bool was_pending = call.id <= StreamId{3, 0};
    EXPECT_EQ(call.reclaimed, was_pending) << call.id;
    EXPECT_EQ(call.attempt, was_pending ? 2U : 1U) << call.id;
  }
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRecovery, HandlesEveryPageOfItsOwnPendingEntries) {
  const Ids ids = append_ids(300);
  orphan("alice", 300);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_EQ(journal.ids(), ids);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRecovery, HandlesEntriesThatWereHandedOverToIt) {
  const Ids ids = append_ids(3);
  orphan("bob");
  EXPECT_EQ(stream().handover_pending("g", "bob", "alice").moved, 3U);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_EQ(journal.calls().front().attempt, 2U) << "the hand-over is no delivery";
}

TEST_F(WorkerRecovery, LeavesThePendingEntriesOfOthers) {
  append_ids(3);
  orphan("bob");
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(append_ids(1, 3)));
  EXPECT_EQ(journal.ids(), (Ids{{4, 0}}));
  EXPECT_EQ(owner({1, 0}), "bob");
}

TEST_F(WorkerRecovery, KeepsTheCountsOfEntriesThatWaitWhileConnectionsAreLost) {
  append_ids(3);
  Gate gate;
  Journal journal;
  WorkerOptions two = patient();
  two.concurrency = 2;  // the third waits, and the reader goes on
  ConsumerWorker worker{stream(), two, journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(2));
  for (int i = 0; i < 5; ++i) {
    const std::size_t connected = heard().connected();
    kill_clients();
    ASSERT_TRUE(wait_until([&] { return heard().connected() > connected; }));
    ASSERT_TRUE(blocked()) << "it has looked for what was lost";
    for (const StreamId id : Ids{{1, 0}, {2, 0}, {3, 0}}) EXPECT_EQ(deliveries(id), 1) << id;
  }
  gate.open();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_TRUE(nothing_is_pending());
  for (const Journal::Call& call : journal.calls()) EXPECT_LE(call.attempt, 2U) << call.id;
  EXPECT_EQ(journal.repeated(), Ids{});
}

TEST_F(WorkerRecovery, DoesNotTakeALostConnectionForTheTimeToTryAFailedEntryAgain) {
  append_ids(2);
  Journal journal;
  ConsumerWorker worker{
      stream(), patient(), journal.handler([](const Delivery& delivery) {
        return delivery.entry.id() == StreamId{1, 0} ? Verdict::retry() : Verdict::leave_pending();
      })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(2));
  ASSERT_TRUE(blocked());
  for (int i = 0; i < 5; ++i) {
    const std::size_t connected = heard().connected();
    kill_clients();
    ASSERT_TRUE(reads_again(connected));
  }
  EXPECT_EQ(journal.size(), 2U) << "they come back when they have been idle for min_idle";
  EXPECT_EQ(deliveries({1, 0}), 1);
  EXPECT_EQ(deliveries({2, 0}), 1);
}

TEST_F(WorkerRecovery, FindsTheEntriesOfAReadWhoseReplyWasLost) {
  append_ids(1);
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker worker{stream(proxy.options()), patient(),
                        journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            proxy.lose_reply_to("XREADGROUP");
                            append_ids(2, 1);  // for the read that takes this one's XACK along
                          }
                          return Verdict::ack();
                        })};
  worker.start();

  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_EQ(journal.calls_for({2, 0}).front().attempt, 2U);
  EXPECT_TRUE(journal.calls_for({2, 0}).front().reclaimed);
  EXPECT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
  EXPECT_EQ(worker.stats().reconnects, 1U);
  EXPECT_EQ(worker.stats().leases_lost, 0U) << "1-0 was acknowledged twice, and by us";
}

TEST_F(WorkerRecovery, ReadsAgainWhatAReadThatWasLostOnItsWayDidNotGet) {
  append_ids(1);
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker worker{stream(proxy.options()), patient(),
                        journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            proxy.lose_request("XREADGROUP");
                            append_ids(1, 1);
                          }
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}}));
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(journal.calls_for({2, 0}).front().attempt, 1U);
  EXPECT_FALSE(journal.calls_for({2, 0}).front().reclaimed);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRecovery, CallsNoLeaseLostWhereItsOwnAcknowledgementWasSentTwice) {
  append_ids(2);
  Gate gate;
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker worker{stream(proxy.options()), patient(),
                        journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            proxy.lose_reply_to("XACK\r\n");  // sent while 2-0 is being handled
                          } else {
                            gate.pass();
                          }
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return proxy.has_lost(); }));
  EXPECT_EQ(pending(), 1) << "it was applied";
  gate.open();

  EXPECT_TRUE(wait_until([&] { return heard().acknowledged().size() == 2; }));
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_EQ(worker.stats().leases_lost, 0U);
}

TEST_F(WorkerRecovery, CountsAStartOnceHoweverOftenTheReplyToItIsLost) {
  append_ids(1);
  orphan("alice");
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions options = patient();
  options.reap_every = 0ms;
  options.reconnect_min = options.reconnect_max = 1ms;
  // The first of its scripts that sets a count is the one that tells of the start.
  proxy.lose_reply_to("\r\n$3\r\n1-0\r\n$1\r\n1\r\n$1\r\n2\r\n");
  ConsumerWorker worker{stream(proxy.options()), options, journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(journal.calls()[0].attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRecovery, FindsWhatItTookOverWhenTheReplyWasLost) {
  append_ids(2);
  orphan("bob");
  for (const StreamId id : Ids{{1, 0}, {2, 0}}) {
    raw()("XCLAIM", "s", "g", "bob", 0, id, "IDLE", 7'200'000, "JUSTID");
  }
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions reaper = patient();
  reaper.reap_every = 0ms;
  ConsumerWorker worker{stream(proxy.options()), reaper, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());

  // The server knows no script yet: EVALSHA, then EVAL.
  proxy.lose_reply_to("EVAL\r\n");
  const ReapReport report = worker.reap_idle_pending();
  ASSERT_TRUE(report.error.has_value());
  EXPECT_EQ(report.error->outcome(), Outcome::kUnknown);
  EXPECT_EQ(owner({1, 0}), "alice") << "it was carried out";
  const std::size_t connected = heard().connected();
  kill_clients();
  ASSERT_TRUE(reads_again(connected));

  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(journal.calls_for({1, 0}).front().attempt, 2U) << "being taken over is no delivery";
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRecovery, ReportsAndDropsEntriesThatWereTrimmedWhilePending) {
  append_ids(4);
  orphan("alice");
  raw()("XDEL", "s", "2-0", "3-0");
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();

  EXPECT_TRUE(journal.wait_for(append_ids(1, 4)));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(heard().deleted(), (Ids{{2, 0}, {3, 0}}));
  EXPECT_EQ(worker.stats().trimmed, 2U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRecovery, HandlesFromMemoryWhatWasTrimmedWhileItWaited) {
  append_ids(2);
  orphan("alice");
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  raw()("XDEL", "s", "2-0");
  gate.open();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}})) << "its payload is nowhere but here";
  EXPECT_EQ(journal.calls_for({2, 0}).front().attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(heard().deleted(), Ids{}) << "it was not lost";
  EXPECT_EQ(worker.stats().leases_lost, 0U) << "no peer has it";
}

TEST_F(WorkerRecovery, TakesASuccessForOneAlthoughTheEntryWasTrimmedMeanwhile) {
  append_ids(3);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0})
                            raw()("XTRIM", "s", "MAXLEN", 0);
                          return Verdict::ack();
                        })};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}})) << "their payloads had come before";
  EXPECT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
  EXPECT_EQ(worker.stats().succeeded, 3U);
  EXPECT_EQ(worker.stats().leases_lost, 0U);
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
}

TEST_F(WorkerRecovery, DoesNotStartWhatAPeerTookWhileItWaited) {
  append_ids(2);
  orphan("alice");
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  raw()("XCLAIM", "s", "g", "carol", 0, "2-0");
  gate.open();

  EXPECT_TRUE(wait_until([&] { return heard().leases_lost() == Ids{{2, 0}}; }));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 2)));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(owner({2, 0}), "carol") << "it is not taken back either";
  EXPECT_EQ(worker.stats().leases_lost, 1U);
}

TEST_F(WorkerRecovery, DoesNotStartWhatAnotherOfItsNameTookWhileItWaited) {
  append_ids(2);
  orphan("alice");
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  raw()("XCLAIM", "s", "g", "alice", 0, "2-0");  // counts as a delivery: somebody else starts it
  gate.open();
  EXPECT_TRUE(wait_until([&] { return heard().leases_lost() == Ids{{2, 0}}; }));
  // It is pending under our name, so it may be found again; but then this start has been counted.
  for (const auto& call : journal.calls_for({2, 0})) EXPECT_EQ(call.attempt, 3U);
}

TEST_F(WorkerRecovery, CountsAnAcknowledgementOfWhatWasNoLongerPendingAsALostLease) {
  append_ids(1);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          raw()("XACK", "s", "g", "1-0");
                          return Verdict::ack();
                        })};
  worker.start();
  EXPECT_TRUE(wait_until([&] { return heard().acknowledged().size() == 1; }));
  EXPECT_EQ(heard().acknowledged_while_pending(), 0U);
  EXPECT_EQ(worker.stats().leases_lost, 1U);
}

}  // namespace
}  // namespace millrace::test

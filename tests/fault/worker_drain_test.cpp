#include "worker_test.hpp"

#include <atomic>
#include <future>
#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

/// What stop() does with entries: those that run, those that wait, those that are done.
class WorkerDrain : public WorkerTest {
 protected:
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 100ms;
    return patient;
  }

  bool is_a_consumer(std::string_view name) {
    for (const RawReply& consumer : raw()("XINFO", "CONSUMERS", "s", "g").elements) {
      if (consumer.field("name").text == name) return true;
    }
    return false;
  }
};

TEST_F(WorkerDrain, LetsARunningHandlerFinishAndAcknowledgesIt) {
  append_ids(1);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          gate.pass();
                          EXPECT_FALSE(delivery.stop.stop_requested());
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  auto stop = std::async(std::launch::async, [&] { return worker.stop(kGenerous); });
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDraining; }));
  gate.open();

  const StopReport report = stop.get();
  EXPECT_EQ(report.finished, 1U);
  EXPECT_EQ(report.abandoned, Ids{});
  EXPECT_EQ(report.released, Ids{});
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_EQ(pending(), 0);
}

TEST_F(WorkerDrain, AbandonsAtTheDeadlineAndTellsTheHandlerThenAndNotBefore) {
  append_ids(3);
  Gate gate;
  std::atomic<bool> told{false};
  std::promise<Clock::time_point> told_at;
  ConsumerWorker worker{stream(), patient(), [&](const Delivery& delivery) {
                          const std::stop_callback when{delivery.stop, [&] {
                                                          told = true;
                                                          told_at.set_value(Clock::now());
                                                        }};
                          gate.pass();
                        }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));

  const auto started = Clock::now();
  const StopReport report = worker.stop(400ms);
  EXPECT_GE(Clock::now() - started, 400ms);
  EXPECT_EQ(report.abandoned, (Ids{{1, 0}}));
  EXPECT_EQ(report.finished, 0U);
  EXPECT_TRUE(told);
  EXPECT_GE(told_at.get_future().get() - started, 400ms);
  EXPECT_EQ(worker.state(), WorkerState::kDraining) << "it has not come to its end yet";
  EXPECT_THROW(worker.start(), InvalidArgument) << "or there would be two loops";
  EXPECT_EQ(worker.state(), WorkerState::kDraining);

  gate.open();
  const StopReport rest = worker.stop(kGenerous);
  EXPECT_THROW(worker.start(), InvalidArgument);
  EXPECT_EQ(rest.finished, 1U);
  EXPECT_EQ(rest.abandoned, Ids{});
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_EQ(deliveries({1, 0}), -1) << "what succeeded late is acknowledged";
}

TEST_F(WorkerDrain, DoesNotWaitForANegativeTime) {
  append_ids(1);
  Gate gate;
  ConsumerWorker worker{stream(), patient(), [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_EQ(worker.stop(-1h).abandoned, (Ids{{1, 0}}));
  EXPECT_EQ(worker.state(), WorkerState::kDraining);
  gate.open();
  EXPECT_EQ(worker.stop(kGenerous).finished, 1U);
  EXPECT_EQ(worker.stop(-1h).abandoned, Ids{}) << "it has ended: there is nothing to wait for";
}

TEST_F(WorkerDrain, GivesBackWhatWasNotStartedAsIfItHadNeverBeenDelivered) {
  const Ids ids = append_ids(4);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  worker.request_stop();
  gate.open();
  const StopReport report = worker.stop(kGenerous);
  EXPECT_EQ(report.finished, 1U);
  EXPECT_EQ(report.released, (Ids{{2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(worker.stats().released, 3U);
  EXPECT_EQ(deliveries({2, 0}), 0);
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}})) << "no further handler is started";

  std::atomic<std::int64_t> counted{-1};
  WorkerOptions bob = patient();
  bob.consumer = "bob";
  ConsumerWorker peer{stream(), bob, journal.handler([&](const Delivery& delivery) {
                        if (counted < 0) counted = deliveries(delivery.entry.id());
                        return Verdict::ack();
                      })};
  peer.start();
  ASSERT_TRUE(peer.wait_ready(kGenerous));
  const auto ready = Clock::now();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_LT(Clock::now() - ready, *bob.block + 1s + 2s);
  EXPECT_EQ(counted, 1);
  for (const StreamId id : report.released) {
    EXPECT_EQ(journal.calls_for(id).at(0).attempt, 1U) << id;
  }
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDrain, GivesBackToAPeerThatIsAlreadyWaiting) {
  append_ids(3);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  WorkerOptions bob = patient();
  bob.consumer = "bob";
  ConsumerWorker peer{stream(), bob, journal.handler()};
  peer.start();
  ASSERT_TRUE(peer.wait_ready(kGenerous));

  worker.request_stop();
  gate.open();
  worker.stop(kGenerous);
  const auto stopped = Clock::now();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_LT(Clock::now() - stopped, *bob.block + 1s + 2s)
      << "a small page is looked at once a block, not once a sweep";
}

TEST_F(WorkerDrain, GivesBackATakenOverEntryWithTheCountOfItsStarts) {
  append_ids(3);
  orphan("alice");
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  worker.request_stop();
  gate.open();
  EXPECT_EQ(worker.stop(kGenerous).released, (Ids{{2, 0}, {3, 0}}));
  EXPECT_EQ(deliveries({2, 0}), 1) << "it may have been started once, by whoever had it before";
}

TEST_F(WorkerDrain, LeavesAloneWhatAPeerTookWhileItWaited) {
  append_ids(3);
  Gate gate;
  ConsumerWorker worker{stream(), patient(), [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  raw()("XCLAIM", "s", "g", "carol", 0, "2-0");
  worker.request_stop();
  gate.open();
  EXPECT_EQ(worker.stop(kGenerous).released, (Ids{{3, 0}}));
  EXPECT_EQ(owner({2, 0}), "carol");
  EXPECT_EQ(deliveries({2, 0}), 2);
}

TEST_F(WorkerDrain, FlushesTheLastAcknowledgements) {
  const Ids ids = append_ids(200);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{ids.begin(), ids.begin() + 50}));
  worker.stop(kGenerous);
  // Of the entries that were read, what was handled is acknowledged, and the rest given back.
  for (const StreamId id : journal.ids()) EXPECT_EQ(deliveries(id), -1) << id;
}

TEST_F(WorkerDrain, RemovesAConsumerThatOwnsNothing) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(5)));
  ASSERT_TRUE(is_a_consumer("alice"));
  worker.stop(kGenerous);
  EXPECT_FALSE(is_a_consumer("alice"));
  append_ids(1, 5);
  EXPECT_FALSE(is_a_consumer("alice")) << "no read was left to make it again";
}

TEST_F(WorkerDrain, KeepsAConsumerThatOwnsPendingEntries) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(),
                        journal.handler([](const Delivery&) { return Verdict::leave_pending(); })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(1)));
  worker.stop(kGenerous);
  EXPECT_TRUE(is_a_consumer("alice"));
  EXPECT_EQ(owner({1, 0}), "alice") << "removing the consumer would forget the entry";
}

TEST_F(WorkerDrain, WaitsInTheDestructorForAHandlerThatRuns) {
  append_ids(1);
  Gate gate;
  Journal journal;
  auto worker =
      std::make_unique<ConsumerWorker>(stream(), patient(), journal.handler([&](const Delivery&) {
        gate.pass();
        return Verdict::ack();
      }));
  worker->start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  auto destroyed = std::async(std::launch::async, [&] { worker.reset(); });
  EXPECT_EQ(destroyed.wait_for(200ms), std::future_status::timeout);
  gate.open();
  destroyed.get();
  EXPECT_EQ(journal.missing(Ids{{1, 0}}), Ids{});
  EXPECT_EQ(pending(), 0);
}

}  // namespace
}  // namespace millrace::test

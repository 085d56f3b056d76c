#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <future>
#include <mutex>
#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Entries in states in which nobody handles them just now, or nobody waits for their handler: a
/// peer is to have them in none but the last.
class WorkerKeptLease : public WorkerTest {
 protected:
  static constexpr milliseconds kMinIdle{2'000};

  /// Renews far more often than it must, so that a slow machine can make it late, and yet in time.
  WorkerOptions often(const std::string& name = "alice") {
    WorkerOptions often = options();
    often.consumer = name;
    often.min_idle = kMinIdle;
    often.lease_renew_every = 50ms;
    often.block = 50ms;
    often.reap_every = 20ms;
    return often;
  }

  /// Waits for three times `min_idle`, while a peer looks for what it may take over.
  void wait_beside_a_peer() {
    ConsumerWorker peer{stream(), often("bob"), peers_.handler()};
    peer.start();
    ASSERT_TRUE(peer.wait_ready(kGenerous));
    const auto until = Clock::now() + 3 * kMinIdle;
    EXPECT_FALSE(wait_until([&] { return peers_.size() > 0 || Clock::now() >= until; }) &&
                 peers_.size() > 0)
        << "a peer took it";
    EXPECT_EQ(peer.stats().reclaimed, 0U);
  }

  Journal peers_;
};

TEST_F(WorkerKeptLease, OfARunningHandlerCountsNoDelivery) {
  append_ids(1);
  std::atomic<std::int64_t> counted{-1};
  ConsumerWorker worker{
      stream(), often(), [&](const Delivery&) {
        const auto renewed = calls_of("xclaim");
        EXPECT_TRUE(wait_until([&] { return calls_of("xclaim") >= renewed + 10; }));
        counted = deliveries({1, 0});
      }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return counted >= 0; }));
  EXPECT_EQ(counted, 1);
  worker.stop();
}

TEST_F(WorkerKeptLease, IsThatOfARetryThatHoldsBackItsKey) {
  append_ids(1);
  WorkerOptions options = often();
  options.key = [](const Entry&) { return "one"; };
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                          return delivery.attempt == 1 ? Verdict::retry_after(4 * kMinIdle)
                                                       : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(1));
  wait_beside_a_peer();
  EXPECT_EQ(journal.size(), 1U);
  EXPECT_TRUE(journal.wait_for_calls(2));
  EXPECT_EQ(journal.calls()[1].attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(worker.stats().leases_lost, 0U);
}

TEST_F(WorkerKeptLease, IsThatOfADeferredCall) {
  append_ids(1);
  std::promise<Completion> deferred;
  Journal journal;
  ConsumerWorker worker{stream(), often(), journal.handler([&](const Delivery& delivery) {
                          deferred.set_value(delivery.defer());
                          return Verdict::ack();
                        })};
  worker.start();
  Completion completion = deferred.get_future().get();
  wait_beside_a_peer();
  EXPECT_EQ(owner({1, 0}), "alice");
  completion.ack();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(worker.stats().leases_lost, 0U);
  EXPECT_EQ(journal.size(), 1U);
}

TEST_F(WorkerKeptLease, IsThatOfARunningCallThoughWhatIsTakenOverIsLongInComing) {
  append_ids(1);
  Proxy proxy{server()};
  WorkerOptions options = often();
  options.concurrency = 2;
  ConnectionOptions unhurried = proxy.options();
  unhurried.command_timeout = 1min;
  Gate gate;
  ConsumerWorker worker{stream(unhurried), options, [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  // What asks for a page says where it begins.
  proxy.delay_reply_to("\r\n$4\r\n2000\r\n$3\r\n0-0\r\n", 4 * kMinIdle);
  wait_beside_a_peer();
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(owner({1, 0}), "alice");
  gate.open();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(worker.stats().leases_lost, 0U);
}

TEST_F(WorkerKeptLease, IsThatOfACallWhichAStopAbandoned) {
  append_ids(1);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), often(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_EQ(worker.stop(0ms).abandoned, (Ids{{1, 0}}));
  wait_beside_a_peer();
  EXPECT_EQ(owner({1, 0}), "alice");
  gate.open();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(worker.stop(kGenerous).finished, 1U);
  EXPECT_EQ(worker.stats().leases_lost, 0U);
  EXPECT_EQ(journal.size(), 1U);
}

TEST_F(WorkerKeptLease, IsNotThatOfAnEntryThatIsLeftPending) {
  append_ids(1);
  Journal journal;
  ConsumerWorker worker{stream(), often(),
                        journal.handler([&](const Delivery&) { return Verdict::leave_pending(); })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(1));
  worker.pause();  // it takes nothing over, and renews what it holds
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kPaused; }));
  ASSERT_EQ(journal.size(), 1U);
  ConsumerWorker peer{stream(), often("bob"), peers_.handler()};
  peer.start();
  ASSERT_TRUE(peers_.wait_for(Ids{{1, 0}}));
  EXPECT_EQ(peers_.calls()[0].attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(worker.stats().leases_lost, 0U) << "it had given it up";
}

}  // namespace
}  // namespace millrace::test

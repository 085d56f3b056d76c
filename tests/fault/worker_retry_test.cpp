#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class WorkerRetry : public WorkerTest {
 protected:
  /// Nothing comes back by being idle.
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 500ms;
    patient.reap_every = 0ms;
    patient.retry_backoff = 20ms;
    return patient;
  }

  std::string dead_letters() { return raw()("XLEN", "{s}:dlq").str(); }
};

TEST_F(WorkerRetry, KeepsIdAndCountInTheGroupsOwnPendingList) {
  append_ids(1);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([](const Delivery& delivery) {
                          return delivery.attempt < 4 ? Verdict::retry() : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(4));
  EXPECT_TRUE(nothing_is_pending());
  const auto calls = journal.calls_for({1, 0});
  ASSERT_EQ(calls.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(calls[i].attempt, i + 1);
  EXPECT_EQ(raw()("XLEN", "s"), ":1") << "nothing was appended again";
  EXPECT_EQ(worker.stats().retried, 3U);
  EXPECT_EQ(worker.stats().failed, 3U);
  EXPECT_EQ(dead_letters(), ":0");
}

TEST_F(WorkerRetry, WaitsForAsLongAsItWasTold) {
  append_ids(1);
  std::vector<Clock::time_point> starts;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          starts.push_back(Clock::now());
                          return delivery.attempt == 1 ? Verdict::retry_after(700ms)
                                                       : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(2));
  worker.stop();  // its thread writes what is read here
  EXPECT_GE(starts[1] - starts[0], 690ms);
}

TEST_F(WorkerRetry, IsAtMostASecondLate) {
  append_ids(1);
  WorkerOptions options = patient();
  options.block = 10min;
  Clock::time_point due;
  std::vector<Clock::duration> late;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          if (delivery.attempt > 1) late.push_back(Clock::now() - due);
                          due = Clock::now() + 300ms;
                          return delivery.attempt < 5 ? Verdict::retry_after(300ms)
                                                      : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(5));
  worker.stop(kGenerous);
  ASSERT_EQ(late.size(), 4U);
  EXPECT_LT(*std::min_element(late.begin(), late.end()), 1s) << "a slow machine is not always slow";
}

TEST_F(WorkerRetry, HandlesOthersMeanwhile) {
  append_ids(3);
  Journal journal;
  ConsumerWorker worker{
      stream(), patient(), journal.handler([](const Delivery& delivery) {
        const bool fails = delivery.entry.id() == StreamId{1, 0} && delivery.attempt == 1;
        return fails ? Verdict::retry_after(300ms) : Verdict::ack();
      })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(4));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {2, 0}, {3, 0}, {1, 0}}));
}

TEST_F(WorkerRetry, ThatIsDueLongAfterMinIdleIsNotHandledBefore) {
  append_ids(1);
  WorkerOptions options = patient();
  options.min_idle = 1s;
  options.block = 50ms;
  options.reap_every = 20ms;  // it would find the entry as soon as it has been idle for min_idle
  std::vector<Clock::time_point> starts;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          starts.push_back(Clock::now());
                          return delivery.attempt == 1 ? Verdict::retry_after(2500ms)
                                                       : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(2));
  worker.stop();  // its thread writes what is read here
  EXPECT_GE(starts[1] - starts[0], 2490ms);
  EXPECT_EQ(journal.calls()[1].attempt, 2U);
}

TEST_F(WorkerRetry, IsFoundByAPeerWhenItIsDueAndTheWorkerIsGone) {
  append_ids(1);
  WorkerOptions options = patient();
  options.block = 50ms;
  Journal journal;
  {
    ConsumerWorker worker{stream(), options, journal.handler([](const Delivery&) {
                            return Verdict::retry_after(200ms);
                          })};
    worker.start();
    ASSERT_TRUE(journal.wait_for_calls(1));
    ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; })) << "parked";
  }
  EXPECT_EQ(deliveries({1, 0}), 1);
  options.consumer = "bob";
  options.reap_every = 20ms;
  ConsumerWorker peer{stream(), options, journal.handler()};
  peer.start();
  ASSERT_TRUE(journal.wait_for_calls(2));
  EXPECT_EQ(journal.calls()[1].attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerRetry, KeepsItsDueTimeThroughLostConnections) {
  append_ids(16);
  Journal journal;
  WorkerOptions options = patient();
  options.reconnect_min = 1ms;
  options.reconnect_max = 5ms;
  std::map<StreamId, std::vector<Clock::time_point>> starts;
  ConsumerWorker worker{
      stream(), options, journal.handler([&](const Delivery& delivery) {
        starts[delivery.entry.id()].push_back(Clock::now());
        const bool fails = delivery.entry.id() == StreamId{1, 0} && delivery.attempt == 1;
        return fails ? Verdict::retry_after(2s) : Verdict::ack();
      })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(16));
  for (int i = 0; i < 5; ++i) {
    const auto before = worker.stats().reconnects;
    ASSERT_TRUE(blocked());
    kill_clients();
    ASSERT_TRUE(wait_until([&] { return worker.stats().reconnects > before; }));
  }
  ASSERT_TRUE(journal.wait_for_calls(17));
  EXPECT_TRUE(nothing_is_pending());
  worker.stop();  // its threads write what is read here
  const auto& times = starts.at({1, 0});
  ASSERT_EQ(times.size(), 2U);
  EXPECT_GE(times[1] - times[0], 1990ms);
  EXPECT_EQ(dead_letters(), ":0");
}

TEST_F(WorkerRetry, OfAnEntryThatHasLeftTheStreamIsMadeFromMemory) {
  append_ids(1);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.attempt > 1) return Verdict::ack();
                          raw()("XDEL", "s", "1-0");
                          return Verdict::retry();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(2));
  EXPECT_EQ(journal.calls()[1].attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
}

TEST_F(WorkerRetry, HoldsBackItsOwnKeyAlone) {
  for (const std::uint64_t i : {1U, 2U, 3U, 4U}) {
    raw()("XADD", "s", StreamId{i, 0}, "account", i % 2 == 1 ? "odd" : "even");
  }
  WorkerOptions options = patient();
  options.key = [](const Entry& entry) { return std::string{entry.at("account")}; };
  Journal journal;
  ConsumerWorker worker{
      stream(), options, journal.handler([](const Delivery& delivery) {
        const bool fails = delivery.entry.id() == StreamId{1, 0} && delivery.attempt < 3;
        return fails ? Verdict::retry() : Verdict::ack();
      })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(6));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {2, 0}, {4, 0}, {1, 0}, {1, 0}, {3, 0}}));
  EXPECT_TRUE(nothing_is_pending());
}

}  // namespace
}  // namespace millrace::test

#include "worker_test.hpp"

#include <atomic>
#include <future>
#include <string>

namespace millrace::test {
namespace {

/// What a reader does between its reads has its turn, and none after a stop. The parameter is the
/// number of handler calls at once.
class WorkerTurns : public WorkerTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  /// Nothing comes back by being idle.
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.concurrency = GetParam();
    return patient;
  }
};

TEST_P(WorkerTurns, OfReapingComeAlthoughNoReadIsEmpty) {
  append_ids(1);
  orphan("bob");
  append_ids(1, 1);
  WorkerOptions options = patient();
  options.block = 50ms;
  options.reap_every = 1h;  // the one at its start finds nothing
  options.prefetch = 1;
  std::atomic<std::uint64_t> appended{2};
  Journal journal;
  ConsumerWorker worker{
      stream(), options, journal.handler([&](const Delivery& delivery) {
        if (delivery.entry.id() == StreamId{1, 0}) return Verdict::ack();
        // Before the next read: so there is always something to read.
        RawClient{server().options()}("XADD", "s", StreamId{++appended, 0}, "f", "v");
        return Verdict::ack();
      })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(20));
  EXPECT_EQ(journal.calls_for({1, 0}).size(), 0U);
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "JUSTID");
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}}));
}

TEST_P(WorkerTurns, OfRetriesComeAlthoughAReadWaitsForTenMinutes) {
  append_ids(1);
  WorkerOptions options = patient();
  options.block = 10min;
  options.reap_every = 0ms;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                          return delivery.attempt < 3 ? Verdict::retry_after(700ms)
                                                      : Verdict::ack();
                        })};
  worker.start();
  EXPECT_TRUE(journal.wait_for_calls(3)) << "each at most a second late";
  EXPECT_TRUE(nothing_is_pending());
}

TEST_P(WorkerTurns, OfRetriesComeAlthoughTheCallEndedWhileAReadWaited) {
  append_ids(1);
  WorkerOptions options = patient();
  options.block = 10min;
  options.reap_every = 0ms;
  options.retry_backoff = 20ms;
  std::promise<Completion> deferred;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          if (delivery.attempt == 1) deferred.set_value(delivery.defer());
                          return Verdict::ack();
                        })};
  worker.start();
  Completion completion = deferred.get_future().get();
  ASSERT_TRUE(blocked());
  completion.retry();
  EXPECT_TRUE(journal.wait_for_calls(2)) << "at most a second late";
  EXPECT_TRUE(nothing_is_pending());
}

TEST_P(WorkerTurns, OfRecoveryEndWithAStop) {
  const Ids ids = append_ids(300);
  orphan("alice", ids.size());
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(GetParam()));
  worker.request_stop();
  ASSERT_TRUE(wait_until([&] { return worker.stats().released > 0; })) << "what waits";
  gate.open();
  const StopReport report = worker.stop(kGenerous);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_THAT(report.abandoned, ::testing::IsEmpty());
  EXPECT_EQ(journal.size(), GetParam()) << "those that ran";
  EXPECT_EQ(pending(), static_cast<std::int64_t>(ids.size() - GetParam()));
  EXPECT_LE(calls_of("xclaim"), 100U) << "it had a page in hand: taken, started, renewed, released";
  EXPECT_EQ(deliveries(ids.back()), 1);
}

INSTANTIATE_TEST_SUITE_P(Of, WorkerTurns, ::testing::Values(1U, 4U), [](const auto& concurrency) {
  return concurrency.param == 1 ? std::string{"One"} : std::string{"Four"};
});

}  // namespace
}  // namespace millrace::test

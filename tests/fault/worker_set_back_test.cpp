#include "worker_test.hpp"

#include <atomic>
#include <string>

namespace millrace::test {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A group that is set back, so that reads bring again what a worker holds or has parked. The
/// parameter is the number of handler calls at once.
class WorkerSetBack : public WorkerTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  /// Nothing comes back by being idle.
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 50ms;
    patient.reap_every = 0ms;
    patient.retry_backoff = 20ms;
    patient.concurrency = GetParam();
    return patient;
  }

  /// Sets the group back to its beginning, and waits until what was appended then has been read.
  void set_back(const Journal& journal, std::uint64_t appended) {
    raw()("XGROUP", "SETID", "s", "g", "0");
    EXPECT_TRUE(journal.wait_for(append_ids(1, appended)));
  }
};

TEST_P(WorkerSetBack, LeavesParkedRetriesTheirDueTimesAndAttempts) {
  constexpr auto kDelay = 4s;
  append_ids(2);
  Journal journal;
  std::atomic<SteadyClock::rep> failed{0};
  std::atomic<SteadyClock::rep> again{0};
  const auto now = [] { return SteadyClock::now().time_since_epoch().count(); };
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() != StreamId{2, 0}) return Verdict::ack();
                          if (delivery.attempt < 3) return Verdict::retry();
                          (delivery.attempt == 3 ? failed : again) = now();
                          return delivery.attempt == 3 ? Verdict::retry_after(kDelay)
                                                       : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return failed != 0 && worker.stats().in_flight == 0; }))
      << "it is parked";
  ASSERT_EQ(deliveries({2, 0}), 3);
  for (std::uint64_t times = 0; times < 2; ++times) {
    set_back(journal, 2 + times);
    EXPECT_TRUE(wait_until([&] { return deliveries({2, 0}) == 3 || again != 0; }));
  }
  const RawReply entry = raw()("XPENDING", "s", "g", "2-0", "2-0", 1);
  // On a machine that is busy for too long it may be due before the group is set back: then it is
  // delivered anew, once it is acknowledged.
  const bool in_time = SteadyClock::duration{now() - failed} < kDelay - 100ms;
  if (in_time) {
    EXPECT_GT(entry[0][2].integer, 3'500'000) << "a peer finds it when it is due";
  }

  ASSERT_TRUE(wait_until([&] { return again != 0; }));
  EXPECT_GE(SteadyClock::duration{again - failed}, kDelay - 10ms);
  EXPECT_TRUE(nothing_is_pending());
  const auto calls = journal.calls_for({2, 0});
  ASSERT_GE(calls.size(), 4U);
  EXPECT_EQ(calls[3].attempt, 4U);
  EXPECT_TRUE(calls.size() == 4 || !in_time) << calls.size() << " calls";
}

TEST_P(WorkerSetBack, KeepsTheLeasesAndAttemptsOfWhatIsHeld) {
  append_ids(2);
  orphan("alice");
  raw()("XCLAIM", "s", "g", "alice", 0, "1-0", "2-0", "RETRYCOUNT", 2, "JUSTID");
  WorkerOptions options = patient();
  options.min_idle = 30s;
  options.lease_renew_every = 20ms;  // some while a read's reply is on its way
  options.concurrency = 2;
  options.prefetch = 16 * GetParam();
  Gate gate;
  std::atomic<bool> told{false};
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          if (delivery.attempt != 3 || !delivery.reclaimed) return Verdict::ack();
                          gate.pass();
                          if (delivery.stop.stop_requested()) told = true;
                          return Verdict::retry();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(2));
  raw()("XGROUP", "SETID", "s", "g", "0");
  append_ids(1, 2);
  ASSERT_TRUE(wait_until([&] { return worker.stats().delivered == 3; }))
      << "they were brought again";
  EXPECT_TRUE(wait_until([&] { return deliveries({1, 0}) == 3 && deliveries({2, 0}) == 3; }));
  const auto renewals = calls_of("evalsha");
  EXPECT_TRUE(wait_until([&] { return calls_of("evalsha") > renewals + 5; }));
  gate.open();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_FALSE(told) << "it is ours";
  for (const StreamId id : {StreamId{1, 0}, StreamId{2, 0}}) {
    const auto calls = journal.calls_for(id);
    ASSERT_EQ(calls.size(), 2U);
    EXPECT_EQ(calls.back().attempt, 4U);
  }
  EXPECT_EQ(worker.stats().leases_lost, 0U);
}

INSTANTIATE_TEST_SUITE_P(With, WorkerSetBack, ::testing::Values(1U, 4U),
                         [](const auto& concurrency) {
                           return concurrency.param == 1 ? std::string{"One"} : std::string{"Four"};
                         });

}  // namespace
}  // namespace millrace::test

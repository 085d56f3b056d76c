#include "fault/worker_test.hpp"
#include "support/jumping_clock.hpp"
#include "support/proxy.hpp"
#include "worker/worker.hpp"

#include <atomic>

namespace millrace::test {
namespace {

class SuspendedWorker : public WorkerTest {
 protected:
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 100ms;
    patient.reap_every = 0ms;
    return patient;
  }

  JumpingClock clock_;
};

TEST_F(SuspendedWorker, HasNoLeasesWhenItWakesUpAndStartsNothingThatAPeerHas) {
  append_ids(4);
  Journal journal;
  std::atomic<bool> was_told{false};
  detail::Worker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            was_told = wait_until([&] { return delivery.stop.stop_requested(); });
                          }
                          return Verdict::ack();
                        }),
                        clock_};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(1));
  ASSERT_EQ(pending(), 4);
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "2-0", "3-0", "JUSTID");
  clock_.jump(61min);

  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {4, 0}}));
  EXPECT_TRUE(was_told) << "long before the next renewal is due by a clock that stood still";
  EXPECT_TRUE(wait_until([&] { return pending() == 2; })) << "those of bob";
  worker.stop(kGenerous);
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {4, 0}}));
}

TEST_F(SuspendedWorker, ReadsNothingUnderANameThatWasTakenMeanwhile) {
  Journal journal;
  detail::Worker worker{stream(), patient(), journal.handler(), clock_};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.pause();
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kPaused; }));
  const auto reads = calls_of("xreadgroup");
  raw()("HSET", "{s}:millrace:g", "token:alice", "another");
  append_ids(1);

  clock_.jump(31min);
  worker.resume();
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kFailed; }));
  EXPECT_THAT(worker.failure()->what(), ::testing::HasSubstr("a newer worker has taken"));
  worker.stop(kGenerous);
  EXPECT_EQ(calls_of("xreadgroup"), reads);
  EXPECT_EQ(journal.size(), 0U);
}

TEST_F(SuspendedWorker, HasHadALeaseSinceItAskedForTheEntry) {
  Proxy proxy{server()};
  WorkerOptions waiting = patient();
  waiting.block = 10s;
  Journal journal;
  detail::Worker worker{stream(proxy.options()), waiting, journal.handler(), clock_};
  worker.start();
  ASSERT_TRUE(blocked());

  // The entry is on its way for half an hour, and is a peer's when it comes.
  proxy.stall();
  append_ids(1);
  ASSERT_EQ(owner({1, 0}), "alice");
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "JUSTID");
  clock_.jump(31min);
  proxy.flow();
  EXPECT_TRUE(wait_until([&] { return heard().leases_lost() == Ids{{1, 0}}; }));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 1)));
  worker.stop(kGenerous);
  EXPECT_EQ(journal.ids(), (Ids{{2, 0}}));
  EXPECT_EQ(owner({1, 0}), "bob");
}

}  // namespace
}  // namespace millrace::test

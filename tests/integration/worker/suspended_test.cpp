#include "fault/worker_test.hpp"
#include "support/jumping_clock.hpp"
#include "support/proxy.hpp"
#include "worker/worker.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

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

TEST_F(SuspendedWorker, SaysOnceAMinuteThatItsDestructorWaitsForAHandler) {
  append_ids(1);
  Gate gate;
  WorkerOptions options = patient();
  options.min_idle = 24h;
  auto worker = std::make_unique<detail::Worker>(
      stream(), options, Handler{[&](const Delivery&) { gate.pass(); }}, clock_);
  worker->start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  std::thread destroying{[&] { worker.reset(); }};
  EXPECT_TRUE(wait_until([&] { return heard().saw(WorkerState::kDraining); }));
  const auto said = [&] {
    const auto lines = heard().lines();
    return std::count_if(lines.begin(), lines.end(), [](const auto& line) {
      return line.text == "still waiting for 1 handler calls of 'alice' to return";
    });
  };
  // It may have looked at the clock before a jump or after it.
  std::ptrdiff_t minutes = 0;
  for (std::ptrdiff_t line = 1; line <= 3; ++line) {
    const auto is_said = [&] { return said() >= line; };
    EXPECT_LE(said(), minutes);
    do {
      clock_.jump(61s);
      ++minutes;
    } while (minutes < 10 && !wait_until(is_said, 3s));
    EXPECT_TRUE(is_said()) << heard().text();
  }
  gate.open();
  destroying.join();
  EXPECT_LE(said(), minutes);
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

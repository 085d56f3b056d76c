#include "worker/status.hpp"

#include "support/gate.hpp"
#include "support/recording_observer.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using enum WorkerState;

constexpr std::array kStates{kCreated,  kStarting, kRunning, kPaused,
                             kDegraded, kDraining, kStopped, kFailed};

/// By the contract: created, starting, then running, paused and degraded in any order, draining,
/// and one of two ends.
bool is_allowed(WorkerState from, WorkerState to) {
  const auto stage = [](WorkerState state) {
    constexpr std::array kStages{0, 1, 2, 2, 2, 3, 4, 4};
    return kStages.at(static_cast<std::size_t>(state));
  };
  if (from == to) return false;
  return stage(from) < stage(to) || (stage(from) == 2 && stage(to) == 2);
}

/// A way to a state.
void go_to(Status& status, WorkerState state) {
  if (state == kCreated) return;
  ASSERT_TRUE(status.move_to(state));
  ASSERT_EQ(status.state(), state);
}

TEST(WorkerStatus, GoesForwardsOnly) {
  const Events events{nullptr};
  for (const WorkerState from : kStates) {
    for (const WorkerState to : kStates) {
      Status status{events};
      go_to(status, from);
      EXPECT_EQ(status.move_to(to), is_allowed(from, to))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
      EXPECT_EQ(status.state(), is_allowed(from, to) ? to : from);
    }
  }
}

TEST(WorkerStatus, KeepsTheReasonOfAFailure) {
  const Events events{nullptr};
  Status status{events};
  EXPECT_EQ(status.failure(), std::nullopt);
  EXPECT_TRUE(status.fail(WrongTypeError{"no stream"}));
  EXPECT_EQ(status.state(), kFailed);
  EXPECT_FALSE(status.fail(NoGroupError{"no group"})) << "the first one counts";
  EXPECT_STREQ(status.failure().value().what(), "no stream");
}

TEST(WorkerStatus, HasNoReasonWhereItDidNotFail) {
  const Events events{nullptr};
  Status status{events};
  status.move_to(kStopped);
  EXPECT_FALSE(status.fail(WrongTypeError{"no stream"}));
  EXPECT_EQ(status.failure(), std::nullopt);
  EXPECT_EQ(status.state(), kStopped);
}

TEST(WorkerStatus, TellsEachChangeThatHappened) {
  const auto observer = std::make_shared<test::RecordingObserver>();
  const Events events{observer};
  Status status{events};
  status.move_to(kStarting);
  status.move_to(kCreated);
  status.move_to(kRunning);
  status.move_to(kRunning);
  EXPECT_EQ(observer->states(), (std::vector<std::pair<WorkerState, WorkerState>>{
                                    {kCreated, kStarting}, {kStarting, kRunning}}));
}

TEST(WorkerStatus, TellsWithoutALock) {
  class Asking : public Observer {
   public:
    Status* status = nullptr;
    WorkerState seen = kCreated;
    void on_state(WorkerState, WorkerState to) override {
      seen = status->state();
      if (to == kStarting) status->move_to(kRunning);
    }
  };
  const auto observer = std::make_shared<Asking>();
  const Events events{observer};
  Status status{events};
  observer->status = &status;
  status.move_to(kStarting);
  EXPECT_EQ(observer->seen, kRunning);
}

TEST(WorkerStatus, TellsChangesOfTwoThreadsInTheirOrder) {
  class Slow : public Observer {
   public:
    test::Gate gate;
    std::vector<WorkerState> told;  // by one thread at a time
    void on_state(WorkerState, WorkerState to) override {
      if (to == kStarting) gate.pass();
      told.push_back(to);
    }
  };
  const auto observer = std::make_shared<Slow>();
  const Events events{observer};
  Status status{events};
  std::thread slow{[&] { status.move_to(kStarting); }};
  ASSERT_TRUE(observer->gate.wait_for_arrivals(1));
  EXPECT_TRUE(status.move_to(kRunning));
  EXPECT_EQ(status.state(), kRunning) << "nobody waits for the observer but whoever tells it";
  observer->gate.open();
  slow.join();
  EXPECT_EQ(observer->told, (std::vector<WorkerState>{kStarting, kRunning}));
}

TEST(WorkerStatus, IsWaitedForUntilItIsAsWanted) {
  const Events events{nullptr};
  Status status{events};
  std::thread mover{[&] {
    status.move_to(kStarting);
    status.move_to(kRunning);
  }};
  EXPECT_TRUE(status.wait_for([](WorkerState state) { return state == kRunning; },
                              Clock::system().now() + test::kGenerous, Clock::system()));
  mover.join();
}

TEST(WorkerStatus, IsNotWaitedForPastTheDeadline) {
  const Events events{nullptr};
  const Status status{events};
  EXPECT_FALSE(status.wait_for([](WorkerState state) { return state == kRunning; },
                               Clock::system().now(), Clock::system()));
  EXPECT_TRUE(status.wait_for([](WorkerState state) { return state == kCreated; },
                              Clock::system().now() - Milliseconds{1}, Clock::system()))
      << "it is as wanted already";
}

TEST(WorkerStatus, ShowsAWorkerThatReadsAndIsHamperedAsDegraded) {
  using Part = Status::Part;
  const auto observer = std::make_shared<test::RecordingObserver>();
  const Events events{observer};
  Status status{events};
  status.set_hampered(Part::kKeeping, true);
  EXPECT_EQ(status.state(), kCreated);
  status.move_to(kStarting);
  EXPECT_EQ(status.state(), kStarting);
  status.move_to(kRunning);
  EXPECT_EQ(status.state(), kDegraded);
  status.set_hampered(Part::kReaping, true);
  status.set_hampered(Part::kKeeping, false);
  EXPECT_EQ(status.state(), kDegraded);
  status.move_to(kPaused);
  EXPECT_EQ(status.state(), kPaused) << "that was asked for";
  status.move_to(kRunning);
  EXPECT_EQ(status.state(), kDegraded);
  status.set_hampered(Part::kReaping, false);
  EXPECT_EQ(status.state(), kRunning);

  status.set_hampered(Part::kKeeping, true);
  status.move_to(kDegraded);
  status.set_hampered(Part::kKeeping, false);
  EXPECT_EQ(status.state(), kDegraded) << "its reader is not well either";
  status.move_to(kDraining);
  status.set_hampered(Part::kKeeping, true);
  EXPECT_EQ(status.state(), kDraining);
  EXPECT_EQ(observer->states(),
            (std::vector<std::pair<WorkerState, WorkerState>>{{kCreated, kStarting},
                                                              {kStarting, kDegraded},
                                                              {kDegraded, kPaused},
                                                              {kPaused, kDegraded},
                                                              {kDegraded, kRunning},
                                                              {kRunning, kDegraded},
                                                              {kDegraded, kDraining}}));
}

}  // namespace
}  // namespace millrace::detail

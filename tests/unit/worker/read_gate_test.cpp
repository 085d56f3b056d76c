#include "worker/read_gate.hpp"

#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

TEST(ReadGate, KnowsWhoIsInside) {
  ReadGate gate;
  EXPECT_EQ(gate.inside().has_value(), false);
  {
    const ReadGate::Visit visit{gate, 42};
    EXPECT_TRUE(visit.is_allowed());
    EXPECT_EQ(gate.inside().value().client_id, 42U);
  }
  EXPECT_EQ(gate.inside().has_value(), false);
}

TEST(ReadGate, KnowsWhetherTheReadMayLast) {
  ReadGate gate;
  const TimePoint now{10s};
  EXPECT_EQ(gate.inside_beyond(now), std::nullopt);
  {
    ReadGate::Visit visit{gate, 42};
    EXPECT_EQ(gate.inside_beyond(now), 42U) << "it has not said yet when it ends";
    visit.ends_at(now);
    EXPECT_EQ(gate.inside_beyond(now), std::nullopt);
    EXPECT_EQ(gate.inside_beyond(now - 1ms), 42U);
  }
  EXPECT_EQ(gate.inside_beyond({}), std::nullopt);
  const ReadGate::Visit next{gate, 43};
  EXPECT_EQ(gate.inside_beyond(now), 43U) << "nothing is left of the one before";
}

TEST(ReadGate, LetsNobodyInOnceItIsClosed) {
  ReadGate gate;
  gate.close();
  const ReadGate::Visit visit{gate, 42};
  EXPECT_FALSE(visit.is_allowed());
  EXPECT_EQ(gate.inside().has_value(), false);
}

TEST(ReadGate, KeepsWhoWasInsideWhenItClosedUntilHeLeaves) {
  ReadGate gate;
  std::optional<ReadGate::Visit> visit{std::in_place, gate, 42};
  gate.close();
  EXPECT_EQ(gate.inside().value().client_id, 42U);
  {
    const ReadGate::Visit refused{gate, 43};
    EXPECT_FALSE(refused.is_allowed());
  }
  EXPECT_EQ(gate.inside().value().client_id, 42U)
      << "one that was refused does not leave for another";
  EXPECT_FALSE(gate.wait_until_left(1ms));
  visit.reset();
  EXPECT_TRUE(gate.wait_until_left(0ms));
}

TEST(ReadGate, WakesWhoWaitsForItToBeLeft) {
  ReadGate gate;
  std::optional<ReadGate::Visit> visit{std::in_place, gate, 42};
  std::thread leaver{[&] { visit.reset(); }};
  EXPECT_TRUE(gate.wait_until_left(test::kGenerous));
  leaver.join();
}

}  // namespace
}  // namespace millrace::detail

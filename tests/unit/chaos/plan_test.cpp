#include "plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace chaos {
namespace {

std::size_t count(const std::vector<Draw>& plan, Fault fault) {
  return static_cast<std::size_t>(std::ranges::count(plan, fault, &Draw::fault));
}

TEST(ChaosPlan, HasADrawForEachSecond) {
  EXPECT_EQ(plan(1, 180).size(), 180U);
  EXPECT_EQ(plan(1, 24).size(), 24U);
}

TEST(ChaosPlan, HasEachFaultMoreThanFiveTimesInThreeMinutes) {
  EXPECT_EQ(required(180), 5U);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const Fault fault : kFaults) EXPECT_GT(count(plan(seed, 180), fault), 5U) << seed;
  }
}

TEST(ChaosPlan, HasEachFaultInAShortRunToo) {
  EXPECT_EQ(required(1'800), 5U);
  EXPECT_EQ(required(60), 1U);
  EXPECT_EQ(required(24), 1U);
  for (const Fault fault : kFaults) EXPECT_GT(count(plan(7, 24), fault), 1U);
}

TEST(ChaosPlan, IsTheSameForTheSameSeed) {
  EXPECT_EQ(plan(1, 180), plan(1, 180));
  EXPECT_NE(plan(1, 180), plan(2, 180));
}

TEST(ChaosPlan, IsAlwaysThatOne) {
  // Or a seed that failed elsewhere would replay something else here.
  const auto drawn = plan(1, 24);
  const std::vector<Fault> first{Fault::kCutReply,     Fault::kRestartServer, Fault::kPauseServer,
                                 Fault::kFlushScripts, Fault::kPauseServer,   Fault::kStopWorker};
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(drawn[i].fault, first[i]) << i;
}

TEST(ChaosPlan, DoesNotKeepTheServerAwayForMostOfTheTime) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_LT(count(plan(seed, 180), Fault::kPauseServer), 20U) << seed;
    EXPECT_LT(count(plan(seed, 180), Fault::kRestartServer), 20U) << seed;
  }
}

}  // namespace
}  // namespace chaos

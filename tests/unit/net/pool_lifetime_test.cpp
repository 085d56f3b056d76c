#include "pool_test.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

TEST_F(PoolTest, ReplacesADeadIdleConnectionUnseen) {
  make();
  EXPECT_EQ(call(), 1);
  servers.quiet = false;
  EXPECT_EQ(call(), 2);
  const auto stats = pool->stats();
  EXPECT_EQ(stats.open, 1U);
  EXPECT_EQ(stats.created, 2U);
  EXPECT_EQ(stats.closed, 1U);
}

TEST_F(PoolTest, ClosesAConnectionThatBroke) {
  make();
  servers.next_calls({fail_unknown});
  EXPECT_THROW(call(), IoError);
  EXPECT_EQ(servers.open, 0);
  EXPECT_EQ(pool->stats().closed, 1U);
  EXPECT_EQ(pool->stats().open, 0U);
}

TEST_F(PoolTest, ClosesWhatIsIdleForTooLong) {
  make({.max_connections = 4, .max_idle_time = 60s});
  use_at_once(4);
  EXPECT_EQ(pool->stats().idle, 4U);
  clock.advance(59s);
  call();
  EXPECT_EQ(pool->stats().idle, 4U);
  clock.advance(1s);
  call();
  EXPECT_EQ(pool->stats().idle, 1U) << "the one that was used a second ago";
  EXPECT_EQ(pool->stats().closed, 3U);
  EXPECT_EQ(servers.open, 1);
}

TEST_F(PoolTest, KeepsItsLeastNumberOfIdleConnections) {
  make({.max_connections = 4, .min_idle_connections = 2, .max_idle_time = 60s});
  use_at_once(4);
  clock.advance(1h);
  call();
  EXPECT_EQ(pool->stats().idle, 2U);
  clock.advance(1h);
  call();
  EXPECT_EQ(pool->stats().idle, 2U);
  EXPECT_EQ(servers.made, 4U);
}

TEST_F(PoolTest, ReplacesConnectionsThatAreTooOldGiveOrTakeATenth) {
  make({.max_connections = 20,
        .min_idle_connections = 20,
        .max_idle_time = 1h,
        .max_lifetime = 100s});
  use_at_once(20);
  clock.advance(89s);
  call();
  EXPECT_EQ(pool->stats().closed, 0U);
  std::set<std::uint64_t> steps;
  for (int i = 0; i < 22; ++i) {
    clock.advance(1s);
    call();
    steps.insert(pool->stats().closed);
  }
  EXPECT_GE(pool->stats().closed, 20U) << "all of the first twenty";
  EXPECT_GT(steps.size(), 3U) << "they did not all go at once";
}

TEST_F(PoolTest, DoesNotLendWhatHasBecomeTooOld) {
  make({.max_lifetime = 100s});
  EXPECT_EQ(call(), 1);
  clock.advance(111s);
  EXPECT_EQ(call(), 2);
  EXPECT_EQ(servers.most_open, 1);
}

}  // namespace
}  // namespace millrace::detail

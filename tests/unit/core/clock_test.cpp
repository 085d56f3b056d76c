#include "core/clock.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace millrace::detail {
namespace {

TimePoint time_of(clockid_t clock) {
  timespec time{};
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return TimePoint{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
}

#ifdef CLOCK_BOOTTIME

TEST(SystemClock, GoesOnWhileTheMachineIsSuspended) {
  const TimePoint before = time_of(CLOCK_BOOTTIME);
  const TimePoint now = Clock::system().now();
  const TimePoint after = time_of(CLOCK_BOOTTIME);
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);

  // Only a machine that has been suspended can tell: by hand, with util-linux,
  // `unshare --user --map-root-user --fork --time --boottime 86400 unit_core`.
  const bool can_tell = before - time_of(CLOCK_MONOTONIC) > std::chrono::seconds{1};
  RecordProperty("was_suspended", can_tell ? "yes" : "no");
}

#endif

TEST(SystemClock, IsNeverSetBack) {
  TimePoint last = Clock::system().now();
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint now = Clock::system().now();
    ASSERT_LE(last, now);
    last = now;
  }
}

}  // namespace
}  // namespace millrace::detail

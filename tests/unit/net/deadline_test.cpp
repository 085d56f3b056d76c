#include "net/deadline.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

// As constants: a compiler refuses one that overflows.
constexpr TimePoint kNow{std::chrono::hours{1}};
constexpr TimePoint kAtTheEnd = after(kNow, Milliseconds::max());
constexpr TimePoint kAtTheBeginning = after(kNow, Milliseconds::min());
constexpr TimePoint kBeforeTheEpoch = after(TimePoint{} - 1h, Milliseconds::min());

TEST(Deadline, IsAtTheEndOrTheBeginningOfTimeWhereATimePointCannotSayIt) {
  EXPECT_EQ(kAtTheEnd, TimePoint::max());
  EXPECT_EQ(kAtTheBeginning, TimePoint::min());
  EXPECT_EQ(kBeforeTheEpoch, TimePoint::min());
}

TEST(Deadline, IsBeforeNowWhereTheSpanIsNegative) {
  EXPECT_EQ(after(kNow, -1ms), kNow - 1ms);
  EXPECT_EQ(after(kNow, -2h), TimePoint{} - 1h);
  EXPECT_EQ(left_until(after(kNow, Milliseconds::min()), kNow), 0ms);
}

}  // namespace
}  // namespace millrace::detail

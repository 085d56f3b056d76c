#include "core/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

/// The longest of many `step`-th pauses, each of a Backoff of its own.
Milliseconds longest(int step, Milliseconds first, Milliseconds most) {
  Milliseconds longest{0};
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    Backoff backoff{first, most, seed};
    for (int i = 1; i < step; ++i) backoff.next();
    longest = std::max(longest, backoff.next());
  }
  return longest;
}

TEST(Backoff, DoublesTheBoundUpToTheMost) {
  for (const auto& [step, bound] :
       {std::pair{1, 100ms}, {2, 200ms}, {3, 400ms}, {4, 500ms}, {9, 500ms}}) {
    EXPECT_LE(longest(step, 100ms, 500ms), bound) << step;
    EXPECT_GT(longest(step, 100ms, 500ms), bound - bound / 10) << step;
  }
}

TEST(Backoff, DrawsFromTheWholeRangeSoThatClientsSpread) {
  Backoff backoff{1s, 1s, 7};
  std::vector<int> tenths(10);
  for (int i = 0; i < 10'000; ++i) {
    const Milliseconds pause = backoff.next();
    ASSERT_GT(pause, 0ms) << "never none at all";
    ASSERT_LE(pause, 1s);
    ++tenths.at(static_cast<std::size_t>((pause.count() - 1) / 100));
  }
  for (const int tenth : tenths) EXPECT_NEAR(tenth, 1'000, 150);
}

TEST(Backoff, StartsFromTheFirstAgainAfterASuccess) {
  Milliseconds longest{0};
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    Backoff backoff{100ms, 10s, seed};
    for (int i = 0; i < 6; ++i) backoff.next();
    backoff.reset();
    longest = std::max(longest, backoff.next());
  }
  EXPECT_LE(longest, 100ms);
}

TEST(Backoff, DiffersFromOneClientToTheNext) {
  Backoff one{1h, 1h};
  Backoff other{1h, 1h};
  const std::vector pauses{one.next(), one.next(), one.next()};
  EXPECT_NE(pauses, (std::vector{other.next(), other.next(), other.next()}));
}

TEST(Backoff, DoesNotOverflowHoweverLongItTries) {
  Backoff backoff{1ms, std::chrono::hours{24 * 365}, 7};
  for (int i = 0; i < 200; ++i) {
    const Milliseconds pause = backoff.next();
    ASSERT_GT(pause, 0ms);
    ASSERT_LE(pause, std::chrono::hours{24 * 365});
  }
}

}  // namespace
}  // namespace millrace::detail

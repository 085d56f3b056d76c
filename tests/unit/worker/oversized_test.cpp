#include "worker/oversized.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<StreamId>;

class OversizedTest : public ::testing::Test {
 protected:
  Ids left_out() const { return oversized_.left_out(clock_.now()); }
  bool blame() { return oversized_.blame(clock_.now()); }

  test::ManualClock clock_;
  Oversized oversized_{30s};
};

TEST_F(OversizedTest, IsLeftOutForAWhile) {
  EXPECT_EQ(left_out(), Ids{});
  oversized_.add({7, 0}, clock_.now());
  EXPECT_EQ(left_out(), (Ids{{7, 0}}));
  clock_.advance(29s);
  EXPECT_EQ(left_out(), (Ids{{7, 0}}));
  clock_.advance(1s);
  EXPECT_EQ(left_out(), Ids{});
}

TEST_F(OversizedTest, IsBlamedOnlyWhereItMayHaveBeenInThePage) {
  EXPECT_FALSE(blame());
  oversized_.add({7, 0}, clock_.now());
  EXPECT_FALSE(blame()) << "it was left out";
  clock_.advance(30s);
  EXPECT_TRUE(blame());
  EXPECT_EQ(left_out(), (Ids{{7, 0}}));
}

TEST_F(OversizedTest, IsLeftOutTwiceAsLongEachTimeUpToAnHour) {
  oversized_.add({7, 0}, clock_.now());
  clock_.advance(30s);
  EXPECT_TRUE(blame());
  clock_.advance(59s);
  EXPECT_FALSE(blame());
  clock_.advance(1s);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(blame());
    clock_.advance(1h);
    EXPECT_EQ(left_out(), Ids{});
  }
}

TEST_F(OversizedTest, IsLeftOutNoLessThanTheFirstTimeWhereThatIsMoreThanAnHour) {
  Oversized slow{2h};
  slow.add({7, 0}, clock_.now());
  clock_.advance(2h);
  EXPECT_TRUE(slow.blame(clock_.now()));
  clock_.advance(2h - 1s);
  EXPECT_EQ(slow.left_out(clock_.now()), (Ids{{7, 0}}));
}

TEST_F(OversizedTest, IsForgottenWhenItArrives) {
  oversized_.add({7, 0}, clock_.now());
  oversized_.add({8, 0}, clock_.now());
  clock_.advance(30s);
  const std::vector<OwnedEntry> arrived{{.id = {7, 0}}, {.id = {9, 0}}};
  oversized_.forget(EntryBatch::of(arrived));
  EXPECT_TRUE(blame());
  EXPECT_EQ(left_out(), (Ids{{8, 0}}));
  oversized_.clear();
  EXPECT_EQ(left_out(), Ids{});
}

TEST_F(OversizedTest, RemembersABoundedNumber) {
  for (std::uint64_t i = 1; i <= Oversized::kMost + 1; ++i) {
    oversized_.add({i, 0}, clock_.now());
    clock_.advance(1ms);
  }
  EXPECT_EQ(left_out().size(), Oversized::kMost);
  EXPECT_EQ(left_out().front(), (StreamId{2, 0})) << "that which was due soonest is asked for";
}

}  // namespace
}  // namespace millrace::detail

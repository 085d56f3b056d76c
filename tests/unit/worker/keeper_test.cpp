#include "worker/keeper.hpp"

#include "unit/worker/keeper_fixture.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::wait_until;

TEST_F(KeeperTest, SendsAcknowledgementsThatNobodyElseSends) {
  start();
  finish(1, 1);
  EXPECT_TRUE(wait_until([&] { return acked_ == 1; }));
  finish(2, 200);
  EXPECT_TRUE(wait_until([&] { return acked_ == 200; }));
  EXPECT_TRUE(wait_until([&] { return parts_.ledger.size() == 0; }));
  EXPECT_EQ(connects_, 1);
}

TEST_F(KeeperTest, SendsThemWhenItCanConnectAgain) {
  refuses_ = true;
  start();
  finish(1, 3);
  ASSERT_TRUE(wait_until([&] { return connects_ >= 3; }));
  EXPECT_EQ(parts_.ledger.size(), 3U);
  refuses_ = false;
  EXPECT_TRUE(wait_until([&] { return acked_ == 3; }));
  EXPECT_EQ(parts_.observer->lines().size(), 1U) << "a fault is said once";
}

TEST_F(KeeperTest, SendsTheLastOnesWhenNobodyWorksAnyMore) {
  start();
  ASSERT_TRUE(wait_until([&] { return connects_ == 1; }));
  finish(1, 3);
  end();
  EXPECT_EQ(acked_, 3U);
}

TEST_F(KeeperTest, SendsThemWhileItWaitsForTheReaderToEnd) {
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  const Work runs_on = running({2, 0});
  stop_.request_stop();
  if (const auto due = parts_.ledger.finish(runs_on.ticket, now())) keeper_.wake(*due);
  EXPECT_TRUE(wait_until([&] { return acked_ == 2; })) << "a handler may run for long yet";
}

TEST_F(KeeperTest, DoesNotConnectAgainAndAgainOnceItIsToStop) {
  refuses_ = true;
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return connects_ >= 2; }));
  stop_.request_stop();
  const int connects = connects_;
  const auto until = Clock::system().now() + 300ms;
  ASSERT_TRUE(wait_until([&] { return Clock::system().now() >= until; }));
  EXPECT_LE(connects_, connects + 2);
}

TEST_F(KeeperTest, EndsAlthoughItNeverConnected) {
  refuses_ = true;
  start();
  finish(1, 2);
  ASSERT_TRUE(wait_until([&] { return connects_ >= 1; }));
  stop_.request_stop();
  keeper_.work_ended(false);
  thread_.join();
  EXPECT_EQ(acked_, 0U);
  EXPECT_EQ(parts_.ledger.take_acks(9).ids.size(), 2U) << "none is forgotten on the way";
  EXPECT_FALSE(parts_.observer->lines().empty()) << "that they were not sent is said";
}

TEST_F(KeeperTest, ConnectsForNothingAtItsEndWhereThereIsNothingToDo) {
  keeper_.work_ended(false);
  keeper_.run(stop_.get_token());
  EXPECT_EQ(connects_, 0);
}

TEST_F(KeeperTest, UnblocksAReadThatWaits) {
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; })) << "it has a connection";
  visit_.emplace(parts_.gate, 7);
  stop_.request_stop();
  EXPECT_TRUE(wait_until([&] { return unblocks_ == 1; }));
  const ReadGate::Visit late{parts_.gate, 7};
  EXPECT_FALSE(late.is_allowed()) << "nor does another read begin";
}

TEST_F(KeeperTest, AsksAgainUntilTheReadHasEnded) {
  needed_unblocks_ = 5;
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  visit_.emplace(parts_.gate, 7);
  stop_.request_stop();
  EXPECT_TRUE(wait_until([&] { return unblocks_ == 5; }));
  EXPECT_TRUE(parts_.gate.wait_until_left(test::kGenerous));
}

TEST_F(KeeperTest, UnblocksNobodyWhereNoReadWaits) {
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  end();
  EXPECT_EQ(unblocks_, 0);
}

}  // namespace
}  // namespace millrace::detail

#include "worker/keeper.hpp"

#include "support/wait_until.hpp"
#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::wait_until;

/// A Keeper on a thread of its own, against connections that a function makes.
class KeeperTest : public ::testing::Test {
 protected:
  ~KeeperTest() override { end(); }

  std::unique_ptr<Connection> connect(const std::stop_token& stop) {
    ++connects_;
    if (stop.stop_requested()) throw Interrupted{};
    if (refuses_) throw ConnectError{"cannot connect"};
    return std::make_unique<ScriptedConnection>([this](const Words& words) -> std::string {
      if (words[0] == "XACK") acked_ += words.size() - 3;
      if (words[0] == "CLIENT" && words[1] == "UNBLOCK") {
        if (++unblocks_ < needed_unblocks_) return ":0\r\n";  // the read is still on its way
        visit_.reset();
        return ":1\r\n";
      }
      if (words[0] == "EVALSHA") return "*2\r\n:1\r\n:0\r\n";
      return words[0] == "XACK" ? ":" + std::to_string(words.size() - 3) + "\r\n" : "-ERR no\r\n";
    });
  }

  void start() {
    parts_.config.min_idle = 1h;  // so that nothing wakes it but what it is told
    thread_ = std::thread{[this] { keeper_.run(stop_.get_token()); }};
  }
  void end() {
    stop_.request_stop();
    keeper_.reader_ended(true);
    if (thread_.joinable()) thread_.join();
  }
  void finish(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i <= to; ++i) {
      const Ticket ticket = parts_.ledger.take({i, 0}).value();
      parts_.ledger.start(ticket);
      const auto due = parts_.ledger.finish(ticket, Clock::system().now());
      if (due) keeper_.wake(*due);
    }
  }

  std::atomic<int> connects_{0};
  std::atomic<bool> refuses_{false};
  std::atomic<std::size_t> acked_{0};
  std::atomic<int> unblocks_{0};
  std::atomic<int> needed_unblocks_{1};
  Parts parts_{[this](const std::stop_token& stop) { return connect(stop); }, &Clock::system()};
  std::optional<ReadGate::Visit> visit_;
  Handling handling_{parts_.config,   [](const Delivery&) {}, parts_.ledger,
                     parts_.counters, parts_.events,          Clock::system()};
  Reader reader_{parts_.shared, handling_, [](TimePoint) {}};
  Keeper keeper_{parts_.shared, reader_};
  std::stop_source stop_;
  std::thread thread_;
};

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

TEST_F(KeeperTest, SendsTheLastOnesWhenTheReaderHasEnded) {
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
  stop_.request_stop();
  finish(2, 2);
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
  keeper_.reader_ended(false);
  thread_.join();
  EXPECT_EQ(acked_, 0U);
  EXPECT_EQ(parts_.ledger.take_acks(9).ids.size(), 2U) << "none is forgotten on the way";
  EXPECT_FALSE(parts_.observer->lines().empty()) << "that they were not sent is said";
}

TEST_F(KeeperTest, ConnectsForNothingAtItsEndWhereThereIsNothingToDo) {
  keeper_.reader_ended(false);
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

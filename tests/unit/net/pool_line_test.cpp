#include "pool_test.hpp"

#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Gate;
using test::wait_until;

TEST_F(PoolTest, SaysWhatToDoWhenNoneBecomesFree) {
  make({.max_connections = 1, .wait_timeout = 20ms});
  use_at_once(1, [this] {
    try {
      call({.command = "XADD", .key = "orders"});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const PoolTimeout& error) {
      const std::string text = error.what();
      EXPECT_TRUE(
          text.starts_with("XADD on 'orders' at fake:1: no connection of the pool became "
                           "free within 20 ms (wait_timeout): all 1 of max_connections"))
          << text;
      EXPECT_NE(text.find("Raise max_connections"), std::string::npos) << text;
      EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
    }
  });
}

TEST_F(PoolTest, EndsACallInsideACallThatHoldsTheLastConnection) {
  make({.max_connections = 1, .wait_timeout = 20ms});
  servers.next_calls({[this](const CallSpec&) { EXPECT_THROW(call(), PoolTimeout); }});
  call();
}

TEST_F(PoolTest, WaitsForAConnectionThatComesBack) {
  make({.max_connections = 1, .wait_timeout = 1h});
  std::future<std::int64_t> waiting;
  use_at_once(1, [&] {
    waiting = std::async(std::launch::async, [this] { return call(); });
    ASSERT_TRUE(wait_until([this] { return pool->stats().waiting == 1; }));
  });
  ASSERT_EQ(waiting.wait_for(test::kGenerous), std::future_status::ready) << "was not woken";
  EXPECT_EQ(waiting.get(), 1);
  EXPECT_EQ(pool->stats().waiting, 0U);
}

TEST_F(PoolTest, DoesNotCountTheTimeInLineTowardsTheDeadlineOfACall) {
  make({.max_connections = 1, .wait_timeout = test::kGenerous});
  std::optional<TimePoint> deadline;
  std::future<std::int64_t> waiting;
  use_at_once(1, [&] {
    servers.next_calls({fail_unsent, [&](const CallSpec& spec) { deadline = spec.deadline; }});
    waiting = std::async(std::launch::async, [this] { return call(); });
    ASSERT_TRUE(wait_until([this] { return pool->stats().waiting == 1; }));
    clock.advance(1h);
  });
  EXPECT_EQ(waiting.get(), 2);
  EXPECT_EQ(deadline, clock.now() + ConnectionOptions{}.command_timeout);
}

TEST_F(PoolTest, ServesThoseWhoWaitInTheOrderInWhichTheyCame) {
  constexpr int kBorrowers = 5;
  make({.max_connections = 1, .wait_timeout = test::kGenerous});
  std::vector<std::string> order;  // guarded by there being one connection
  const auto note = [&order](const CallSpec& spec) { order.emplace_back(spec.key); };
  std::vector<std::string> expected;
  std::vector<std::future<void>> waiting;
  use_at_once(1, [&] {
    servers.next_calls({kBorrowers, note});
    for (int i = 0; i < kBorrowers; ++i) {
      expected.push_back(std::to_string(i));
      waiting.push_back(std::async(std::launch::async, [this, key = expected.back()] {
        call({.command = "PING", .key = key});
      }));
      ASSERT_TRUE(wait_until([&] { return pool->stats().waiting == expected.size(); }));
    }
  });
  for (auto& each : waiting) each.get();
  EXPECT_EQ(order, expected);
}

TEST_F(PoolTest, GivesThePlaceOfABrokenConnectionToTheNextInLine) {
  make({.max_connections = 1, .wait_timeout = test::kGenerous});
  Gate gate;
  servers.next_calls({[&gate](const CallSpec& spec) {
    gate.pass();
    fail_unknown(spec);
  }});
  auto broken = std::async(std::launch::async, [this] { return call(); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  auto waiting = std::async(std::launch::async, [this] { return call(); });
  ASSERT_TRUE(wait_until([this] { return pool->stats().waiting == 1; }));
  gate.open();
  EXPECT_THROW(broken.get(), IoError);
  EXPECT_EQ(waiting.get(), 2);
  EXPECT_EQ(servers.most_open, 1) << "the broken one was closed first";
}

TEST_F(PoolTest, StopsWaitingWhenItIsStopped) {
  make({.max_connections = 1, .wait_timeout = test::kGenerous});
  std::stop_source source;
  use_at_once(1, [&] {
    auto waiting = std::async(std::launch::async,
                              [&] { call({.command = "XREAD", .stop = source.get_token()}); });
    ASSERT_TRUE(wait_until([this] { return pool->stats().waiting == 1; }));
    source.request_stop();
    EXPECT_THROW(waiting.get(), Interrupted);
    EXPECT_EQ(pool->stats().waiting, 0U);
  });
  EXPECT_EQ(pool->stats().timeouts, 0U);
}

TEST_F(PoolTest, FreesThePlaceOfAConnectionThatCouldNotBeMade) {
  make({.max_connections = 1, .wait_timeout = 0ms});
  servers.refuses = true;
  for (int i = 0; i < 3; ++i) EXPECT_THROW(call(), ConnectError);
  EXPECT_EQ(pool->stats().open, 0U);
  servers.refuses = false;
  EXPECT_EQ(call(), 1);
}

}  // namespace
}  // namespace millrace::detail

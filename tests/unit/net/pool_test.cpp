#include "net/pool.hpp"

#include <millrace/error.hpp>

#include "fake_topology.hpp"
#include "support/gate.hpp"
#include "support/manual_clock.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Gate;
using test::wait_until;

constexpr auto write_ping = [](RequestBuffer& request) { request.command("PING", 1); };

void fail_unsent(const CallSpec&) { throw IoError{"not sent", Outcome::kNotApplied}; }
void fail_unknown(const CallSpec&) { throw IoError{"sent", Outcome::kUnknown}; }

class PoolTest : public ::testing::Test {
 protected:
  void make(PoolOptions options = {}) {
    pool.emplace(std::make_unique<FakeTopology>(servers), ConnectionOptions{}, options, clock);
  }

  /// One call; the number of the connection that it ran on.
  std::int64_t call(const CallSpec& spec = {.command = "PING", .key = "k"}) {
    return pool->call(spec, write_ping).root().integer();
  }

  /// So many calls at once, each on a connection of its own, in the order of its number.
  void use_at_once(
      std::size_t count, const std::function<void()>& meanwhile = [] {}) {
    Gate gate;
    servers.next_calls({count, [&gate](const CallSpec&) { gate.pass(); }});
    std::vector<std::future<std::int64_t>> calls;
    for (std::size_t i = 0; i < count; ++i) {
      calls.push_back(std::async(std::launch::async, [this] { return call(); }));
      ASSERT_TRUE(gate.wait_for_arrivals(i + 1));
    }
    meanwhile();
    gate.open();
    for (auto& each : calls) each.get();
  }

  test::ManualClock clock;
  FakeServers servers;
  std::optional<Pool> pool;
};

TEST_F(PoolTest, MakesNoConnectionUntilOneIsNeeded) {
  make({.min_idle_connections = 5});
  EXPECT_EQ(servers.made, 0U);
  EXPECT_EQ(pool->stats().open, 0U);
}

TEST_F(PoolTest, UsesAConnectionAgain) {
  make();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(call(), 1);
  const auto stats = pool->stats();
  EXPECT_EQ(stats.open, 1U);
  EXPECT_EQ(stats.idle, 1U);
  EXPECT_EQ(stats.in_use, 0U);
  EXPECT_EQ(stats.created, 1U);
  EXPECT_EQ(stats.closed, 0U);
}

TEST_F(PoolTest, LendsTheOneThatWasUsedLast) {
  make({.max_connections = 3});
  use_at_once(3);
  const auto last = call();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(), last);
}

TEST_F(PoolTest, HasNoMoreConnectionsThanItMay) {
  make({.max_connections = 2, .wait_timeout = 0ms});
  use_at_once(2, [this] {
    EXPECT_THROW(call(), PoolTimeout);
    const auto stats = pool->stats();
    EXPECT_EQ(stats.open, 2U);
    EXPECT_EQ(stats.in_use, 2U);
    EXPECT_EQ(stats.idle, 0U);
    EXPECT_EQ(stats.timeouts, 1U);
  });
  EXPECT_EQ(servers.most_open, 2);
}

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

TEST_F(PoolTest, SendsAgainWhatWasNotSent) {
  make();
  servers.next_calls({fail_unsent});
  EXPECT_EQ(call(), 2) << "on a new connection";
  EXPECT_EQ(pool->stats().open, 1U);
}

TEST_F(PoolTest, SendsAgainOnlyOnce) {
  make();
  servers.next_calls({fail_unsent, fail_unsent});
  EXPECT_THROW(call(), IoError);
  EXPECT_EQ(servers.made, 2U);
}

TEST_F(PoolTest, SendsAgainOnANewConnectionAlthoughOthersAreIdle) {
  make({.max_connections = 3});
  use_at_once(3);
  servers.next_calls({fail_unsent});
  EXPECT_EQ(call(), 4);
  EXPECT_EQ(servers.most_open, 3);
}

TEST_F(PoolTest, DoesNotSendAgainWhatMayHaveBeenApplied) {
  make();
  servers.next_calls({fail_unknown});
  EXPECT_THROW(call({.command = "XADD"}), IoError);
  EXPECT_EQ(servers.made, 1U);
}

TEST_F(PoolTest, SendsAReadAgain) {
  make();
  servers.next_calls({fail_unknown});
  EXPECT_EQ(call({.command = "XLEN", .repeat = Repeat::kSafe}), 2);
}

TEST_F(PoolTest, DoesNotSendAgainAfterATimeoutOrAServersError) {
  make();
  const CallSpec read{.command = "XLEN", .repeat = Repeat::kSafe};
  servers.next_calls({[](const CallSpec&) { throw TimeoutError{"late"}; }});
  EXPECT_THROW(call(read), TimeoutError);
  servers.next_calls({[](const CallSpec&) { throw ReadOnlyError{"replica"}; }});
  EXPECT_THROW(call(read), ReadOnlyError);
}

TEST_F(PoolTest, SendsAgainWithinTheDeadlineOfTheFirstTry) {
  make();
  const auto deadline = clock.now() + 1s + 2s;  // the command time-out, and the block time
  std::optional<TimePoint> second;
  servers.next_calls({[this](const CallSpec& spec) {
                        clock.advance(500ms);
                        fail_unsent(spec);
                      },
                      [&second](const CallSpec& spec) { second = spec.deadline; }});
  call({.command = "XREAD", .block = 2s});
  EXPECT_EQ(second, deadline);
  EXPECT_EQ(servers.connect_deadlines().back(), deadline);
}

TEST_F(PoolTest, RepeatsAPipelineOfWhichNothingWasSent) {
  make();
  const auto pipeline = [this](const CallSpec& spec) {
    std::int64_t connection = 0;
    const auto result = pool->pipeline(
        spec, write_ping, [&](std::size_t, Reply reply) { connection = reply.root().integer(); });
    return std::pair{result.error.has_value(), connection};
  };
  servers.next_calls({fail_unsent});
  EXPECT_EQ(pipeline({.command = "XADD"}), (std::pair{false, std::int64_t{2}}));
  servers.next_calls({fail_unknown});
  EXPECT_EQ(pipeline({.command = "XADD"}), (std::pair{true, std::int64_t{0}}));
  servers.next_calls({fail_unknown});
  EXPECT_EQ(pipeline({.command = "XLEN", .repeat = Repeat::kSafe}),
            (std::pair{false, std::int64_t{4}}));
}

TEST_F(PoolTest, SaysInThePipelinesResultThatNoConnectionCouldBeHad) {
  make();
  servers.refuses = true;
  const auto result =
      pool->pipeline({.command = "XADD"}, write_ping, [](std::size_t, Reply) { FAIL(); });
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code(), Error::Code::kConnect);
  EXPECT_EQ(result.sent, 0U);
}

TEST_F(PoolTest, ThrowsWhatTheWriterOfAPipelineThrows) {
  make();
  EXPECT_THROW(pool->pipeline(
                   {.command = "XADD"}, [](RequestBuffer&) { throw InvalidArgument{"too long"}; },
                   [](std::size_t, Reply) {}),
               InvalidArgument);
  EXPECT_EQ(pool->stats().idle, 1U) << "the connection is as good as before";
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

TEST_F(PoolTest, MakesConnectionsOutsideItsBound) {
  make({.max_connections = 1, .wait_timeout = 0ms});
  use_at_once(1, [this] {
    const auto own = pool->connect("k");
    EXPECT_EQ(own->client_id(), 2U);
    EXPECT_EQ(pool->stats().open, 1U);
    EXPECT_EQ(pool->stats().created, 1U);
  });
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(pool->connect("k", source.get_token()), Interrupted);
}

// Every place is taken, given back, handed over and lost in every order that comes.
TEST_F(PoolTest, KeepsItsBooksUnderManyThreads) {
  constexpr int kThreads = 16;
  constexpr int kCalls = 1'000;
  make({.max_connections = 4, .wait_timeout = test::kGenerous});
  std::atomic<int> served{0};
  std::atomic<int> broken{0};
  std::atomic<bool> done{false};
  std::thread watcher{[&] {
    while (!done) {
      const auto stats = pool->stats();
      EXPECT_LE(stats.open, 4U);
      EXPECT_EQ(stats.open, stats.idle + stats.in_use);
      EXPECT_LE(stats.created - stats.closed, stats.open);
    }
  }};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        if ((i + t) % 97 == 0) servers.next_calls({fail_unknown});
        try {
          call();
          ++served;
        } catch (const IoError&) {
          ++broken;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  done = true;
  watcher.join();
  EXPECT_EQ(served + broken, kThreads * kCalls);
  EXPECT_GT(broken, 0);
  EXPECT_LE(servers.most_open, 4);
  const auto stats = pool->stats();
  EXPECT_EQ(stats.in_use, 0U);
  EXPECT_EQ(stats.waiting, 0U);
  EXPECT_EQ(stats.created, servers.made);
  EXPECT_EQ(stats.created - stats.closed, stats.open);
  EXPECT_EQ(static_cast<std::size_t>(servers.open), stats.open);
}

}  // namespace
}  // namespace millrace::detail

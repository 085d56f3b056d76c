#include "pool_test.hpp"

#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

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

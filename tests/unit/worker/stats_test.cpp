#include "worker/stats.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

TEST(WorkerCounters, BecomeStatsOneForOne) {
  Counters counters;
  count(counters.delivered, 10);
  count(counters.succeeded, 2);
  count(counters.failed, 3);
  count(counters.retried, 13);
  count(counters.dead_lettered, 14);
  count(counters.reclaimed, 4);
  count(counters.released, 5);
  count(counters.leases_lost, 6);
  count(counters.trimmed, 7);
  count(counters.connections, 9);
  counters.handler_time.add(std::chrono::seconds{1});
  counters.age.add(std::chrono::seconds{2});
  const auto now = std::chrono::system_clock::now();
  counters.last_completion = now;
  const WorkerStats stats = counters.snapshot(11, 12);
  EXPECT_EQ(stats.handler_time.sum, std::chrono::seconds{1});
  EXPECT_EQ(stats.age.sum, std::chrono::seconds{2});
  EXPECT_EQ(stats.last_completion, now);
  EXPECT_EQ(stats.delivered, 10U);
  EXPECT_EQ(stats.succeeded, 2U);
  EXPECT_EQ(stats.failed, 3U);
  EXPECT_EQ(stats.retried, 13U);
  EXPECT_EQ(stats.dead_lettered, 14U);
  EXPECT_EQ(stats.reclaimed, 4U);
  EXPECT_EQ(stats.released, 5U);
  EXPECT_EQ(stats.leases_lost, 6U);
  EXPECT_EQ(stats.trimmed, 7U);
  EXPECT_EQ(stats.reconnects, 8U) << "the first connection is none";
  EXPECT_EQ(stats.in_flight, 11U);
  EXPECT_EQ(stats.queued_bytes, 12U);
}

TEST(WorkerCounters, HaveNoReconnectsBeforeTheFirstConnection) {
  Counters counters;
  EXPECT_EQ(counters.snapshot(0, 0).reconnects, 0U);
  count(counters.connections);
  EXPECT_EQ(counters.snapshot(0, 0).reconnects, 0U);
  count(counters.connections);
  EXPECT_EQ(counters.snapshot(0, 0).reconnects, 1U);
}

TEST(WorkerCounters, HaveNoLastCompletionBeforeTheFirst) {
  EXPECT_EQ(Counters{}.snapshot(0, 0).last_completion, std::nullopt);
}

TEST(WorkerCounters, MissNothingFromManyThreads) {
  Counters counters;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1'000; ++j) count(counters.delivered);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters.snapshot(0, 0).delivered, 4'000U);
}

}  // namespace
}  // namespace millrace::detail

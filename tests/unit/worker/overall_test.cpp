#include "worker/overall.hpp"

#include "worker/ledger.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::detail {
namespace {

using enum WorkerState;

WorkerState of(const std::vector<WorkerState>& states) { return overall_state(states); }

TEST(OverallState, IsAnEndOnlyWhereAllHaveEnded) {
  EXPECT_EQ(of({kStopped, kStopped}), kStopped);
  EXPECT_EQ(of({kFailed, kFailed}), kFailed);
  EXPECT_EQ(of({kStopped, kFailed, kStopped}), kFailed);
  EXPECT_EQ(of({kFailed, kRunning}), kDegraded) << "the others go on";
  EXPECT_EQ(of({kFailed, kPaused, kStarting}), kDegraded);
  EXPECT_EQ(of({kFailed, kDraining}), kDraining);
  EXPECT_EQ(of({kStopped, kDegraded}), kDraining) << "it has been told to stop, too";
}

TEST(OverallState, TellsTheMostOfThoseThatRun) {
  EXPECT_EQ(of({kCreated, kCreated}), kCreated);
  EXPECT_EQ(of({kRunning, kCreated}), kStarting);
  EXPECT_EQ(of({kRunning, kStarting, kPaused}), kStarting);
  EXPECT_EQ(of({kRunning, kRunning}), kRunning);
  EXPECT_EQ(of({kRunning, kPaused}), kPaused);
  EXPECT_EQ(of({kRunning, kPaused, kStarting, kDegraded}), kDegraded);
  EXPECT_EQ(of({kRunning, kDegraded, kDraining}), kDraining);
}

TEST(SumOfStats, HasTheLatestCompletionOfAll) {
  const WorkerStats none;
  const WorkerStats early{.last_completion = WallTime{std::chrono::seconds{1}}};
  const WorkerStats late{.last_completion = WallTime{std::chrono::seconds{2}}};
  WorkerStats sum;
  for (const WorkerStats* const one : {&none, &late, &early}) add(sum, *one);
  EXPECT_EQ(sum.last_completion, late.last_completion);
}

TEST(SumOfStats, HasEachNumber) {
  using Seconds = Histogram::Seconds;
  const WorkerStats one{
      .delivered = 1,
      .succeeded = 2,
      .failed = 3,
      .retried = 4,
      .dead_lettered = 5,
      .reclaimed = 6,
      .released = 7,
      .leases_lost = 8,
      .trimmed = 9,
      .reconnects = 10,
      .in_flight = 11,
      .queued_bytes = 12,
      .last_completion = WallTime{std::chrono::seconds{13}},
      .handler_time = {.bounds = {Seconds{1}}, .counts = {3, 4}, .sum = Seconds{14}, .count = 7},
      .age = {.bounds = {Seconds{2}}, .counts = {5, 6}, .sum = Seconds{15}, .count = 11},
      .stream = "s",
      .group = "g",
      .consumer = "alice"};
  WorkerStats sum;
  add(sum, one);
  add(sum, one);
  EXPECT_EQ(sum.delivered, 2U);
  EXPECT_EQ(sum.succeeded, 4U);
  EXPECT_EQ(sum.failed, 6U);
  EXPECT_EQ(sum.retried, 8U);
  EXPECT_EQ(sum.dead_lettered, 10U);
  EXPECT_EQ(sum.reclaimed, 12U);
  EXPECT_EQ(sum.released, 14U);
  EXPECT_EQ(sum.leases_lost, 16U);
  EXPECT_EQ(sum.trimmed, 18U);
  EXPECT_EQ(sum.reconnects, 20U);
  EXPECT_EQ(sum.in_flight, 22U);
  EXPECT_EQ(sum.queued_bytes, 24U);
  EXPECT_EQ(sum.last_completion, WallTime{std::chrono::seconds{13}});
  EXPECT_EQ(sum.handler_time.bounds, std::vector{Seconds{1}});
  EXPECT_EQ(sum.handler_time.counts, (std::vector<std::uint64_t>{6, 8}));
  EXPECT_EQ(sum.handler_time.sum, Seconds{28});
  EXPECT_EQ(sum.handler_time.count, 14U);
  EXPECT_EQ(sum.age.counts, (std::vector<std::uint64_t>{10, 12}));
  EXPECT_EQ(sum.age.count, 22U);
  EXPECT_EQ(sum.stream, "s");
  EXPECT_EQ(sum.group, "g");
  EXPECT_EQ(sum.consumer, "") << "of no one consumer";
}

}  // namespace
}  // namespace millrace::detail

#include "worker/overall.hpp"

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

TEST(SumOfStats, HasEachNumber) {
  const WorkerStats one{.delivered = 1,
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
                        .queued_bytes = 12};
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
}

}  // namespace
}  // namespace millrace::detail

#include "workload.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace chaos {
namespace {

constexpr std::uint64_t kEntries = 20'000;

Task task_of(const millrace::OwnedFields& fields) {
  const millrace::OwnedEntry owned{.id = {1, 0}, .fields = fields};
  const auto batch = millrace::EntryBatch::of({&owned, 1});
  return Task::of(batch.front());
}

TEST(ChaosWorkload, IsTheSameForTheSameSeed) {
  const Workload one{1, kEntries}, same{1, kEntries}, other{2, kEntries};
  EXPECT_EQ(one.fields(17), same.fields(17));
  EXPECT_NE(one.fields(17), other.fields(17));
}

TEST(ChaosWorkload, HasTenPoisonEntriesOfWhichOneAborts) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::map<Poison, std::size_t> counts;
    const Workload workload{seed, 1'000};
    for (std::uint64_t i = 0; i < workload.size(); ++i)
      ++counts[task_of(workload.fields(i)).poison];
    EXPECT_EQ(counts[Poison::kNone], 990U) << seed;
    EXPECT_EQ(counts[Poison::kAborts], 1U) << seed;
    EXPECT_EQ(counts.size(), 6U) << "all kinds, and none";
  }
}

TEST(ChaosWorkload, FailsTwoOfAHundredCalls) {
  const Workload workload{3, kEntries};
  std::size_t failed = 0;
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    const Task task = task_of(workload.fields(i));
    for (const char* group : {kPlain, kOrdered}) failed += task.fails(group, 1) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(failed) / (2 * kEntries), 0.02, 0.003);
}

TEST(ChaosWorkload, NeverFailsAnEntrySoOftenThatItWouldBeDeadLettered) {
  const Workload workload{3, kEntries};
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    const Task task = task_of(workload.fields(i));
    for (std::uint64_t attempt = 3; attempt <= kMaxDeliveries; ++attempt) {
      EXPECT_FALSE(task.fails(kPlain, attempt));
    }
  }
}

TEST(ChaosWorkload, HasCallsThatTakeLongerThanALeaseLasts) {
  const Workload workload{3, kEntries};
  std::size_t longer = 0, some = 0;
  std::set<std::uint64_t> lanes;
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    const Task task = task_of(workload.fields(i));
    EXPECT_EQ(task.number, i);
    lanes.insert(task.lane);
    const auto duration = task.duration(kPlain, 1);
    longer += duration > kMinIdle ? 1 : 0;
    some += duration.count() > 0 ? 1 : 0;
  }
  EXPECT_GT(longer, 0U);
  EXPECT_LT(longer, 20U);
  EXPECT_GT(some, longer);
  EXPECT_EQ(lanes.size(), 64U);
}

}  // namespace
}  // namespace chaos

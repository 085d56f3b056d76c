#include "report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chaos {
namespace {

using millrace::test::Violation;
using ::testing::HasSubstr;
using ::testing::Not;

/// Of three minutes in which each fault happened five times.
Report good() {
  Report report{.options = {.seed = 42}, .draws = 180};
  for (const Fault fault : kFaults) report.happened[fault] = 5;
  return report;
}

TEST(ChaosReport, SaysThatAllIsWell) {
  EXPECT_TRUE(good().is_good());
  EXPECT_THAT(good().text(), HasSubstr("all is as it must be"));
  EXPECT_THAT(good().text(), HasSubstr("seed 42"));
}

TEST(ChaosReport, CountsEachFault) {
  Report report = good();
  report.happened[Fault::kFlushScripts] = 1'234;
  EXPECT_THAT(report.text(), ::testing::ContainsRegex("SCRIPT FLUSH +1234"));
}

TEST(ChaosReport, IsNotGoodIfAFaultHappenedTooSeldom) {
  Report report = good();
  report.happened[Fault::kCutReply] = 4;
  EXPECT_FALSE(report.is_good());
  EXPECT_THAT(report.text(), HasSubstr("cut in mid-reply happened 4 times, and has to 5 times"));
  report.happened.erase(Fault::kCutReply);
  EXPECT_FALSE(report.is_good());
  EXPECT_THAT(report.text(), Not(HasSubstr("all is as it must be")));
}

TEST(ChaosReport, IsNotGoodWithAViolationOrAProblem) {
  Report violated = good();
  violated.violations.push_back({.kind = Violation::Kind::kLost, .group = "g", .id = {5, 1}});
  EXPECT_FALSE(violated.is_good());
  EXPECT_THAT(violated.text(), HasSubstr("lost: g 5-1"));
  EXPECT_THAT(violated.text(), HasSubstr("VIOLATED: 1 times lost"));

  Report problem = good();
  problem.problems.emplace_back("a worker ended by itself");
  EXPECT_FALSE(problem.is_good());
  EXPECT_THAT(problem.text(), HasSubstr("a worker ended by itself"));
}

TEST(ChaosReport, ShowsSomeOfManyViolationsAndCountsAll) {
  Report report = good();
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    report.violations.push_back({.kind = Violation::Kind::kLost, .id = {i, 0}});
  }
  EXPECT_LT(report.text().size(), 4'000U);
  EXPECT_THAT(report.text(), HasSubstr("VIOLATED: 1000 times lost"));
}

}  // namespace
}  // namespace chaos

#include "report.hpp"

#include <millrace/fields.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checksum.hpp"

namespace pipeline {
namespace {

const Appended kAppended{{{1, 0}, 11}, {{2, 0}, 22}, {{3, 0}, 33}};

TEST(Tally, CountsWhatWasHandled) {
  const auto all =
      tally(kAppended,
            std::vector<Handled>{{{1, 0}, 11, false}, {{2, 0}, 22, true}, {{3, 0}, 33, false}});
  EXPECT_EQ(all.processed, 3U);
  EXPECT_EQ(all.reclaimed, 1U);
  EXPECT_EQ(all.duplicates + all.lost + all.damaged, 0U);
}

TEST(Tally, AnEntryThatNoHandlerHadIsLost) {
  EXPECT_EQ(tally(kAppended, std::vector<Handled>{{{1, 0}, 11, false}}).lost, 2U);
  EXPECT_EQ(tally(kAppended, {}).lost, 3U);
}

TEST(Tally, AnEntryThatIsHandledAgainIsADuplicate) {
  const auto twice = tally(
      kAppended, std::vector<Handled>{{{1, 0}, 11, false}, {{1, 0}, 11, true}, {{1, 0}, 11, true}});
  EXPECT_EQ(twice.processed, 1U);
  EXPECT_EQ(twice.duplicates, 2U);
  EXPECT_EQ(twice.reclaimed, 1U);
}

TEST(Tally, AnEntryWithOtherBytesIsDamagedAndStillLost) {
  const auto other = tally(kAppended, std::vector<Handled>{{{1, 0}, 12, false}});
  EXPECT_EQ(other.damaged, 1U);
  EXPECT_EQ(other.processed, 0U);
  EXPECT_EQ(other.lost, 3U);
}

TEST(Tally, AnEntryThatNobodyAppendedIsDamaged) {
  EXPECT_EQ(tally(kAppended, std::vector<Handled>{{{9, 0}, 11, false}}).damaged, 1U);
}

TEST(Report, IsGoodOnlyIfNothingIsMissing) {
  const Report good{.records = 3,
                    .entries = 3,
                    .killed = "index-1",
                    .held = 2,
                    .groups = {{"index", {.processed = 3}}},
                    .replayed = 3,
                    .trimmed = 3};
  EXPECT_TRUE(good.is_good());

  const auto is_good_with = [&good](auto change) {
    Report report = good;
    change(report);
    return report.is_good();
  };
  EXPECT_TRUE(is_good_with([](Report& r) { r.groups[0].tally.duplicates = 1; }));
  EXPECT_FALSE(is_good_with([](Report& r) { r.groups[0].tally.lost = 1; }));
  EXPECT_FALSE(is_good_with([](Report& r) { r.groups[0].tally.damaged = 1; }));
  EXPECT_FALSE(is_good_with([](Report& r) { r.entries = 2; }));
  EXPECT_FALSE(is_good_with([](Report& r) { r.replayed = 2; }));
  EXPECT_FALSE(is_good_with([](Report& r) { r.trimmed = 2; }));
  EXPECT_FALSE(is_good_with([](Report& r) { r.held = 0; }));
}

TEST(Report, SaysItInATable) {
  const Report report{.records = 807,
                      .entries = 806,
                      .killed = "index-1",
                      .held = 14,
                      .groups = {{"index", {.processed = 806, .lost = 1}}, {"audit", {}}}};
  const auto table = report.table();
  EXPECT_NE(table.find("records in                           807\n"), table.npos) << table;
  EXPECT_NE(table.find("lost                                   1           0\n"), table.npos)
      << table;
  EXPECT_NE(table.find("held by the killed index-1            14\n"), table.npos) << table;
}

TEST(Checksum, TellsApartWhatDiffersInOneByteOrInItsBounds) {
  using millrace::OwnedFields;
  const auto of = [](const OwnedFields& fields) { return checksum(fields); };
  EXPECT_EQ(of({{"a", "1"}}), of({{"a", "1"}}));
  EXPECT_NE(of({{"a", "1"}}), of({{"a", "2"}}));
  EXPECT_NE(of({{"a", "1"}}), of({{"a1", ""}}));
  EXPECT_NE(of({{"a", "1"}, {"b", "2"}}), of({{"b", "2"}, {"a", "1"}}));
  EXPECT_NE(of({{"a", std::string{"x\0", 2}}}), of({{"a", "x"}}));
}

}  // namespace
}  // namespace pipeline

/// Batches and entries, as those who read write them. Run under AddressSanitizer, these also show
/// that what compiles is safe.

#include <millrace/entry.hpp>
#include <millrace/stream_info.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {
namespace {

static_assert(std::ranges::random_access_range<EntryBatch>);
static_assert(std::ranges::contiguous_range<Entry>);
static_assert(std::same_as<std::ranges::range_reference_t<EntryBatch>, const Entry&>);
static_assert(std::same_as<std::ranges::range_reference_t<Entry>, const Field&>);
static_assert(!std::is_copy_constructible_v<EntryBatch> && !std::is_copy_assignable_v<EntryBatch>);
static_assert(std::is_nothrow_move_constructible_v<EntryBatch>);
static_assert(std::is_nothrow_move_assignable_v<EntryBatch>);
static_assert(std::is_nothrow_default_constructible_v<EntryBatch>);
static_assert(std::copyable<Entry>);

/// As EventStream::replay() and autoclaim() return what they have read.
EntryBatch replay() {
  return EntryBatch::of(std::array{
      OwnedEntry{.id = {1, 0}, .fields = {{"i", "the first, and too long to be kept inside"}}},
      OwnedEntry{.id = {2, 0}, .fields = {{"i", "second"}, {"j", "more"}}},
  });
}
AutoclaimResult autoclaim() { return {.claimed = replay()}; }

constexpr std::string_view kFirst{"the first, and too long to be kept inside"};

TEST(ReadingCalls, ALoopOverATemporaryBatch) {
  std::vector<std::string> values;
  for (const auto& entry : replay()) values.emplace_back(entry.at("i"));
  EXPECT_EQ(values, (std::vector<std::string>{std::string{kFirst}, "second"}));
}

TEST(ReadingCalls, ALoopOverAMemberOfATemporaryResult) {
  std::vector<StreamId> ids;
  for (auto& entry : autoclaim().claimed) ids.push_back(entry.id());
  EXPECT_EQ(ids, (std::vector<StreamId>{{1, 0}, {2, 0}}));
}

TEST(ReadingCalls, AnEntryOutlivesTheMoveOfItsBatch) {
  auto b = replay();
  const Entry& e = b[0];
  auto c = std::move(b);
  EXPECT_EQ(e.at("i"), kFirst);
  EXPECT_EQ(&e, &c[0]);
}

TEST(ReadingCalls, ALoopOverTheFieldsOfAnEntry) {
  const auto batch = replay();
  OwnedFields seen;
  for (auto& [name, value] : batch[1]) seen.emplace_back(name, value);
  EXPECT_EQ(seen, (OwnedFields{{"i", "second"}, {"j", "more"}}));
}

TEST(ReadingCalls, TheRangeAlgorithms) {
  const auto batch = replay();
  EXPECT_EQ(std::ranges::distance(batch), 2);
  const auto second =
      std::ranges::find_if(batch, [](const Entry& entry) { return entry.find("j").has_value(); });
  ASSERT_NE(second, batch.end());
  EXPECT_EQ(second->id(), (StreamId{2, 0}));
}

TEST(ReadingCalls, ABatchThatIsMadeFirstAndFilledLater) {
  EntryBatch batch;
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.begin(), batch.end());
  batch = replay();
  EXPECT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch.front().id(), (StreamId{1, 0}));
  EXPECT_EQ(batch.back().id(), (StreamId{2, 0}));
}

TEST(ReadingCalls, OwnedEntriesOutliveTheirBatch) {
  OwnedEntry kept;
  {
    const auto batch = replay();
    kept = batch[0].to_owned();
  }
  EXPECT_EQ(kept, (OwnedEntry{.id = {1, 0}, .fields = {{"i", std::string{kFirst}}}}));
}

}  // namespace
}  // namespace millrace

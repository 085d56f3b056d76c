#include <millrace/entry.hpp>

#include <gtest/gtest.h>

#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {
namespace {

static_assert(std::ranges::random_access_range<EntryBatch>);
static_assert(std::ranges::contiguous_range<Entry>);
static_assert(!std::is_copy_constructible_v<EntryBatch>);
static_assert(std::is_nothrow_move_constructible_v<EntryBatch>);
static_assert(std::is_nothrow_move_assignable_v<EntryBatch>);

std::vector<OwnedEntry> three_entries() {
  return {
      {.id = {1, 0}, .fields = {{"f", "1"}, {"f", "2"}, {"z", "3"}, {"a", "4"}}},
      {.id = {2, 0}, .deleted = true},
      {.id = {3, 7}, .fields = {{"", ""}, {std::string("\0\r\n", 3), std::string(5'000, 'x')}}}};
}

TEST(EntryBatch, OwnsCopiesOfEverythingInOrder) {
  EntryBatch batch;
  {
    auto entries = three_entries();
    batch = EntryBatch::of(entries);
    entries[0].fields[0].second = "changed";
  }

  std::vector<OwnedEntry> copies;
  for (const Entry& entry : batch) copies.push_back(entry.to_owned());
  EXPECT_EQ(copies, three_entries());
  EXPECT_EQ(batch.ids(), (std::vector<StreamId>{{1, 0}, {2, 0}, {3, 7}}));
}

TEST(EntryBatch, KeepsItsViewsValidWhenItMoves) {
  EntryBatch batch = EntryBatch::of(three_entries());
  const Entry& entry = batch[0];
  const std::string_view value = entry.at("z");

  EntryBatch moved = std::move(batch);
  EntryBatch assigned;
  assigned = std::move(moved);

  EXPECT_EQ(value, "3");
  EXPECT_EQ(entry.at("a"), "4");
  EXPECT_EQ(&assigned[0], &entry);
}

TEST(EntryBatch, IsEmptyByDefaultAndAfterAMove) {
  EntryBatch batch;
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.begin(), batch.end());
  EXPECT_TRUE(batch.ids().empty());

  batch = EntryBatch::of(three_entries());
  const EntryBatch moved = std::move(batch);
  EXPECT_TRUE(batch.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.size(), 3U);
  EXPECT_TRUE(EntryBatch::of({}).empty());
}

TEST(EntryBatch, HasAFirstAndALastEntry) {
  const EntryBatch batch = EntryBatch::of(three_entries());
  EXPECT_EQ(batch.front().id(), (StreamId{1, 0}));
  EXPECT_EQ(batch.back().id(), (StreamId{3, 7}));
}

TEST(Entry, FindsTheFirstFieldOfAName) {
  const EntryBatch batch = EntryBatch::of(three_entries());
  EXPECT_EQ(batch[0].find("f"), "1");
  EXPECT_EQ(batch[0].at("f"), "1");
  EXPECT_EQ(batch[0].find("F"), std::nullopt);
  EXPECT_EQ(batch[2].find(""), "");
}

TEST(Entry, NamesItselfAndTheFieldThatItDoesNotHave) {
  const EntryBatch batch = EntryBatch::of(three_entries());
  try {
    batch[0].at("missing");
    FAIL();
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "entry 1-0 has no field 'missing'");
  }
  try {
    batch[1].at("f");
    FAIL();
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "entry 2-0 has no field 'f': it is no longer in the stream");
  }
}

TEST(Entry, IsARangeOfFields) {
  const EntryBatch batch = EntryBatch::of(three_entries());
  std::string seen;
  for (const auto& [name, value] : batch[0])
    seen.append(name).append("=").append(value).append(" ");

  EXPECT_EQ(seen, "f=1 f=2 z=3 a=4 ");
  EXPECT_EQ(batch[0].size(), 4U);
  EXPECT_EQ(batch[0][2], (Field{"z", "3"}));
}

TEST(Entry, ThatIsDeletedHasNoFields) {
  const EntryBatch batch = EntryBatch::of(three_entries());
  EXPECT_TRUE(batch[1].deleted());
  EXPECT_TRUE(batch[1].empty());
  EXPECT_FALSE(batch[0].deleted());
}

TEST(Entry, IsEmptyByDefault) {
  const Entry entry;
  EXPECT_EQ(entry.id(), StreamId{});
  EXPECT_TRUE(entry.empty());
  EXPECT_FALSE(entry.deleted());
}

}  // namespace
}  // namespace millrace

#include <millrace/entry.hpp>
#include <millrace/fields.hpp>

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {
namespace {

static_assert(!std::is_copy_constructible_v<Fields>);
static_assert(!std::is_move_constructible_v<Fields>);

OwnedFields seen(const Fields& fields) {
  OwnedFields all;
  fields.for_each([&all](const Field& field) { all.emplace_back(field.first, field.second); });
  EXPECT_EQ(all.size(), fields.size());
  EXPECT_EQ(all.empty(), fields.empty());
  return all;
}

TEST(Fields, TakesAListOfPairs) {
  EXPECT_EQ(seen({{"a", "1"}}), (OwnedFields{{"a", "1"}}));
  EXPECT_EQ(seen({{"a", "1"}, {"b", "2"}}), (OwnedFields{{"a", "1"}, {"b", "2"}}));
  const std::pair<std::string, std::string> p{"p", "1"};
  const std::pair<const char*, std::string_view> q{"q", "2"};
  EXPECT_EQ(seen({p, q}), (OwnedFields{{"p", "1"}, {"q", "2"}}));
}

TEST(Fields, NeverTakesTwoPairsOfPointersForTwoStrings) {
  EXPECT_EQ(seen({{{"a", "b"}, {"c", "d"}}}), (OwnedFields{{"a", "b"}, {"c", "d"}}));
}

TEST(Fields, TakesAnyForwardRangeOfPairs) {
  const OwnedFields expected{{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(seen(std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}), expected);
  EXPECT_EQ(seen(expected), expected);
  EXPECT_EQ(seen(std::deque<std::pair<std::string_view, const char*>>{{"a", "1"}, {"b", "2"}}),
            expected);
  EXPECT_EQ(seen(std::array{Field{"a", "1"}, Field{"b", "2"}}), expected);
  EXPECT_EQ(seen(OwnedFields{}), OwnedFields{});
}

TEST(Fields, TakesAnEntry) {
  const std::vector<OwnedEntry> entries{{.id = {1, 0}, .fields = {{"a", "1"}, {"a", "2"}}}};
  const EntryBatch batch = EntryBatch::of(entries);
  EXPECT_EQ(seen(batch[0]), (OwnedFields{{"a", "1"}, {"a", "2"}}));
}

TEST(Fields, CanBeVisitedTwice) {
  const std::map<std::string, std::string> map{{"a", "1"}};
  const Fields fields = map;
  EXPECT_EQ(seen(fields), seen(fields));
}

TEST(Fields, KeepsEveryByte) {
  const OwnedFields odd{{"", ""}, {std::string("\0", 1), std::string("\r\n\xff", 3)}, {"", "x"}};
  EXPECT_EQ(seen(odd), odd);
}

}  // namespace
}  // namespace millrace

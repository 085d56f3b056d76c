/// What an appended entry's fields can be written as, and which fields that gives.

#include <millrace/entry.hpp>
#include <millrace/error.hpp>
#include <millrace/fields.hpp>
#include <millrace/stream_options.hpp>

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace {
namespace {

/// Takes what EventStream::add takes, and returns the fields that it would append.
OwnedFields add(Fields fields, const AddOptions& /*options*/ = {}) {
  OwnedFields seen;
  fields.for_each([&seen](const Field& field) { seen.emplace_back(field.first, field.second); });
  EXPECT_EQ(seen.size(), fields.size());
  return seen;
}

const OwnedFields kOneField{{"a", "b"}};
const OwnedFields kTwoFields{{"a", "1"}, {"b", "2"}};

TEST(AppendCalls, AListOfOne) { EXPECT_EQ(add({{"a", "b"}}), kOneField); }

TEST(AppendCalls, AListOfTwo) { EXPECT_EQ(add({{"a", "1"}, {"b", "2"}}), kTwoFields); }

TEST(AppendCalls, BracesAroundAListOfTwoAreStillTwoFields) {
  EXPECT_EQ(add({{{"a", "1"}, {"b", "2"}}}), kTwoFields);
}

TEST(AppendCalls, AListWithOptions) {
  EXPECT_EQ(add({{"a", "b"}}, {.create_stream = false}), kOneField);
  EXPECT_EQ(add({{"a", "b"}}, {.id = AddId::at_ms(5), .trim = Trim::max_len(10)}), kOneField);
}

TEST(AppendCalls, AListOfAnyStringLikes) {
  const std::string name{"a"};
  constexpr std::string_view kValue{"b"};
  EXPECT_EQ(add({{name, kValue}}), kOneField);
  EXPECT_EQ(add({{"a", std::string{"b"}}}), kOneField);
}

TEST(AppendCalls, TheBytesOfAListMayHoldNulCharacters) {
  const std::string value{"a\0b", 3};
  EXPECT_EQ(add({{"value", value}}), (OwnedFields{{"value", value}}));
}

TEST(AppendCalls, NoFields) {
  EXPECT_EQ(add({}), OwnedFields{});
  EXPECT_EQ(add(OwnedFields{}), OwnedFields{});
}

TEST(AppendCalls, AMap) {
  const std::map<std::string, std::string> map{{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(add(map), kTwoFields);
  EXPECT_EQ(add(std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}), kTwoFields);
  EXPECT_EQ(add(std::map<std::string_view, const char*>{{"a", "1"}, {"b", "2"}}), kTwoFields);
}

TEST(AppendCalls, AnUnorderedMap) {
  const std::unordered_map<std::string, std::string> map{{"a", "b"}};
  EXPECT_EQ(add(map), kOneField);
  EXPECT_EQ(add(std::unordered_map<std::string, std::string>{{"a", "b"}}), kOneField);
}

TEST(AppendCalls, ASequenceOfPairs) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(add(std::vector<Pair>{{"a", "1"}, {"b", "2"}}), kTwoFields);
  EXPECT_EQ(add(std::array<Pair, 2>{{{"a", "1"}, {"b", "2"}}}), kTwoFields);
  EXPECT_EQ(add(std::deque<Pair>{{"a", "1"}, {"b", "2"}}), kTwoFields);
  EXPECT_EQ(add(std::list<Pair>{{"a", "1"}, {"b", "2"}}), kTwoFields);
  EXPECT_EQ(add(std::vector<Field>{{"a", "1"}, {"b", "2"}}), kTwoFields);
}

TEST(AppendCalls, AListOfPairsThatHaveNames) {
  const std::pair<std::string, std::string> p{"a", "1"}, q{"b", "2"};
  EXPECT_EQ(add({p, q}), kTwoFields);
  EXPECT_EQ(add({p, {"b", "2"}}), kTwoFields);
}

TEST(AppendCalls, AnEntryOfABatch) {
  const auto batch = EntryBatch::of(std::vector<OwnedEntry>{{.id = {1, 0}, .fields = kTwoFields}});
  EXPECT_EQ(add(batch[0]), kTwoFields);
  EXPECT_EQ(add(batch[0].to_owned().fields), kTwoFields);
}

TEST(AppendCalls, AListOfTheFieldsOfAnEntry) {
  const auto batch = EntryBatch::of(std::vector<OwnedEntry>{{.id = {1, 0}, .fields = kTwoFields}});
  EXPECT_EQ(add({batch[0][0], batch[0][1]}), kTwoFields);
}

TEST(AppendCalls, RepeatedNamesKeepTheirOrder) {
  EXPECT_EQ(add({{"tag", "x"}, {"tag", "y"}}), (OwnedFields{{"tag", "x"}, {"tag", "y"}}));
}

TEST(AppendCalls, EventsAreBuiltInPlace) {
  std::vector<Event> events;
  events.push_back({"order.placed", {{"id", "1"}}});
  events.push_back({.type = "order.paid", .payload = {{"id", "1"}, {"by", "card"}}});
  EXPECT_EQ(events[0].type, "order.placed");
  EXPECT_EQ(events[0].payload, (OwnedFields{{"id", "1"}}));
  EXPECT_EQ(events[1].payload.size(), 2U);
}

TEST(AppendCalls, AnErrorOfAResultIsRaisedAsWhatItWas) {
  const AddResult result{{}, NoGroupError{"-NOGROUP No such key 'k'", "NOGROUP"}};
  ASSERT_TRUE(result.error);
  try {
    result.error->raise();
  } catch (const NoGroupError& error) {
    EXPECT_EQ(error.prefix(), "NOGROUP");
    EXPECT_STREQ(error.what(), "-NOGROUP No such key 'k'");
  }
}

}  // namespace
}  // namespace millrace

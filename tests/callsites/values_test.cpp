/// Ids, as values are used: hashed, formatted, streamed, compared.

#include <millrace/format.hpp>
#include <millrace/stream_id.hpp>

#include <fmt/format.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <sstream>
#include <unordered_set>

namespace millrace {
namespace {

TEST(ValueCalls, AnIdInAHashSet) {
  std::unordered_set<StreamId> ids{{1, 0}, {1, 0}, {2, 0}};
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_TRUE(ids.contains({1, 0}));
}

TEST(ValueCalls, AnIdAsAKeyInOrder) {
  const std::map<StreamId, int> order{{{2, 0}, 3}, {{1, 1}, 2}, {{1, 0}, 1}};
  EXPECT_EQ(order.begin()->second, 1);
  EXPECT_EQ(order.rbegin()->second, 3);
}

TEST(ValueCalls, AnIdIsFormatted) {
  const StreamId id{1, 0};
  EXPECT_EQ(fmt::format("{}", id), "1-0");
}

TEST(ValueCalls, AnIdIsStreamed) {
  const StreamId id{1, 0};
  std::ostringstream out;
  out << id;
  EXPECT_EQ(out.str(), "1-0");

  std::cout << id << '\n';
}

TEST(ValueCalls, AFailedComparisonShowsBothIds) {
  EXPECT_NONFATAL_FAILURE(EXPECT_EQ((StreamId{1, 0}), (StreamId{2, 7})), "1-0");
  EXPECT_NONFATAL_FAILURE(EXPECT_EQ((StreamId{1, 0}), (StreamId{2, 7})), "2-7");
}

TEST(ValueCalls, IdsAreConstantsAsWell) {
  constexpr StreamId kId{5, 1};
  static_assert(kId > StreamId::min() && kId < StreamId::max());
  static_assert(StreamId{} == StreamId::min());
  EXPECT_EQ(StreamId::parse("5-1"), kId);
}

}  // namespace
}  // namespace millrace

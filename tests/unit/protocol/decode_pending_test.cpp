#include "protocol/decode.hpp"

#include <millrace/error.hpp>

#include "resp.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

TEST(DecodePending, HasCountsAsText) {
  const PendingSummary summary = decode::pending(
      resp("*4\r\n:3\r\n$3\r\n1-0\r\n$3\r\n3-0\r\n*1\r\n*2\r\n$5\r\nalice\r\n$1\r\n3\r\n").root());
  EXPECT_EQ(summary.count, 3U);
  EXPECT_EQ(summary.lowest, (StreamId{1, 0}));
  EXPECT_EQ(summary.highest, (StreamId{3, 0}));
  ASSERT_EQ(summary.consumers.size(), 1U);
  EXPECT_EQ(summary.consumers[0].name, "alice");
  EXPECT_EQ(summary.consumers[0].count, 3U);
}

TEST(DecodePending, IsEmptyInBothProtocols) {
  for (const char* const wire :
       {"*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n", "*4\r\n:0\r\n_\r\n_\r\n_\r\n"}) {
    const PendingSummary summary = decode::pending(resp(wire).root());
    EXPECT_EQ(summary.count, 0U);
    EXPECT_EQ(summary.lowest, std::nullopt);
    EXPECT_EQ(summary.highest, std::nullopt);
    EXPECT_TRUE(summary.consumers.empty());
  }
}

TEST(DecodePending, NamesTheSurprise) {
  for (const char* const wire :
       {"*3\r\n:0\r\n_\r\n_\r\n", ":5\r\n", "_\r\n", "*4\r\n_\r\n_\r\n_\r\n_\r\n",
        "*4\r\n:1\r\n:1\r\n_\r\n_\r\n", "*4\r\n:1\r\n_\r\n_\r\n*1\r\n*2\r\n$1\r\na\r\n$1\r\nx\r\n",
        "*4\r\n:1\r\n_\r\n_\r\n*1\r\n*1\r\n$1\r\na\r\n"}) {
    EXPECT_THROW(decode::pending(resp(wire).root()), ProtocolError) << wire;
  }
}

TEST(DecodePendingEntries, HasOwnerIdleTimeAndCount) {
  const auto entries =
      decode::pending_entries(resp("*2\r\n*4\r\n$3\r\n1-0\r\n$5\r\nalice\r\n:120\r\n:1\r\n*4\r\n$"
                                   "3\r\n2-0\r\n$3\r\nbob\r\n:0\r\n:7\r\n")
                                  .root());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].id, (StreamId{1, 0}));
  EXPECT_EQ(entries[0].consumer, "alice");
  EXPECT_EQ(entries[0].idle, 120ms);
  EXPECT_EQ(entries[0].deliveries, 1);
  EXPECT_EQ(entries[1].deliveries, 7);
  EXPECT_TRUE(decode::pending_entries(resp("*0\r\n").root()).empty());
}

TEST(DecodePendingEntries, TakesAnEntryThatWasGivenBackToNobody) {
  const auto entries = decode::pending_entries(
      resp("*2\r\n*4\r\n$3\r\n1-0\r\n$0\r\n\r\n:-1\r\n:9223372036854775807\r\n"
           "*4\r\n$3\r\n2-0\r\n$0\r\n\r\n:-1\r\n:-1\r\n")
          .root());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].consumer, "");
  EXPECT_EQ(entries[0].idle, std::nullopt);
  EXPECT_EQ(entries[0].deliveries, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(entries[1].deliveries, -1);
}

TEST(DecodePendingEntries, NamesTheSurprise) {
  for (const char* const wire :
       {":1\r\n", "*1\r\n:1\r\n", "*1\r\n*3\r\n$3\r\n1-0\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*4\r\n$1\r\nx\r\n$1\r\na\r\n:1\r\n:1\r\n",
        "*1\r\n*4\r\n$3\r\n1-0\r\n:1\r\n:1\r\n:1\r\n"}) {
    EXPECT_THROW(decode::pending_entries(resp(wire).root()), ProtocolError) << wire;
  }
}

TEST(DecodeIds, IsAList) {
  EXPECT_EQ(decode::ids(resp("*2\r\n$3\r\n1-0\r\n$3\r\n2-5\r\n").root()),
            (std::vector<StreamId>{{1, 0}, {2, 5}}));
  EXPECT_TRUE(decode::ids(resp("*0\r\n").root()).empty());
  EXPECT_TRUE(decode::ids(resp("_\r\n").root()).empty());
  EXPECT_THROW(decode::ids(resp("$3\r\n1-0\r\n").root()), ProtocolError);
  EXPECT_THROW(decode::ids(resp("*1\r\n$1\r\n?\r\n").root()), ProtocolError);
}

}  // namespace
}  // namespace millrace::detail

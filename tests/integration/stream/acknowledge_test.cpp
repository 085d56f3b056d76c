#include "support/stream_test.hpp"

#include <array>

namespace millrace::test {
namespace {

class Acknowledge : public StreamTest {};

TEST_P(Acknowledge, TakesEntriesOutOfThePendingList) {
  given_three_pending();
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}, StreamId{3, 0}}), 2U);
  EXPECT_EQ(pending_text(s(), "g"), "2-0 alice 1");
  EXPECT_EQ(s().length(), 3U);
}

TEST_P(Acknowledge, TakesListsRangesAndBatches) {
  given_three_pending();
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 1U);
  EXPECT_EQ(s().ack("g", std::array{StreamId{2, 0}}), 1U);
  EXPECT_EQ(s().ack("g", s().consume_own_pending("g", "alice")), 1U);
  EXPECT_EQ(s().pending("g").count, 0U);
}

TEST_P(Acknowledge, CountsWhatWasPendingAndNoMore) {
  given_three_pending();
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}, StreamId{1, 0}, StreamId{9, 0}}), 1U);
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 0U);
}

TEST_P(Acknowledge, DoesNotAskWhoOwnsAnEntry) {
  given_three_pending();
  s().claim_ids("g", "bob", 0ms, {StreamId{1, 0}});
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 1U);
}

TEST_P(Acknowledge, OfNothingNeedsNoServer) {
  EXPECT_EQ(s().ack("g", {}), 0U);
  EXPECT_EQ(s().ack("g", EntryBatch{}), 0U);
  EXPECT_EQ(s().pool().stats().created, 0U);
}

TEST_P(Acknowledge, TakesManyIdsAtOnce) {
  s().ensure_group("g", GroupStart::beginning());
  s().add_batch(std::vector<OwnedFields>(5000, OwnedFields{{"f", "v"}}));
  const EntryBatch batch = s().consume("g", "alice", {.count = 5000, .block = 0ms});
  EXPECT_EQ(s().ack("g", batch), 5000U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Acknowledge);

}  // namespace
}  // namespace millrace::test

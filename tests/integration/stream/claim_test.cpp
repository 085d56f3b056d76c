#include "support/stream_test.hpp"

#include <vector>

namespace millrace::test {
namespace {

class Claim : public StreamTest {
 protected:
  PendingEntry pending_entry(StreamId id) const {
    return s().pending_entries("g", {.start = id, .end = id}).at(0);
  }
};

TEST_P(Claim, TakesEntriesOverAndCountsThemAsDeliveredOnceMore) {
  given_three_pending();
  const ClaimResult result = s().claim("g", "bob", 0ms, {StreamId{1, 0}, StreamId{3, 0}});
  EXPECT_EQ(text(result.claimed), "1-0[f=v] 3-0[f=v]");
  EXPECT_TRUE(result.missing.empty());
  EXPECT_EQ(pending_text(s(), "g"), "1-0 bob 2, 2-0 alice 1, 3-0 bob 2");
}

TEST_P(Claim, TakesListsRangesAndBatches) {
  given_three_pending();
  const std::vector<StreamId> ids{{1, 0}};
  EXPECT_EQ(s().claim("g", "bob", 0ms, ids).claimed.size(), 1U);
  EXPECT_EQ(s().claim("g", "bob", 0ms, {StreamId{2, 0}}).claimed.size(), 1U);
  EXPECT_EQ(s().claim("g", "carol", 0ms, s().replay()).claimed.size(), 3U);
  EXPECT_EQ(s().claim_ids("g", "bob", 0ms, ids), ids);
  EXPECT_EQ(s().claim_ids("g", "bob", 0ms, {StreamId{2, 0}}), (Ids{{2, 0}}));
  EXPECT_EQ(s().claim_ids("g", "dave", 0ms, s().replay()).size(), 3U);
}

TEST_P(Claim, OfIdsAloneKeepsDeliveryCounts) {
  given_three_pending();
  EXPECT_EQ(s().claim_ids("g", "bob", 0ms, {StreamId{1, 0}, StreamId{9, 0}}), (Ids{{1, 0}}));
  EXPECT_EQ(pending_text(s(), "g"), "1-0 bob 1, 2-0 alice 1, 3-0 alice 1");
}

TEST_P(Claim, ReportsWhatItDidNotGet) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  s().claim_ids("g", "alice", 0ms, {StreamId{1, 0}}, {.idle = 500s});
  const ClaimResult result =
      s().claim("g", "bob", 400s, {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}, StreamId{9, 0}});
  EXPECT_EQ(text(result.claimed), "1-0[f=v]");
  EXPECT_EQ(result.missing, (Ids{{2, 0}, {3, 0}, {9, 0}}));
}

TEST_P(Claim, DropsADeletedEntryFromThePendingListAndSaysSo) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  EXPECT_EQ(s().claim("g", "bob", 0ms, {StreamId{2, 0}}).missing, (Ids{{2, 0}}));
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 3-0 alice 1");
}

TEST_P(Claim, SetsIdleTimeAndDeliveryCount) {
  given_three_pending();
  s().claim("g", "bob", 0ms, {StreamId{1, 0}}, {.idle = 500s, .delivery_count = 7});
  const PendingEntry entry = pending_entry({1, 0});
  EXPECT_EQ(entry.consumer, "bob");
  EXPECT_EQ(entry.deliveries, 7);
  EXPECT_GE(entry.idle, 500s);
  EXPECT_LT(entry.idle, 500s + 2 * kGenerous);

  s().claim_ids("g", "bob", 0ms, {StreamId{1, 0}}, {.delivery_count = 0});
  EXPECT_EQ(pending_entry({1, 0}).deliveries, 0);
  EXPECT_LT(pending_entry({1, 0}).idle, 400s);
}

TEST_P(Claim, SetsTheTimeOfTheLastDelivery) {
  given_three_pending();
  const auto epoch = std::chrono::system_clock::time_point{};
  EXPECT_EQ(s().claim_ids("g", "alice", 0ms, {StreamId{1, 0}}, {.time = epoch}), (Ids{{1, 0}}));
  EXPECT_EQ(s().autoclaim("g", "bob", {.min_idle = 24h}).claimed.ids(), (Ids{{1, 0}}));

  const auto hour_ago = std::chrono::system_clock::now() - 1h;
  s().claim_ids("g", "bob", 0ms, {StreamId{2, 0}}, {.time = hour_ago});
  EXPECT_GE(pending_entry({2, 0}).idle, 50min);
  EXPECT_LT(pending_entry({2, 0}).idle, 70min);
}

TEST_P(Claim, RefusesAnIdleTimeBesideATime) {
  given_three_pending();
  const auto now = std::chrono::system_clock::now();
  EXPECT_THROW(s().claim_ids("g", "bob", 0ms, {StreamId{1, 0}}, {.idle = 1s, .time = now}),
               InvalidArgument);
}

TEST_P(Claim, MakesPendingByForceWhatWasNot) {
  given_three_entries();
  EXPECT_EQ(s().claim("g", "bob", 0ms, {StreamId{2, 0}}).missing, (Ids{{2, 0}}));
  EXPECT_EQ(text(s().claim("g", "bob", 0ms, {StreamId{2, 0}}, {.force = true}).claimed),
            "2-0[f=v]");
  EXPECT_EQ(s().pending("g").count, 1U);
}

TEST_P(Claim, MovesTheGroupsPositionForward) {
  given_three_entries();
  s().consume("g", "alice", {.count = 1, .block = 0ms});
  s().claim("g", "alice", 0ms, {StreamId{1, 0}}, {.last_id = StreamId{2, 0}});
  EXPECT_EQ(s().groups().at(0).last_delivered_id, (StreamId{2, 0}));
  EXPECT_EQ(s().consume("g", "alice", kAllNow).ids(), (Ids{{3, 0}}));
}

TEST_P(Claim, OfNothingNeedsNoServer) {
  const ClaimResult nothing = s().claim("g", "bob", 0ms, {});
  EXPECT_TRUE(nothing.claimed.empty());
  EXPECT_TRUE(nothing.missing.empty());
  EXPECT_TRUE(s().claim_ids("g", "bob", 0ms, {}).empty());
  EXPECT_EQ(s().pool().stats().created, 0U);
}

TEST_P(Claim, RefusesNegativeTimes) {
  given_three_pending();
  EXPECT_THROW(s().claim("g", "bob", -1ms, {StreamId{1, 0}}), InvalidArgument);
  EXPECT_THROW(s().claim("g", "bob", 0ms, {StreamId{1, 0}}, {.idle = -1ms}), InvalidArgument);
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

TEST_P(Claim, RefusesAnIdleTimeThatTheServerWouldTakeForNone) {
  given_three_pending();
  const auto error = thrown<InvalidArgument>([&] {
    s().claim_ids("g", "bob", 0ms, {StreamId{1, 0}}, {.idle = std::chrono::hours{24 * 365 * 100}});
  });
  EXPECT_THAT(error.what(), ::testing::HasSubstr("idle"));
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

MILLRACE_ON_BOTH_PROTOCOLS(Claim);

}  // namespace
}  // namespace millrace::test

#include "support/monitor.hpp"
#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <algorithm>

namespace millrace::test {
namespace {

class Handover : public StreamTest {};

TEST_P(Handover, GivesAllPendingEntriesOfOneConsumerToAnother) {
  given_three_pending();
  append(s(), {{4, 0}});
  s().consume("g", "carol", kAllNow);
  s().claim("g", "alice", 0ms, {StreamId{2, 0}});

  const HandoverResult result = s().handover_pending("g", "alice", "bob");

  EXPECT_EQ(result.moved, 3U);
  EXPECT_TRUE(result.deleted_ids.empty());
  EXPECT_FALSE(result.error.has_value());
  EXPECT_EQ(pending_text(s(), "g"), "1-0 bob 1, 2-0 bob 2, 3-0 bob 1, 4-0 carol 1");
}

TEST_P(Handover, LeavesWhatTheTargetFindsAmongItsOwn) {
  given_three_pending();
  s().handover_pending("g", "alice", "bob");
  EXPECT_EQ(text(s().consume_own_pending("g", "bob")), "1-0[f=v] 2-0[f=v] 3-0[f=v]");
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}}), 3U);
}

TEST_P(Handover, ReportsAndDropsWhatIsNoLongerInTheStream) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  const HandoverResult result = s().handover_pending("g", "alice", "bob");
  EXPECT_EQ(result.moved, 2U);
  EXPECT_EQ(result.deleted_ids, (Ids{{2, 0}}));
  EXPECT_EQ(pending_text(s(), "g"), "1-0 bob 1, 3-0 bob 1");
}

TEST_P(Handover, KeepsIdleTimes) {
  given_three_pending();
  s().claim_ids("g", "alice", 0ms, {StreamId{2, 0}}, {.idle = 1h});

  s().handover_pending("g", "alice", "bob");

  const auto entries = s().pending_entries("g");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_LT(*entries[0].idle, 1h);
  EXPECT_GE(*entries[1].idle, 1h);
  EXPECT_LT(*entries[1].idle, 2h);
}

TEST_P(Handover, OfManyEntriesIsComplete) {
  s().ensure_group("g", GroupStart::beginning());
  s().add_batch(std::vector<OwnedFields>(1000, OwnedFields{{"f", "v"}}));
  s().consume("g", "alice", kAllNow);
  EXPECT_EQ(s().handover_pending("g", "alice", "bob").moved, 1000U);
  const PendingSummary summary = s().pending("g");
  ASSERT_EQ(summary.consumers.size(), 1U);
  EXPECT_EQ(summary.consumers[0].name, "bob");
  EXPECT_EQ(summary.consumers[0].count, 1000U);
  const auto entries = s().pending_entries("g", {.count = 1000});
  EXPECT_TRUE(std::all_of(entries.begin(), entries.end(),
                          [](const PendingEntry& entry) { return entry.deliveries == 1; }));
}

TEST_P(Handover, KeepsWhatEarlierPagesDidWhenALaterOneFails) {
  given_three_pending();
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream behind{ConnectionPool{through}, "s"};
  behind.handover_pending("g", "alice", "carol");  // from now on the server knows the script
  s().add_batch(std::vector<OwnedFields>(500, OwnedFields{{"f", "v"}}));
  s().consume("g", "alice", kAllNow);
  proxy.lose_request("EVALSHA", 2);

  const HandoverResult result = behind.handover_pending("g", "alice", "bob");

  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->outcome(), Outcome::kUnknown);
  EXPECT_GT(result.moved, 0U);
  EXPECT_EQ(s().pending_entries("g", {.count = 1000, .consumer = "bob"}).size(), result.moved);
}

TEST_P(Handover, OfNothingMovesNothing) {
  given_three_pending();
  EXPECT_EQ(s().handover_pending("g", "nobody", "bob").moved, 0U);
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

TEST_P(Handover, OfAGroupThatHasNothingPendingMovesNothing) {
  given_three_entries();
  const HandoverResult result = s().handover_pending("g", "alice", "bob");
  EXPECT_EQ(result.moved, 0U);
  EXPECT_TRUE(result.deleted_ids.empty());
}

TEST_P(Handover, ToItselfIsRefused) {
  given_three_pending();
  EXPECT_THROW(s().handover_pending("g", "alice", "alice"), InvalidArgument);
}

TEST_P(Handover, WorksAfterTheServerForgotItsScripts) {
  given_three_pending();
  s().handover_pending("g", "alice", "bob");
  ASSERT_EQ(raw()("SCRIPT", "FLUSH"), "+OK");
  EXPECT_EQ(s().handover_pending("g", "bob", "alice").moved, 3U);
}

class RemoveConsumer : public StreamTest {};

TEST_P(RemoveConsumer, RemovesOneThatOwnsNothing) {
  s().ensure_group("g", GroupStart::beginning());
  s().create_consumer("g", "alice");
  const RemoveResult result = s().remove_consumer("g", "alice");
  EXPECT_TRUE(result.removed);
  EXPECT_EQ(result.pending, 0U);
  EXPECT_TRUE(s().consumers("g").empty());
}

TEST_P(RemoveConsumer, RefusesWhileItOwnsPendingEntries) {
  given_three_pending();
  const RemoveResult result = s().remove_consumer("g", "alice");
  EXPECT_FALSE(result.removed);
  EXPECT_EQ(result.pending, 3U);
  EXPECT_EQ(s().consumers("g").size(), 1U);
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

TEST_P(RemoveConsumer, DecidesAndActsInOneScript) {
  s().ensure_group("g", GroupStart::beginning());
  s().create_consumer("g", "alice");
  Monitor monitor{server()};
  EXPECT_TRUE(s().remove_consumer("g", "alice").removed);
  raw()("ECHO", Monitor::kMark);
  // Between two commands of its own an entry could be delivered to alice, and be forgotten with
  // her.
  const auto lines = monitor.until_mark();
  EXPECT_THAT(lines, ::testing::Contains(::testing::HasSubstr("\"EVALSHA\"")));
  for (const std::string& line : lines) {
    EXPECT_THAT(Monitor::sent(line), ::testing::AnyOf("EVALSHA", "EVAL", "")) << line;
  }
}

TEST_P(RemoveConsumer, CountsDeletedEntriesAsPendingToo) {
  given_three_pending();
  s().erase({StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}});
  EXPECT_FALSE(s().remove_consumer("g", "alice").removed);
  s().ack("g", {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}});
  EXPECT_TRUE(s().remove_consumer("g", "alice").removed);
}

TEST_P(RemoveConsumer, OfNobodyRemovesNothing) {
  s().ensure_group("g", GroupStart::beginning());
  const RemoveResult result = s().remove_consumer("g", "nobody");
  EXPECT_FALSE(result.removed);
  EXPECT_EQ(result.pending, 0U);
  EXPECT_TRUE(s().consumers("g").empty());
}

TEST_P(RemoveConsumer, AfterAHandoverLosesNothing) {
  given_three_pending();
  s().handover_pending("g", "alice", "bob");
  EXPECT_TRUE(s().remove_consumer("g", "alice").removed);
  EXPECT_EQ(s().consume_own_pending("g", "bob").size(), 3U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Handover);
MILLRACE_ON_BOTH_PROTOCOLS(RemoveConsumer);

}  // namespace
}  // namespace millrace::test

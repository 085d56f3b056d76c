#include "conformance.hpp"
#include "support/proxy.hpp"

namespace millrace::test {
namespace {

class Groups : public StreamTest {};
class BareGroups : public BareConformanceTest {};

TEST_P(BareGroups, AGroupWithoutAStreamIsAnOrdinaryError) {
  EXPECT_EQ(bare("XGROUP", "CREATE", "s", "g", "$"),
            "-ERR The XGROUP subcommand requires the key to exist…");
}

TEST_P(Groups, AGroupIsMadeWithItsStream) {
  EXPECT_TRUE(s().ensure_group("g", GroupStart::now()));
  EXPECT_EQ(raw()("EXISTS", "s"), ":1");
  EXPECT_EQ(s().length(), 0U);
}

TEST_P(Groups, AGroupThatStartsNowIsNotGivenEarlierEntries) {
  append(s(), {{1, 0}});
  s().ensure_group("g", GroupStart::now());
  append(s(), {{2, 0}});
  EXPECT_EQ(s().consume("g", "alice", kAllNow).ids(), (Ids{{2, 0}}));
}

TEST_P(Groups, AConsumerIsMadeOnce) {
  s().ensure_group("g", GroupStart::now());
  EXPECT_TRUE(s().create_consumer("g", "alice"));
  EXPECT_FALSE(s().create_consumer("g", "alice"));
  EXPECT_THROW(s().create_consumer("nogroup", "alice"), NoGroupError);
}

TEST_P(Groups, DestroyingAGroupThatIsNotThereIsNoError) {
  s().ensure_group("g", GroupStart::now());
  EXPECT_EQ(raw()("XGROUP", "DESTROY", "s", "nogroup"), ":0");
  EXPECT_FALSE(s().delete_group("nogroup"));
  EXPECT_TRUE(s().delete_group("g"));
}

TEST_P(Groups, DestroyingAGroupOfAMissingStreamIsNoError) {
  EXPECT_EQ(raw()("XGROUP", "DESTROY", "s", "g"),
            "-ERR The XGROUP subcommand requires the key to exist…");
  EXPECT_FALSE(s().delete_group("g"));
}

TEST_P(Groups, APositionSetBackDeliversPendingEntriesAgainAsIfForTheFirstTime) {
  given_three_pending();
  s().claim("g", "alice", 0ms, {StreamId{1, 0}});
  ASSERT_EQ(pending_text(s(), "g"), "1-0 alice 2, 2-0 alice 1, 3-0 alice 1");

  s().set_group_position("g", GroupStart::beginning());

  EXPECT_EQ(s().consume("g", "bob", kAllNow).size(), 3U);
  EXPECT_EQ(pending_text(s(), "g"), "1-0 bob 1, 2-0 bob 1, 3-0 bob 1");
}

TEST_P(Groups, APositionSetBackDoesNotWakeAReader) {
  given_three_pending();
  auto bob = consume_in_background(s(), "bob");
  ASSERT_TRUE(blocked(1));
  s().set_group_position("g", GroupStart::beginning());
  EXPECT_EQ(blocked_now(), "1");
  append(s(), {{4, 0}});
  EXPECT_EQ(bob.get().ids(), (Ids{{1, 0}, {2, 0}, {3, 0}, {4, 0}}));
}

TEST_P(BareGroups, NothingNewIsNullAndNoHistoryIsAnEmptyList) {
  given_three_pending();
  EXPECT_EQ(bare("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", ">"), null_array());
  EXPECT_EQ(bare("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", "0"),
            resp3() ? R"(%1{"s"=*0[]})" : R"(*1[*2["s" *0[]]])");
}

TEST_P(Groups, NothingNewAndNoHistoryAreBothAnEmptyBatch) {
  given_three_pending();
  EXPECT_TRUE(s().consume("g", "bob", kAllNow).empty());
  EXPECT_TRUE(s().consume_own_pending("g", "bob").empty());
}

TEST_P(BareGroups, AHistoryNeverWaits) {
  given_three_entries();
  EXPECT_EQ(bare("XREADGROUP", "GROUP", "g", "alice", "BLOCK", 0, "STREAMS", "s", "0"),
            resp3() ? R"(%1{"s"=*0[]})" : R"(*1[*2["s" *0[]]])");
}

TEST_P(Groups, AHistoryShowsDeletedEntriesInTheirPlace) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  EXPECT_EQ(text(s().consume_own_pending("g", "alice")), "1-0[f=v] 2-0[deleted] 3-0[f=v]");
}

TEST_P(Groups, AHistoryIsPagedThroughDeletedEntries) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  EXPECT_EQ(text(s().consume_own_pending("g", "alice", {}, 2)), "1-0[f=v] 2-0[deleted]");
  EXPECT_EQ(text(s().consume_own_pending("g", "alice", {2, 0}, 2)), "3-0[f=v]");
}

TEST_P(Groups, AHistoryStartsAfterTheIdThatWasGiven) {
  append(s(), {{5, 0}, {5, 1}, {6, 0}});
  s().ensure_group("g", GroupStart::beginning());
  s().consume("g", "alice", kAllNow);
  EXPECT_EQ(s().consume_own_pending("g", "alice", {5, 0}).ids(), (Ids{{5, 1}, {6, 0}}));
  EXPECT_EQ(raw()("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", "5"),
            R"(*1[*2["s" *2[*2["5-1" *2["f" "v"]] *2["6-0" *2["f" "v"]]]]])");
}

TEST_P(BareGroups, TheLastPossibleIdReadsNewEntries) {
  given_three_entries();
  const RawReply reply = bare("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s",
                              "18446744073709551615-18446744073709551615");
  EXPECT_EQ(entries_of(reply).elements.size(), 3U);
}

TEST_P(Groups, AHistoryAfterTheLastPossibleIdIsEmptyAndDeliversNothing) {
  given_three_entries();
  EXPECT_TRUE(s().consume_own_pending("g", "alice", StreamId::max()).empty());
  EXPECT_EQ(s().pending("g").count, 0U);
}

TEST_P(BareGroups, OneKeyWithoutTheGroupFailsTheReadOfAll) {
  given_three_entries();
  bare("XADD", "t", "1-0", "f", "v");
  EXPECT_EQ(bare("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", "t", ">", ">"),
            "-NOGROUP No such key 't' or consumer group 'g' in XREADGROUP with GROUP option");
  EXPECT_EQ(bare("XPENDING", "s", "g")[0], ":0");
}

TEST_P(Groups, ConsumersThatWaitAreServedInTheOrderOfTheirComing) {
  s().ensure_group("g", GroupStart::beginning());
  auto alice = consume_in_background(s(), "alice", {.count = 1, .block = kGenerous});
  ASSERT_TRUE(blocked(1));
  auto bob = consume_in_background(s(), "bob", {.count = 1, .block = kGenerous});
  ASSERT_TRUE(blocked(2));
  append(s(), {{1, 0}, {2, 0}});
  EXPECT_EQ(alice.get().ids(), (Ids{{1, 0}}));
  EXPECT_EQ(bob.get().ids(), (Ids{{2, 0}}));
}

TEST_P(Groups, TwoClientsOfOneNameCompete) {
  s().ensure_group("g", GroupStart::beginning());
  auto first = consume_in_background(s(), "alice", {.count = 1, .block = kGenerous});
  ASSERT_TRUE(blocked(1));
  auto second = consume_in_background(s(), "alice", {.count = 1, .block = kGenerous});
  ASSERT_TRUE(blocked(2));
  append(s(), {{1, 0}});
  EXPECT_EQ(first.get().ids(), (Ids{{1, 0}}));
  EXPECT_EQ(blocked_now(), "1");
  append(s(), {{2, 0}});
  EXPECT_EQ(second.get().ids(), (Ids{{2, 0}}));
}

TEST_P(Groups, AnEntryWhoseDeliveryTimedOutIsPendingAndNoLaterCallIsGivenIt) {
  ThrowawayServer slow;
  const EventStream ahead{ConnectionPool{options(slow)}, "s"};
  append(ahead, {{1, 0}});
  ahead.ensure_group("g", GroupStart::beginning());
  ConnectionOptions hasty = options(slow);
  hasty.command_timeout = 1s;
  const EventStream stream{ConnectionPool{hasty}, "s"};
  stream.pool().ping();

  slow.pause();
  const auto error = thrown<TimeoutError>([&] { stream.consume("g", "alice", kAllNow); });
  slow.resume();

  EXPECT_EQ(error.outcome(), Outcome::kUnknown);
  ASSERT_TRUE(wait_until([&] { return ahead.pending("g").count == 1; }));
  EXPECT_EQ(pending_text(ahead, "g"), "1-0 alice 1");
  EXPECT_EQ(ahead.length(), 1U);
  EXPECT_TRUE(stream.consume("g", "alice", kAllNow).empty());
  EXPECT_EQ(stream.pool().stats().created, 2U);
  EXPECT_EQ(text(stream.claim("g", "alice", 0ms, {StreamId{1, 0}}, {.delivery_count = 1}).claimed),
            "1-0[f=v]");
}

MILLRACE_ON_BOTH_PROTOCOLS(Groups);
MILLRACE_ON_BOTH_PROTOCOLS(BareGroups);

}  // namespace
}  // namespace millrace::test

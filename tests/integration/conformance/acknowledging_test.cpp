#include "conformance.hpp"

namespace millrace::test {
namespace {

class Acknowledging : public StreamTest {};
class BareAcknowledging : public BareConformanceTest {
 protected:
  /// A second group that has read nothing yet.
  void given_a_second_group() { raw()("XGROUP", "CREATE", "s", "g2", "0"); }
  void second_group_reads() { raw()("XREADGROUP", "GROUP", "g2", "bob", "STREAMS", "s", ">"); }
};

TEST_P(Acknowledging, AnEntryIsAcknowledgedOnce) {
  given_three_pending();
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 1U);
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 0U);
  EXPECT_EQ(s().ack("g", {StreamId{2, 0}, StreamId{2, 0}}), 1U);
}

TEST_P(BareAcknowledging, OneMalformedIdFailsTheWholeAcknowledgement) {
  given_three_pending();
  EXPECT_EQ(bare("XACK", "s", "g", "1-0", "notanid"), "-ERR Invalid stream ID…");
  EXPECT_EQ(bare("XPENDING", "s", "g")[0], ":3");
}

TEST_P(Acknowledging, AMissingStreamOrGroupHasNothingToAcknowledge) {
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 0U);
  append(s(), {{1, 0}});
  EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 0U);
}

TEST_P(BareAcknowledging, WhatIsNotPendingIsNotDeletedWithAnAcknowledgement) {
  MILLRACE_NEEDS_REDIS(8, 2);
  given_three_pending();
  EXPECT_EQ(bare("XACKDEL", "s", "g", "IDS", 2, "1-0", "9-0"), "*2[:1 :-1]");
  EXPECT_EQ(bare("XLEN", "s"), ":2");
  bare("XACK", "s", "g", "2-0");
  EXPECT_EQ(bare("XACKDEL", "s", "g", "IDS", 1, "2-0"), "*1[:-1]");
  EXPECT_EQ(bare("XLEN", "s"), ":2");
}

TEST_P(BareAcknowledging, AnEntryThatAnotherGroupNeedsStaysUntilThatGroupIsDone) {
  MILLRACE_NEEDS_REDIS(8, 2);
  given_three_pending();
  given_a_second_group();
  second_group_reads();
  EXPECT_EQ(bare("XACKDEL", "s", "g", "ACKED", "IDS", 1, "1-0"), "*1[:2]");
  EXPECT_EQ(bare("XLEN", "s"), ":3");
  EXPECT_EQ(bare("XACKDEL", "s", "g2", "ACKED", "IDS", 1, "1-0"), "*1[:1]");
  EXPECT_EQ(bare("XLEN", "s"), ":2");
}

TEST_P(BareAcknowledging, ADeletionKeepsOrDropsTheReferencesOfOtherGroups) {
  MILLRACE_NEEDS_REDIS(8, 2);
  given_three_pending();
  given_a_second_group();
  second_group_reads();
  EXPECT_EQ(bare("XACKDEL", "s", "g", "KEEPREF", "IDS", 1, "1-0"), "*1[:1]");
  EXPECT_EQ(bare("XACKDEL", "s", "g", "DELREF", "IDS", 1, "2-0"), "*1[:1]");
  const RawReply history = bare("XREADGROUP", "GROUP", "g2", "bob", "STREAMS", "s", "0");
  EXPECT_EQ(entries_of(history), R"(*2[*2["1-0" )" + null_array() + R"(] *2["3-0" *2["f" "v"]]])");
}

TEST_P(BareAcknowledging, AnEntryIsDeletedOnlyOnceEverybodyAcknowledgedIt) {
  MILLRACE_NEEDS_REDIS(8, 2);
  given_three_pending();
  EXPECT_EQ(bare("XDELEX", "s", "ACKED", "IDS", 1, "1-0"), "*1[:2]");
  bare("XACK", "s", "g", "1-0");
  EXPECT_EQ(bare("XDELEX", "s", "ACKED", "IDS", 1, "1-0"), "*1[:1]");
  EXPECT_EQ(bare("XDELEX", "s", "ACKED", "IDS", 1, "0-9"), "*1[:-1]");
  // Above the group's position, an id that nobody ever used counts as unread.
  EXPECT_EQ(bare("XDELEX", "s", "ACKED", "IDS", 1, "9-0"), "*1[:2]");
}

TEST_P(BareAcknowledging, ATrimOfAcknowledgedEntriesLeavesTheRest) {
  MILLRACE_NEEDS_REDIS(8, 2);
  given_three_entries();
  EXPECT_EQ(bare("XTRIM", "s", "MAXLEN", 1, "ACKED"), ":0");
  bare("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">");
  EXPECT_EQ(bare("XTRIM", "s", "MAXLEN", 1, "ACKED"), ":0");
  bare("XACK", "s", "g", "1-0");
  EXPECT_EQ(bare("XTRIM", "s", "MAXLEN", 1, "ACKED"), ":1");
  EXPECT_EQ(bare("XLEN", "s"), ":2");
}

TEST_P(Acknowledging, ATrimmedEntryStaysPending) {
  given_three_pending();
  EXPECT_EQ(s().trim(Trim::max_len(1).exactly()), 2U);
  EXPECT_EQ(s().pending("g").count, 3U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Acknowledging);
MILLRACE_ON_BOTH_PROTOCOLS(BareAcknowledging);

}  // namespace
}  // namespace millrace::test

#include "conformance.hpp"

namespace millrace::test {
namespace {

class Claiming : public StreamTest {};
class BareClaiming : public BareConformanceTest {
 protected:
  std::int64_t idle_of(const std::string& id) {
    return bare("XPENDING", "s", "g", id, id, 1)[0][2].integer;
  }
};

TEST_P(Claiming, ASweepReportsDeletedEntriesOnceAndTheyAreNoLongerPending) {
  given_three_pending();
  s().erase({StreamId{2, 0}});

  const AutoclaimPage page = s().autoclaim_page("g", "bob", {.min_idle = 0ms});
  EXPECT_EQ(page.claimed.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(page.deleted_ids, (Ids{{2, 0}}));
  EXPECT_EQ(page.next_cursor, StreamId{});
  EXPECT_EQ(pending_text(s(), "g"), "1-0 bob 2, 3-0 bob 2");

  EXPECT_TRUE(s().autoclaim_page("g", "bob", {.min_idle = 0ms}).deleted_ids.empty());
}

TEST_P(Claiming, ATrimmedEntryCountsAgainstTheSizeOfAPage) {
  given_three_pending();
  s().trim(Trim::max_len(1).exactly());
  const AutoclaimPage page = s().autoclaim_page("g", "bob", {.min_idle = 0ms, .count = 1});
  EXPECT_EQ(page.next_cursor, (StreamId{2, 0}));
  EXPECT_TRUE(page.claimed.empty());
  EXPECT_EQ(page.deleted_ids, (Ids{{1, 0}}));
}

TEST_P(Claiming, ADeletedEntryIsReportedHoweverYoung) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  const AutoclaimPage page = s().autoclaim_page("g", "bob", {.min_idle = 99'999'000ms});
  EXPECT_TRUE(page.claimed.empty());
  EXPECT_EQ(page.deleted_ids, (Ids{{2, 0}}));
}

TEST_P(BareClaiming, ASweepOfIdsKeepsCountsAndResetsIdleTimes) {
  given_three_pending();
  bare("XCLAIM", "s", "g", "alice", 0, "1-0", "IDLE", 500'000, "RETRYCOUNT", 7, "JUSTID");
  EXPECT_EQ(bare("XAUTOCLAIM", "s", "g", "bob", 400'000, "0", "JUSTID"),
            R"(*3["0-0" *1["1-0"] *0[]])");
  const RawReply pending = bare("XPENDING", "s", "g", "1-0", "1-0", 1);
  EXPECT_EQ(pending[0][1].text, "bob");
  EXPECT_EQ(pending[0][3], ":7");
  EXPECT_LT(idle_of("1-0"), 400'000);
}

TEST_P(BareClaiming, ASweepOfZeroEntriesIsRefused) {
  given_three_pending();
  EXPECT_EQ(bare("XAUTOCLAIM", "s", "g", "bob", 0, "0", "COUNT", 0), "-ERR COUNT must be > 0");
}

TEST_P(Claiming, ASweepOfZeroEntriesIsRefusedBeforeItIsSent) {
  EXPECT_THROW(s().autoclaim_page("g", "bob", {.count = 0}), InvalidArgument);
  EXPECT_THROW(s().autoclaim("g", "bob", {.count = 0}), InvalidArgument);
}

TEST_P(Claiming, UnknownYoungAndDeletedEntriesAreLeftOut) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  const ClaimResult result =
      s().claim("g", "bob", 0ms, {StreamId{2, 0}, StreamId{3, 0}, StreamId{9, 0}});
  EXPECT_EQ(text(result.claimed), "3-0[f=v]");
  EXPECT_EQ(result.missing, (Ids{{2, 0}, {9, 0}}));

  const ClaimResult young = s().claim("g", "bob", 1h, {StreamId{1, 0}});
  EXPECT_TRUE(young.claimed.empty());
  EXPECT_EQ(young.missing, (Ids{{1, 0}}));
}

TEST_P(BareClaiming, AnEntryDeliveredAtTheEpochIsFreeForAll) {
  given_three_pending();
  EXPECT_EQ(bare("XCLAIM", "s", "g", "alice", 0, "1-0", "TIME", 0, "JUSTID"), R"(*1["1-0"])");
  EXPECT_EQ(bare("XAUTOCLAIM", "s", "g", "bob", 99'999'999, "0", "JUSTID")[1], R"(*1["1-0"])");
}

TEST_P(BareClaiming, AnIdleTimeBeforeTheEpochIsNone) {
  given_three_pending();
  // One transaction nearly always fits a millisecond; where it does not, the next one will.
  EXPECT_TRUE(wait_until([&] {
    bare("MULTI");
    bare("XCLAIM", "s", "g", "alice", 0, "1-0", "IDLE", 99'999'999'999'999, "JUSTID");
    bare("XPENDING", "s", "g", "1-0", "1-0", 1);
    return bare("EXEC")[1][0][2].integer == 0;
  }));
  EXPECT_EQ(bare("XAUTOCLAIM", "s", "g", "bob", 99'999'999, "0", "JUSTID")[1], "*0[]");
}

TEST_P(Claiming, AnEntryThatWasForcedIntoThePendingListIsStillDelivered) {
  given_three_entries();
  s().consume("g", "alice", {.count = 2, .block = 0ms});
  EXPECT_EQ(s().claim("g", "bob", 0ms, {StreamId{3, 0}}, {.force = true}).claimed.size(), 1U);
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 bob 2");
  EXPECT_EQ(s().consume("g", "alice", kAllNow).ids(), (Ids{{3, 0}}));
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

TEST_P(BareClaiming, AMalformedIdIsTakenForAnOption) {
  given_three_pending();
  EXPECT_EQ(bare("XCLAIM", "s", "g", "bob", 0, "notanid"),
            "-ERR Unrecognized XCLAIM option 'notanid'");
}

TEST(MalformedIds, NeverReachACall) { EXPECT_THROW(StreamId::parse("notanid"), InvalidArgument); }

MILLRACE_ON_BOTH_PROTOCOLS(Claiming);
MILLRACE_ON_BOTH_PROTOCOLS(BareClaiming);

}  // namespace
}  // namespace millrace::test

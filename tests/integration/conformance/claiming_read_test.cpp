#include "conformance.hpp"

namespace millrace::test {
namespace {

/// XREADGROUP with CLAIM: pending and new entries by one read.
class BareClaimingRead : public BareConformanceTest {
 protected:
  void make_idle(const std::string& id) {
    raw()("XCLAIM", "s", "g", "alice", 0, id, "IDLE", 500'000, "JUSTID");
  }
  RawReply read(const std::string& consumer, std::int64_t min_idle, const std::string& from = ">") {
    return bare("XREADGROUP", "GROUP", "g", consumer, "CLAIM", min_idle, "STREAMS", "s", from);
  }
};

TEST_P(BareClaimingRead, IdleEntriesComeFirstWithWhatTheyWereBefore) {
  MILLRACE_NEEDS_REDIS(8, 4);
  given_three_entries();
  bare("XREADGROUP", "GROUP", "g", "alice", "COUNT", 2, "STREAMS", "s", ">");
  make_idle("1-0");

  const RawReply reply = read("bob", 400'000);
  const RawReply& entries = entries_of(reply);
  ASSERT_EQ(entries.elements.size(), 2U);  // 2-0 is too young
  EXPECT_EQ(entries[0], R"(*4["1-0" *2["f" "v"] :50…)");
  EXPECT_GE(entries[0][2].integer, 500'000);
  EXPECT_EQ(entries[0][3], ":1");
  EXPECT_EQ(entries[1], R"(*4["3-0" *2["f" "v"] :0 :0])");

  const RawReply pending = bare("XPENDING", "s", "g", "-", "+", 10, "bob");
  EXPECT_EQ(pending[0][3], ":2");
  EXPECT_EQ(pending[1][3], ":1");
}

TEST_P(BareClaimingRead, DeletedEntriesAreSkippedAndStayPending) {
  MILLRACE_NEEDS_REDIS(8, 4);
  given_three_pending();
  bare("XDEL", "s", "2-0");
  const RawReply reply = read("bob", 0);
  EXPECT_EQ(entries_of(reply).elements.size(), 2U);
  EXPECT_EQ(bare("XPENDING", "s", "g")[0], ":3");
  EXPECT_EQ(bare("XPENDING", "s", "g", "2-0", "2-0", 1)[0][1].text, "alice");
}

TEST_P(BareClaimingRead, AnEntryCanComeTwiceInOneReply) {
  MILLRACE_NEEDS_REDIS(8, 4);
  given_three_pending();
  bare("XGROUP", "SETID", "s", "g", "2-0");
  const RawReply reply = read("bob", 0);
  std::vector<std::string> ids;
  for (const RawReply& entry : entries_of(reply).elements) ids.push_back(entry[0].text);
  EXPECT_THAT(ids, ::testing::ElementsAre("1-0", "2-0", "3-0", "3-0"));
}

TEST_P(BareClaimingRead, AHistoryClaimsNothing) {
  MILLRACE_NEEDS_REDIS(8, 4);
  given_three_pending();
  EXPECT_EQ(entries_of(read("bob", 0, "0")), "*0[]");
  EXPECT_EQ(entries_of(read("alice", 0, "2-0")), R"(*1[*2["3-0" *2["f" "v"]]])");
}

MILLRACE_ON_BOTH_PROTOCOLS(BareClaimingRead);

}  // namespace
}  // namespace millrace::test

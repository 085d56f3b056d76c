#include "conformance.hpp"

namespace millrace::test {
namespace {

class Introspection : public StreamTest {
 protected:
  GroupInfo group() const { return s().groups().at(0); }

  /// Whether lag is right after a trim.
  static bool lag_follows_trims() { return server().version().is_redis_from(8, 0); }
};
class BareIntrospection : public BareConformanceTest {};

TEST_P(Introspection, NothingIsPendingForAConsumerThatIsNotThere) {
  given_three_pending();
  EXPECT_TRUE(s().pending_entries("g", {.consumer = "nobody"}).empty());
}

TEST_P(Introspection, NothingIsPendingForAsLongAsNobodyWaited) {
  given_three_pending();
  EXPECT_TRUE(s().pending_entries("g", {.min_idle = 99'999s}).empty());
}

TEST_P(BareIntrospection, AnEntryThatWasGivenBackHasNoOwnerAndNoIdleTime) {
  MILLRACE_NEEDS_REDIS(8, 8);
  given_three_pending();
  EXPECT_EQ(bare("XNACK", "s", "g", "FATAL", "IDS", 1, "1-0"), ":1");
  EXPECT_EQ(bare("XPENDING", "s", "g", "1-0", "1-0", 1),
            R"(*1[*4["1-0" "" :-1 :9223372036854775807]])");
}

TEST_P(Introspection, AGroupThatHasReadNothingLagsByTheWholeStream) {
  given_three_entries();
  EXPECT_EQ(group().entries_read, std::nullopt);
  EXPECT_EQ(group().lag, 3);
  s().consume("g", "alice", kAllNow);
  EXPECT_EQ(group().entries_read, 3U);
  EXPECT_EQ(group().lag, 0);
}

TEST_P(Introspection, TheLagOfAGroupThatStartsInTheMiddleIsUnknown) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}});
  s().ensure_group("g", GroupStart::after({3, 0}));
  EXPECT_EQ(group().entries_read, std::nullopt);
  EXPECT_EQ(group().lag, std::nullopt);
}

TEST_P(Introspection, TheLagBehindADeletedEntryIsUnknown) {
  given_three_entries();
  s().consume("g", "alice", {.count = 1, .block = 0ms});
  s().erase({StreamId{2, 0}});
  EXPECT_EQ(group().lag, std::nullopt);
}

TEST_P(Introspection, OlderServersReportALagThatATrimHasTakenAway) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}});
  s().ensure_group("g", GroupStart::beginning());
  s().consume("g", "alice", {.count = 1, .block = 0ms});
  s().trim(Trim::max_len(1).exactly());
  EXPECT_EQ(group().lag, lag_follows_trims() ? 1 : 4);
}

TEST_P(Introspection, ALagCanBeNegative) {
  append(s(), {{1, 0}});
  raw()("XGROUP", "CREATE", "s", "g", "1-0", "ENTRIESREAD", 9999);
  EXPECT_EQ(group().lag, server().version().is_redis_from(8, 2) ? 0 : -9998);
}

TEST_P(Introspection, AConsumerThatNeverGotAnythingHasNoTimeSinceItDid) {
  s().ensure_group("g", GroupStart::now());
  s().create_consumer("g", "alice");
  EXPECT_EQ(s().consumers("g").at(0).inactive, std::nullopt);
}

TEST_P(Introspection, NewerServersSayHowLongAConsumerHasGotNothing) {
  given_three_pending();
  const ConsumerInfo alice = s().consumers("g").at(0);
  const ServerVersion& version = server().version();
  if (version.is_redis() && !version.is_redis_from(7, 2)) {
    EXPECT_EQ(alice.inactive, std::nullopt);
  } else {
    ASSERT_TRUE(alice.inactive.has_value());
    EXPECT_GE(*alice.inactive, 0ms);
    EXPECT_LT(*alice.inactive, kGenerous);
  }
}

TEST_P(BareIntrospection, AMissingStreamIsAnOrdinaryError) {
  EXPECT_EQ(bare("XINFO", "STREAM", "s"), "-ERR no such key");
  EXPECT_EQ(bare("XINFO", "GROUPS", "s"), "-ERR no such key");
  EXPECT_EQ(bare("XINFO", "CONSUMERS", "s", "g"), "-ERR no such key");
}

TEST_P(Introspection, AMissingStreamIsEmpty) {
  EXPECT_EQ(s().info().length, 0U);
  EXPECT_TRUE(s().groups().empty());
  EXPECT_TRUE(s().consumers("g").empty());
  EXPECT_EQ(s().full_info().length, 0U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Introspection);
MILLRACE_ON_BOTH_PROTOCOLS(BareIntrospection);

}  // namespace
}  // namespace millrace::test

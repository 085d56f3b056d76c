#include "support/monitor.hpp"
#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class Trimming : public StreamTest {
 protected:
  void given_many(std::size_t count) {
    const std::vector<OwnedFields> entries(500, OwnedFields{{"f", "v"}});
    for (std::size_t i = 0; i < count; i += entries.size()) s().add_batch(entries);
  }
};

TEST_P(Trimming, ToALengthRemovesTheOldest) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(s().trim(Trim::max_len(1).exactly()), 2U);
  EXPECT_EQ(s().replay().ids(), (Ids{{3, 0}}));
  EXPECT_EQ(s().trim(Trim::max_len(1).exactly()), 0U);
}

TEST_P(Trimming, ToAnIdKeepsThatId) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(s().trim(Trim::min_id({2, 0}).exactly()), 1U);
  EXPECT_EQ(s().replay().ids(), (Ids{{2, 0}, {3, 0}}));
}

TEST_P(Trimming, ToAnAgeKeepsWhatIsYounger) {
  append(s(), {{1, 0}, {2, 0}});
  s().add({{"f", "v"}});
  EXPECT_EQ(s().trim(Trim::max_age(1h).exactly()), 2U);
  EXPECT_EQ(s().length(), 1U);
}

TEST_P(Trimming, ToNothingKeepsTheStream) {
  append(s(), {{1, 0}});
  EXPECT_EQ(s().trim(Trim::max_len(0).exactly()), 1U);
  EXPECT_EQ(s().length(), 0U);
  EXPECT_EQ(s().info().last_generated_id, (StreamId{1, 0}));
}

TEST_P(Trimming, ApproximatelyKeepsWholeNodes) {
  given_many(500);
  const auto removed = s().trim(Trim::max_len(250));
  EXPECT_EQ(removed, 200U);
  EXPECT_EQ(s().length(), 300U);
}

TEST_P(Trimming, ApproximatelyGoesOnUntilNothingMoreGoes) {
  given_many(20'500);
  // One server call removes 10,000 entries at most.
  EXPECT_EQ(s().trim(Trim::max_len(100)), 20'400U);
  EXPECT_EQ(s().length(), 100U);
}

TEST_P(Trimming, WithALimitStopsThere) {
  given_many(500);
  EXPECT_EQ(s().trim(Trim::max_len(0).limit(200)), 200U);
  EXPECT_EQ(s().length(), 300U);
}

TEST_P(Trimming, OfAMissingStreamRemovesNothing) {
  EXPECT_EQ(s().trim(Trim::max_len(0).exactly()), 0U);
  EXPECT_EQ(s().trim(Trim::max_len(0)), 0U);
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

TEST_P(Trimming, ToANegativeAgeIsRefused) {
  EXPECT_THROW(static_cast<void>(Trim::max_age(-1ms)), InvalidArgument);
}

class SafeTrimming : public StreamTest {};

TEST_P(SafeTrimming, WithoutGroupsTrimsNothing) {
  append(s(), {{1, 0}, {2, 0}});
  EXPECT_EQ(s().trim_safely(), 0U);
  EXPECT_EQ(s().length(), 2U);
}

TEST_P(SafeTrimming, KeepsWhatAGroupHasNotRead) {
  given_three_entries();
  EXPECT_EQ(s().trim_safely(), 0U);
  s().consume("g", "alice", {.count = 2, .block = 0ms});
  s().ack("g", {StreamId{1, 0}, StreamId{2, 0}});
  EXPECT_EQ(s().trim_safely(), 2U);
  EXPECT_EQ(s().replay().ids(), (Ids{{3, 0}}));
}

TEST_P(SafeTrimming, KeepsWhatAGroupHasNotAcknowledged) {
  given_three_pending();
  EXPECT_EQ(s().trim_safely(), 0U);
  s().ack("g", {StreamId{1, 0}, StreamId{3, 0}});
  EXPECT_EQ(s().trim_safely(), 1U);
  EXPECT_EQ(s().replay().ids(), (Ids{{2, 0}, {3, 0}}));
}

TEST_P(SafeTrimming, RemovesAllThatEveryGroupIsDoneWith) {
  given_three_pending();
  s().ack("g", {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}});
  EXPECT_EQ(s().trim_safely(), 3U);
  EXPECT_EQ(s().length(), 0U);
  append(s(), {{4, 0}});
  EXPECT_EQ(s().consume("g", "alice", kAllNow).ids(), (Ids{{4, 0}}));
}

TEST_P(SafeTrimming, WaitsForTheSlowestGroup) {
  given_three_pending();
  s().ack("g", {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}});
  s().ensure_group("slow", GroupStart::beginning());
  EXPECT_EQ(s().trim_safely(), 0U);
  s().consume("slow", "bob", {.count = 1, .block = 0ms});
  EXPECT_EQ(s().trim_safely(), 0U);
  s().ack("slow", {StreamId{1, 0}});
  EXPECT_EQ(s().trim_safely(), 1U);
  EXPECT_EQ(s().replay().ids(), (Ids{{2, 0}, {3, 0}}));
}

TEST_P(SafeTrimming, KeepsWhatWasMadeReadableAgain) {
  given_three_pending();
  s().ack("g", {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}});
  s().set_group_position("g", GroupStart::after({1, 0}));
  EXPECT_EQ(s().trim_safely(), 1U);
  EXPECT_EQ(s().consume("g", "alice", kAllNow).ids(), (Ids{{2, 0}, {3, 0}}));
}

TEST_P(SafeTrimming, DecidesAndActsInOneScript) {
  given_three_pending();
  s().ack("g", {StreamId{1, 0}});
  Monitor monitor{server()};
  EXPECT_EQ(s().trim_safely(), 1U);
  raw()("ECHO", Monitor::kMark);
  // Between two commands of its own somebody could make a group that needs what is about to go.
  const auto lines = monitor.until_mark();
  EXPECT_THAT(lines, ::testing::Contains(::testing::HasSubstr("\"EVALSHA\"")));
  for (const std::string& line : lines) {
    EXPECT_THAT(Monitor::sent(line), ::testing::AnyOf("EVALSHA", "EVAL", "")) << line;
  }
}

TEST_P(SafeTrimming, OfManyEntriesIsComplete) {
  s().ensure_group("g", GroupStart::beginning());
  s().add_batch(std::vector<OwnedFields>(12'345, OwnedFields{{"f", "v"}}));
  s().consume("g", "alice", {.count = 12'345, .block = 0ms, .no_ack = true});
  EXPECT_EQ(s().trim_safely(), 12'345U);
}

TEST_P(SafeTrimming, OfAMissingStreamTrimsNothing) {
  EXPECT_EQ(s().trim_safely(), 0U);
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

MILLRACE_ON_BOTH_PROTOCOLS(Trimming);
MILLRACE_ON_BOTH_PROTOCOLS(SafeTrimming);

}  // namespace
}  // namespace millrace::test

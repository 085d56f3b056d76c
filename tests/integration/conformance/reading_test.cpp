#include "conformance.hpp"

#include <algorithm>

namespace millrace::test {
namespace {

class Reading : public StreamTest {};
class BareReading : public BareConformanceTest {};

TEST_P(Reading, AMissingStreamHasNoEntries) {
  EXPECT_TRUE(s().read(StreamId::min(), kAllNow).empty());
  EXPECT_TRUE(s().read(StreamId::min(), {.block = 30ms}).empty());
  EXPECT_EQ(raw()("XREAD", "STREAMS", "s", "0"), "*-1");
}

TEST_P(Reading, AnEmptyStreamHasNoEntries) {
  append(s(), {{1, 0}});
  s().erase({StreamId{1, 0}});
  EXPECT_TRUE(s().read(StreamId::min(), kAllNow).empty());
}

TEST_P(Reading, AReadWithoutEntriesWaitsForAsLongAsItWasTold) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(s().read(StreamId::min(), {.block = 30ms}).empty());
  // The server's clock counts whole milliseconds.
  EXPECT_GE(std::chrono::steady_clock::now() - start, 29ms);
}

TEST_P(Reading, AFollowerMissesNothingBetweenTwoReads) {
  append(s(), {{1, 0}});
  Follower follower = s().follow(FollowStart::now());
  EXPECT_TRUE(follower.next(10ms).empty());
  append(s(), {{2, 0}});
  EXPECT_EQ(text(follower.next(10ms)), "2-0[f=v]");
}

TEST_P(BareReading, ADollarThatIsSentAgainLosesWhatCameInBetween) {
  bare("XADD", "s", "1-0", "f", "v");
  EXPECT_EQ(bare("XREAD", "BLOCK", 10, "STREAMS", "s", "$"), null_array());
  bare("XADD", "s", "2-0", "f", "v");
  EXPECT_EQ(bare("XREAD", "BLOCK", 10, "STREAMS", "s", "$"), null_array());
}

TEST_P(BareReading, ACountOfZeroOrLessIsNoLimit) {
  given_three_entries();
  EXPECT_EQ(entries_of(bare("XREAD", "COUNT", 0, "STREAMS", "s", "0")).elements.size(), 3U);
  EXPECT_EQ(entries_of(bare("XREAD", "COUNT", -1, "STREAMS", "s", "0")).elements.size(), 3U);
}

TEST_P(Reading, ACountOfZeroIsRefusedSinceTheServerReadsItAsNoLimit) {
  given_three_entries();
  EXPECT_THROW(s().read(StreamId::min(), {.count = 0, .block = 0ms}), InvalidArgument);
}

TEST_P(BareReading, ARangeOfZeroEntriesIsNullOrEmpty) {
  EXPECT_EQ(bare("XRANGE", "s", "-", "+", "COUNT", 0), "*0[]");
  given_three_entries();
  EXPECT_EQ(bare("XRANGE", "s", "-", "+", "COUNT", 0), null_array());
}

TEST_P(Reading, ARangeOfZeroEntriesIsRefusedWithAndWithoutAStream) {
  EXPECT_THROW(s().replay({}, {}, 0), InvalidArgument);
  EXPECT_THROW(s().tail(0), InvalidArgument);
  given_three_entries();
  EXPECT_THROW(s().replay({}, {}, 0), InvalidArgument);
  EXPECT_THROW(s().tail(0), InvalidArgument);
}

TEST_P(BareReading, AMillisecondAsARangesEndMeansAllOfIt) {
  for (const char* id : {"1-9", "2-0", "2-1", "2-18446744073709551615", "3-0"}) {
    bare("XADD", "s", id, "f", "v");
  }
  const RawReply range = bare("XRANGE", "s", "2", "2");
  ASSERT_EQ(range.elements.size(), 3U);
  EXPECT_EQ(range[0][0].text, "2-0");
  EXPECT_EQ(range[2][0].text, "2-18446744073709551615");
}

TEST_P(Reading, ARangesEndIsTheIdThatWasGiven) {
  append(s(), {{1, 9}, {2, 0}, {2, 1}, {2, StreamId::max().seq}, {3, 0}});
  EXPECT_EQ(s().replay(StreamId{2, 0}, StreamId{2, 0}).ids(), (Ids{{2, 0}}));
  EXPECT_EQ(s().replay(StreamId{2, 0}, StreamId{2, StreamId::max().seq}).size(), 3U);
}

TEST_P(BareReading, ARangeCannotStartAfterTheLastPossibleId) {
  EXPECT_EQ(bare("XRANGE", "s", "(18446744073709551615-18446744073709551615", "+"),
            "-ERR invalid start ID for the interval");
}

TEST_P(Reading, ARangeAfterTheLastPossibleIdIsEmpty) {
  append(s(), {{1, 0}, StreamId::max()});
  EXPECT_TRUE(s().replay(RangeStart::after(StreamId::max())).empty());
  EXPECT_TRUE(s().replay({}, RangeEnd::before(StreamId::min())).empty());
}

TEST_P(Reading, AnIterationEndsQuietlyAtTheLastPossibleId) {
  append(s(), {{1, 0}, StreamId::max()});
  Ids seen;
  for (const Entry& entry : s().replay_all({}, {}, 1)) seen.push_back(entry.id());
  EXPECT_EQ(seen, (Ids{{1, 0}, StreamId::max()}));
}

TEST_P(Reading, TheTailIsTheHistoryBackwards) {
  given_three_entries();
  Ids backwards = s().replay().ids();
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(s().tail(100).ids(), backwards);
}

TEST_P(BareReading, AKeyThatIsNamedTwiceIsAnsweredTwice) {
  bare("XADD", "s", "1-0", "f", "v");
  bare("XADD", "s", "2-0", "f", "v");
  EXPECT_EQ(bare("XREAD", "STREAMS", "s", "s", "0", "1-0"),
            resp3() ? R"(%2{"s"=*2[*2["1-0" *2["f" "v"]] *2["2-0" *2["f" "v"]]], )"
                      R"("s"=*1[*2["2-0" *2["f" "v"]]]})"
                    : R"(*2[*2["s" *2[*2["1-0" *2["f" "v"]] *2["2-0" *2["f" "v"]]]] )"
                      R"(*2["s" *1[*2["2-0" *2["f" "v"]]]]])");
}

TEST_P(BareReading, AHistoryAndNewEntriesOfOneKeyAreBothAnswered) {
  given_three_entries();
  bare("XREADGROUP", "GROUP", "g", "alice", "COUNT", 1, "STREAMS", "s", ">");
  const RawReply reply =
      bare("XREADGROUP", "GROUP", "g", "alice", "COUNT", 1, "STREAMS", "s", "s", "0", ">");
  EXPECT_EQ(reply, resp3() ? R"(%2{"s"=*1[*2["1-0" *2["f" "v"]]], "s"=*1[*2["2-0" *2["f" "v"]]]})"
                           : R"(*2[*2["s" *1[*2["1-0" *2["f" "v"]]]] )"
                             R"(*2["s" *1[*2["2-0" *2["f" "v"]]]]])");
}

TEST_P(Reading, AReadGoesOnAfterTheLastIdOfAMillisecond) {
  append(s(), {{1, StreamId::max().seq}, {2, 1}});
  EXPECT_EQ(s().read({1, StreamId::max().seq}, kAllNow).ids(), (Ids{{2, 1}}));
}

TEST_P(Reading, AStreamThatWasMadeAnewWithSmallerIdsDoesNotWakeItsReaders) {
  append(s(), {{9, 0}});
  auto read = std::async(std::launch::async, [stream = s()] { return stream.read({9, 0}, kLong); });
  ASSERT_TRUE(blocked(1));
  raw()("DEL", "s");
  raw()("XADD", "s", "1-0", "f", "v");
  EXPECT_EQ(blocked_now(), "1");
  raw()("XADD", "s", "9-1", "f", "v");
  EXPECT_EQ(text(read.get()), "9-1[f=v]");
}

MILLRACE_ON_BOTH_PROTOCOLS(Reading);
MILLRACE_ON_BOTH_PROTOCOLS(BareReading);

}  // namespace
}  // namespace millrace::test

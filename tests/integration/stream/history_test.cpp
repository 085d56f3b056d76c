#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class History : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    if (!IsSkipped()) append(s(), {{1, 0}, {2, 0}, {3, 0}});
  }
};

TEST_P(History, IsReadAfterAnId) {
  EXPECT_EQ(text(s().read(StreamId::min(), kAllNow)), "1-0[f=v] 2-0[f=v] 3-0[f=v]");
  EXPECT_EQ(s().read({1, 0}, kAllNow).ids(), (Ids{{2, 0}, {3, 0}}));
  EXPECT_TRUE(s().read({3, 0}, kAllNow).empty());
  EXPECT_EQ(s().read(StreamId::min(), {.count = 2, .block = 0ms}).ids(), (Ids{{1, 0}, {2, 0}}));
}

TEST_P(History, AReadWaitsForWhatIsToCome) {
  auto read = std::async(std::launch::async, [stream = s()] { return stream.read({3, 0}, kLong); });
  ASSERT_TRUE(blocked(1));
  append(s(), {{4, 0}});
  EXPECT_EQ(text(read.get()), "4-0[f=v]");
}

TEST_P(History, AReadThatIsStoppedIsEmpty) {
  std::stop_source stop;
  auto read = std::async(std::launch::async, [stream = s(), token = stop.get_token()] {
    return stream.read({3, 0}, {.block = 10min, .stop = token});
  });
  ASSERT_TRUE(blocked(1));
  stop.request_stop();
  EXPECT_TRUE(read.get().empty());
}

TEST_P(History, AReadRefusesACountOfZeroAndANegativeBlock) {
  EXPECT_THROW(s().read(StreamId::min(), {.count = 0}), InvalidArgument);
  EXPECT_THROW(s().read(StreamId::min(), {.block = -1ms}), InvalidArgument);
}

TEST_P(History, IsReplayedBetweenEndsThatBelongToIt) {
  EXPECT_EQ(s().replay().size(), 3U);
  EXPECT_EQ(s().replay(StreamId{2, 0}).ids(), (Ids{{2, 0}, {3, 0}}));
  EXPECT_EQ(s().replay({}, StreamId{2, 0}).ids(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(s().replay(StreamId{2, 0}, StreamId{2, 0}).ids(), (Ids{{2, 0}}));
}

TEST_P(History, IsReplayedBetweenEndsThatDoNot) {
  EXPECT_EQ(s().replay(RangeStart::after({1, 0})).ids(), (Ids{{2, 0}, {3, 0}}));
  EXPECT_EQ(s().replay({}, RangeEnd::before({3, 0})).ids(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(s().replay(RangeStart::after({1, 0}), RangeEnd::before({3, 0})).ids(), (Ids{{2, 0}}));
  EXPECT_TRUE(s().replay(RangeStart::after({1, 0}), RangeEnd::before({2, 0})).empty());
}

TEST_P(History, IsEmptyBetweenEndsThatAreReversed) {
  EXPECT_TRUE(s().replay(StreamId{3, 0}, StreamId{1, 0}).empty());
}

TEST_P(History, IsReplayedUpToACount) {
  EXPECT_EQ(s().replay({}, {}, 2).ids(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_THROW(s().replay({}, {}, 0), InvalidArgument);
}

TEST_P(History, HasATailThatIsNewestFirst) {
  EXPECT_EQ(text(s().tail(2)), "3-0[f=v] 2-0[f=v]");
  EXPECT_EQ(s().tail().size(), 3U);
  EXPECT_THROW(s().tail(0), InvalidArgument);
}

TEST_P(History, OfAMissingStreamIsEmpty) {
  const EventStream missing = stream("missing");
  EXPECT_TRUE(missing.replay().empty());
  EXPECT_TRUE(missing.tail().empty());
  EXPECT_TRUE(missing.read(StreamId::min(), kAllNow).empty());
}

TEST_P(History, ABatchOutlivesWhatItCameFrom) {
  EntryBatch batch = s().replay();
  const Entry entry = batch[1];
  const EntryBatch moved = std::move(batch);
  s().delete_stream();
  EXPECT_EQ(text(entry), "2-0[f=v]");
  EXPECT_EQ(moved.size(), 3U);
}

MILLRACE_ON_BOTH_PROTOCOLS(History);

}  // namespace
}  // namespace millrace::test

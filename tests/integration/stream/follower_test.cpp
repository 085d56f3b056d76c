#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class Following : public StreamTest {};

TEST_P(Following, StartsAtTheBeginningNowOrAfterAnId) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(s().follow(FollowStart::beginning()).next(0ms).size(), 3U);
  EXPECT_EQ(s().follow(FollowStart::after({2, 0})).next(0ms).ids(), (Ids{{3, 0}}));
  EXPECT_TRUE(s().follow(FollowStart::now()).next(0ms).empty());
}

TEST_P(Following, KnowsItsPosition) {
  append(s(), {{1, 0}, {2, 0}});
  EXPECT_EQ(s().follow(FollowStart::now()).position(), (StreamId{2, 0}));
  Follower follower = s().follow(FollowStart::beginning());
  EXPECT_EQ(follower.position(), StreamId::min());
  follower.next(0ms);
  EXPECT_EQ(follower.position(), (StreamId{2, 0}));
  follower.next(0ms);
  EXPECT_EQ(follower.position(), (StreamId{2, 0}));
}

TEST_P(Following, NowIsPinnedWhenItIsAskedForAndNotAtTheFirstRead) {
  append(s(), {{1, 0}});
  Follower follower = s().follow(FollowStart::now());
  append(s(), {{2, 0}});
  EXPECT_EQ(follower.next(0ms).ids(), (Ids{{2, 0}}));
  EXPECT_TRUE(follower.next(10ms).empty());
  append(s(), {{3, 0}});
  EXPECT_EQ(follower.next(0ms).ids(), (Ids{{3, 0}}));
}

TEST_P(Following, NowOfAMissingStreamIsItsBeginning) {
  Follower follower = s().follow(FollowStart::now());
  append(s(), {{0, 1}});
  EXPECT_EQ(follower.next(0ms).ids(), (Ids{{0, 1}}));
}

TEST_P(Following, NowAfterADeletedLastEntryMissesNothing) {
  append(s(), {{1, 0}, {2, 0}});
  s().erase({StreamId{2, 0}});
  Follower follower = s().follow(FollowStart::now());
  append(s(), {{2, 1}});
  EXPECT_EQ(follower.next(0ms).ids(), (Ids{{2, 1}}));
}

TEST_P(Following, OnlyNowNeedsTheServerToBegin) {
  ConnectionOptions nobody = options();
  nobody.unix_socket = "/nonexistent/socket";
  const EventStream stream{ConnectionPool{nobody}, "s"};
  EXPECT_EQ(stream.follow(FollowStart::after({7, 0})).position(), (StreamId{7, 0}));
  EXPECT_THROW(stream.follow(FollowStart::now()), ConnectError);
}

TEST_P(Following, WaitsForTheNextEntry) {
  Follower follower = s().follow(FollowStart::beginning());
  auto next = std::async(std::launch::async, [&] { return follower.next(kGenerous); });
  ASSERT_TRUE(blocked(1));
  append(s(), {{1, 0}});
  EXPECT_EQ(next.get().ids(), (Ids{{1, 0}}));
}

TEST_P(Following, EndsItsWaitWhenStopIsRequested) {
  Follower follower = s().follow(FollowStart::after({1, 0}));
  std::stop_source stop;
  auto next = std::async(std::launch::async,
                         [&, token = stop.get_token()] { return follower.next(10min, token); });
  ASSERT_TRUE(blocked(1));
  stop.request_stop();
  EXPECT_TRUE(next.get().empty());
  EXPECT_EQ(follower.position(), (StreamId{1, 0}));
  append(s(), {{2, 0}});
  EXPECT_EQ(follower.next(0ms).ids(), (Ids{{2, 0}}));
}

TEST_P(Following, StaysWhereItIsAfterAnError) {
  append(s(), {{1, 0}});
  Follower follower = s().follow(FollowStart::beginning());
  follower.next(0ms);
  raw()("RENAME", "s", "aside");
  raw()("SET", "s", "no stream");
  EXPECT_THROW(follower.next(0ms), WrongTypeError);
  EXPECT_EQ(follower.position(), (StreamId{1, 0}));
  raw()("RENAME", "aside", "s");
  append(s(), {{2, 0}});
  EXPECT_EQ(follower.next(0ms).ids(), (Ids{{2, 0}}));
}

TEST_P(Following, ACopyGoesItsOwnWay) {
  append(s(), {{1, 0}, {2, 0}});
  Follower follower = s().follow(FollowStart::beginning());
  Follower copy = follower;
  follower.next(0ms);
  EXPECT_EQ(copy.position(), StreamId::min());
  EXPECT_EQ(copy.next(0ms).size(), 2U);
}

TEST_P(Following, ReadsAStreamOfManyEntriesToItsEnd) {
  s().add_batch(std::vector<OwnedFields>(2500, OwnedFields{{"f", "v"}}));
  Follower follower = s().follow(FollowStart::beginning());
  std::size_t seen = 0;
  for (EntryBatch batch = follower.next(0ms); !batch.empty(); batch = follower.next(0ms)) {
    seen += batch.size();
  }
  EXPECT_EQ(seen, 2500U);
}

TEST_P(Following, RefusesANegativeBlock) {
  Follower follower = s().follow(FollowStart::beginning());
  EXPECT_THROW(follower.next(-1ms), InvalidArgument);
}

MILLRACE_ON_BOTH_PROTOCOLS(Following);

}  // namespace
}  // namespace millrace::test

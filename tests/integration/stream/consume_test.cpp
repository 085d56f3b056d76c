#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <set>
#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class Consume : public StreamTest {};

TEST_P(Consume, DeliversNewEntriesOldestFirstAndKeepsThemPending) {
  given_three_entries();
  EXPECT_EQ(text(s().consume("g", "alice", {.count = 2, .block = 0ms})), "1-0[f=v] 2-0[f=v]");
  EXPECT_EQ(text(s().consume("g", "bob", {.count = 2, .block = 0ms})), "3-0[f=v]");
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 bob 1");
}

TEST_P(Consume, DoesNotWaitWithABlockOfZero) {
  s().ensure_group("g", GroupStart::beginning());
  EXPECT_TRUE(s().consume("g", "alice", {.block = 0ms}).empty());
}

TEST_P(Consume, WaitsForTheFirstEntry) {
  s().ensure_group("g", GroupStart::beginning());
  auto read = consume_in_background(s(), "alice");
  ASSERT_TRUE(blocked(1));
  append(s(), {{1, 0}});
  EXPECT_EQ(text(read.get()), "1-0[f=v]");
}

TEST_P(Consume, WaitsLongerThanACommandMayTake) {
  s().ensure_group("g", GroupStart::beginning());
  ConnectionOptions hasty = options();
  hasty.connect_timeout = 1s;
  hasty.command_timeout = 300ms;
  const EventStream stream{ConnectionPool{hasty}, "s"};
  const auto start = Clock::now();
  EXPECT_TRUE(stream.consume("g", "alice", {.block = 5s}).empty());
  EXPECT_GE(Clock::now() - start, 4900ms) << "the server counts from its cached clock";
  EXPECT_TRUE(stream.read(StreamId::min(), {.block = 1500ms}).empty());
  EXPECT_EQ(stream.pool().stats().created, 1U);
}

TEST_P(Consume, GoesOnInALoopOfReadsThatAllWaitLongerThanACommandMayTake) {
  s().ensure_group("g", GroupStart::beginning());
  ConnectionOptions hasty = options();
  hasty.command_timeout = 200ms;
  const EventStream stream{ConnectionPool{hasty}, "s"};
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(stream.read(StreamId::min(), {.block = 300ms}).empty());
    EXPECT_TRUE(stream.consume("g", "alice", {.block = 300ms}).empty());
  }
  append(s(), {{1, 0}});
  EXPECT_EQ(text(stream.read(StreamId::min(), kLong)), "1-0[f=v]");
  EXPECT_EQ(text(stream.consume("g", "alice", kLong)), "1-0[f=v]");
  EXPECT_EQ(stream.pool().stats().created, 1U);
}

TEST_P(Consume, EndsAtOnceWhenStopIsRequested) {
  s().ensure_group("g", GroupStart::beginning());
  std::stop_source stop;
  auto read = consume_in_background(s(), "alice", {.block = 10min, .stop = stop.get_token()});
  ASSERT_TRUE(blocked(1));
  const auto start = Clock::now();
  stop.request_stop();
  EXPECT_TRUE(read.get().empty());
  EXPECT_LT(Clock::now() - start, kGenerous);
}

TEST_P(Consume, LosesNothingToAReadThatWasStopped) {
  s().ensure_group("g", GroupStart::beginning());
  std::stop_source stop;
  auto read = consume_in_background(s(), "alice", {.block = 10min, .stop = stop.get_token()});
  ASSERT_TRUE(blocked(1));
  stop.request_stop();
  EXPECT_TRUE(read.get().empty());
  ASSERT_TRUE(blocked(0));
  append(s(), {{1, 0}});
  EXPECT_EQ(s().pending("g").count, 0U);
  EXPECT_EQ(s().consume("g", "alice", kAllNow).size(), 1U);
}

TEST_P(Consume, DeliversNothingAfterStopWasRequested) {
  given_three_entries();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(s().consume("g", "alice", {.stop = stop.get_token()}).empty());
  EXPECT_EQ(s().pending("g").count, 0U);
}

TEST_P(Consume, KeepsNothingPendingWithNoAck) {
  given_three_entries();
  EXPECT_EQ(s().consume("g", "alice", {.block = 0ms, .no_ack = true}).size(), 3U);
  EXPECT_EQ(s().pending("g").count, 0U);
  EXPECT_TRUE(s().consume("g", "alice", kAllNow).empty());
}

TEST_P(Consume, RefusesACountOfZeroAndANegativeBlock) {
  given_three_entries();
  EXPECT_THROW(s().consume("g", "alice", {.count = 0}), InvalidArgument);
  const auto error = thrown<InvalidArgument>([&] { s().consume("g", "alice", {.block = -1ms}); });
  EXPECT_THAT(error.what(), ::testing::HasSubstr("block"));
  EXPECT_EQ(s().pending("g").count, 0U);
}

TEST_P(Consume, WhoseReplyWasLostLeavesItsEntriesToBeClaimed) {
  given_three_entries();
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream stream{ConnectionPool{through}, "s"};
  stream.pool().ping();
  proxy.lose_reply_to("XREADGROUP");

  EXPECT_EQ(thrown<IoError>([&] { stream.consume("g", "alice", kAllNow); }).outcome(),
            Outcome::kUnknown);

  const std::vector<PendingEntry> lost = stream.pending_entries("g", {.consumer = "alice"});
  ASSERT_EQ(text(lost), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
  Ids ids;
  for (const PendingEntry& entry : lost) ids.push_back(entry.id);
  EXPECT_EQ(text(stream.claim("g", "alice", 0ms, ids, {.delivery_count = 1}).claimed),
            "1-0[f=v] 2-0[f=v] 3-0[f=v]");
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

TEST_P(Consume, GivesAFreshBatchEachTime) {
  s().ensure_group("g", GroupStart::beginning());
  std::vector<OwnedFields> entries(50, OwnedFields{{"f", "v"}});
  s().add_batch(entries);
  std::set<StreamId> seen;
  EntryBatch batch;
  for (int i = 0; i < 50; ++i) {
    batch = s().consume("g", "alice", {.count = 1, .block = 0ms});
    ASSERT_EQ(batch.size(), 1U);
    seen.insert(batch[0].id());
  }
  EXPECT_EQ(seen.size(), 50U);
  EXPECT_TRUE(s().consume("g", "alice", kAllNow).empty());
}

TEST_P(Consume, DoesNotHoldUpAppendsWhileItWaits) {
  s().ensure_group("g", GroupStart::beginning());
  const EventStream narrow{pool({.max_connections = 2}), "s"};
  const EventStream other{narrow.pool(), "t"};
  auto read = consume_in_background(narrow, "alice");
  ASSERT_TRUE(blocked(1));
  for (int i = 0; i < 200; ++i) other.add({{"f", "v"}});
  EXPECT_EQ(blocked_now(), "1");
  narrow.add({{"f", "v"}});
  EXPECT_EQ(read.get().size(), 1U);
  EXPECT_EQ(narrow.pool().stats().created, 2U);
}

class OwnPending : public StreamTest {};

TEST_P(OwnPending, IsReadAgainAndCountsAsDeliveredOnceMore) {
  given_three_pending();
  EXPECT_EQ(text(s().consume_own_pending("g", "alice")), "1-0[f=v] 2-0[f=v] 3-0[f=v]");
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 2, 2-0 alice 2, 3-0 alice 2");
}

TEST_P(OwnPending, HasItsIdleTimeReset) {
  given_three_pending();
  s().claim("g", "alice", 0ms, {StreamId{1, 0}}, {.idle = 500s});
  ASSERT_GE(s().pending_entries("g").at(0).idle, 500s);
  s().consume_own_pending("g", "alice");
  EXPECT_LT(s().pending_entries("g").at(0).idle, 400s);
}

TEST_P(OwnPending, IsNobodyElses) {
  given_three_pending();
  EXPECT_TRUE(s().consume_own_pending("g", "bob").empty());
}

TEST_P(OwnPending, NeverIncludesNewEntries) {
  given_three_entries();
  EXPECT_TRUE(s().consume_own_pending("g", "alice").empty());
  EXPECT_EQ(s().pending("g").count, 0U);
}

TEST_P(OwnPending, IsPagedByIdAndCount) {
  given_three_pending();
  EXPECT_EQ(s().consume_own_pending("g", "alice", {}, 2).ids(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(s().consume_own_pending("g", "alice", {2, 0}, 2).ids(), (Ids{{3, 0}}));
  EXPECT_THROW(s().consume_own_pending("g", "alice", {}, 0), InvalidArgument);
}

TEST_P(OwnPending, ShowsWhatIsNoLongerInTheStreamAsDeleted) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  const EntryBatch batch = s().consume_own_pending("g", "alice");
  ASSERT_EQ(batch.size(), 3U);
  EXPECT_FALSE(batch[0].deleted());
  EXPECT_TRUE(batch[1].deleted());
  EXPECT_TRUE(batch[1].empty());
  EXPECT_EQ(batch[1].id(), (StreamId{2, 0}));
  EXPECT_EQ(s().ack("g", {batch[1].id()}), 1U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Consume);
MILLRACE_ON_BOTH_PROTOCOLS(OwnPending);

}  // namespace
}  // namespace millrace::test

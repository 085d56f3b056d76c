#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

using TimePoint = std::chrono::system_clock::time_point;

class Inspection : public StreamTest {
 protected:
  static void expect_recent(const std::optional<TimePoint>& time) {
    ASSERT_TRUE(time.has_value());
    EXPECT_GT(*time, std::chrono::system_clock::now() - 1h);
    EXPECT_LT(*time, std::chrono::system_clock::now() + 1h);
  }
};

TEST_P(Inspection, ShowsAStream) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  const StreamInfo info = s().info();
  EXPECT_EQ(s().length(), 2U);
  EXPECT_EQ(info.length, 2U);
  EXPECT_EQ(info.groups, 1U);
  EXPECT_EQ(info.last_generated_id, (StreamId{3, 0}));
  EXPECT_EQ(text(info.first_entry.value()), "1-0[f=v]");
  EXPECT_EQ(text(info.last_entry.value()), "3-0[f=v]");
  EXPECT_EQ(info.entries_added, 3U);
  EXPECT_EQ(info.max_deleted_id, (StreamId{2, 0}));
  EXPECT_EQ(info.recorded_first_id, (StreamId{1, 0}));
  EXPECT_EQ(info.radix_tree_keys, 1U);
  EXPECT_GE(info.radix_tree_nodes, 1U);
}

TEST_P(Inspection, ShowsIdempotenceWhereTheServerHasIt) {
  append(s(), {{1, 0}});
  const StreamInfo info = s().info();
  const FullStreamInfo full = s().full_info();
  const bool has = server().version().is_redis_from(8, 6);
  EXPECT_EQ(info.idmp_duration.has_value(), has);
  EXPECT_EQ(info.iids_duplicates.has_value(), has);
  EXPECT_EQ(full.idmp_maxsize.has_value(), has);
  if (has) {
    EXPECT_EQ(info.idmp_duration, 100s);
    EXPECT_EQ(info.idmp_maxsize, 100U);
    EXPECT_EQ(info.pids_tracked, 0U);
    EXPECT_EQ(info.iids_tracked, 0U);
    EXPECT_EQ(info.iids_added, 0U);
    EXPECT_EQ(full.idmp_duration, 100s);
  }
}

TEST_P(Inspection, ShowsAStreamWithoutEntries) {
  append(s(), {{1, 0}});
  s().erase({StreamId{1, 0}});
  const StreamInfo info = s().info();
  EXPECT_EQ(info.length, 0U);
  EXPECT_EQ(info.first_entry, std::nullopt);
  EXPECT_EQ(info.last_entry, std::nullopt);
  EXPECT_EQ(info.last_generated_id, (StreamId{1, 0}));
}

TEST_P(Inspection, ShowsGroups) {
  given_three_entries();
  s().consume("g", "alice", {.count = 2, .block = 0ms});
  s().create_consumer("g", "bob");
  s().ensure_group("h", GroupStart::now());
  const std::vector<GroupInfo> groups = s().groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].name, "g");
  EXPECT_EQ(groups[0].consumers, 2U);
  EXPECT_EQ(groups[0].pending, 2U);
  EXPECT_EQ(groups[0].last_delivered_id, (StreamId{2, 0}));
  EXPECT_EQ(groups[0].entries_read, 2U);
  EXPECT_EQ(groups[0].lag, 1);
  EXPECT_EQ(groups[1].name, "h");
  EXPECT_EQ(groups[1].lag, 0);
}

TEST_P(Inspection, ShowsConsumers) {
  given_three_pending();
  s().create_consumer("g", "bob");
  const std::vector<ConsumerInfo> consumers = s().consumers("g");
  ASSERT_EQ(consumers.size(), 2U);
  EXPECT_EQ(consumers[0].name, "alice");
  EXPECT_EQ(consumers[0].pending, 3U);
  EXPECT_GE(consumers[0].idle, 0ms);
  EXPECT_LT(consumers[0].idle, kGenerous);
  EXPECT_EQ(consumers[1].name, "bob");
  EXPECT_EQ(consumers[1].pending, 0U);
}

TEST_P(Inspection, ShowsEverythingAtOnce) {
  given_three_pending();
  s().claim("g", "bob", 0ms, {StreamId{3, 0}});
  const FullStreamInfo full = s().full_info();
  EXPECT_EQ(full.length, 3U);
  EXPECT_EQ(full.last_generated_id, (StreamId{3, 0}));
  EXPECT_EQ(full.entries_added, 3U);
  EXPECT_EQ(full.max_deleted_id, StreamId{});
  EXPECT_EQ(full.recorded_first_id, (StreamId{1, 0}));
  EXPECT_EQ(full.radix_tree_keys, 1U);
  ASSERT_EQ(full.entries.size(), 3U);
  EXPECT_EQ(text(full.entries[0]), "1-0[f=v]");

  ASSERT_EQ(full.groups.size(), 1U);
  const FullStreamInfo::Group& group = full.groups[0];
  EXPECT_EQ(group.name, "g");
  EXPECT_EQ(group.last_delivered_id, (StreamId{3, 0}));
  EXPECT_EQ(group.entries_read, 3U);
  EXPECT_EQ(group.lag, 0);
  EXPECT_EQ(group.pending_count, 3U);
  ASSERT_EQ(group.pending.size(), 3U);
  EXPECT_EQ(group.pending[0].id, (StreamId{1, 0}));
  EXPECT_EQ(group.pending[0].consumer, "alice");
  EXPECT_EQ(group.pending[0].deliveries, 1);
  expect_recent(group.pending[0].delivered_at);

  ASSERT_EQ(group.consumers.size(), 2U);
  const FullStreamInfo::Consumer& bob = group.consumers[1];
  EXPECT_EQ(bob.name, "bob");
  EXPECT_EQ(bob.pending_count, 1U);
  ASSERT_EQ(bob.pending.size(), 1U);
  EXPECT_EQ(bob.pending[0].id, (StreamId{3, 0}));
  EXPECT_EQ(bob.pending[0].consumer, "bob");
  EXPECT_EQ(bob.pending[0].deliveries, 2);
  expect_recent(bob.pending[0].delivered_at);
  expect_recent(bob.seen_at);
}

TEST_P(Inspection, ShowsAsManyAsAskedForOrAll) {
  s().ensure_group("g", GroupStart::beginning());
  s().add_batch(std::vector<OwnedFields>(20, OwnedFields{{"f", "v"}}));
  s().consume("g", "alice", kAllNow);
  EXPECT_EQ(s().full_info().entries.size(), 10U);
  EXPECT_EQ(s().full_info(3).entries.size(), 3U);
  EXPECT_EQ(s().full_info(3).groups.at(0).pending.size(), 3U);
  EXPECT_EQ(s().full_info(3).groups.at(0).pending_count, 20U);
  EXPECT_EQ(s().full_info(0).entries.size(), 20U);
  EXPECT_EQ(s().full_info(0).groups.at(0).consumers.at(0).pending.size(), 20U);
}

TEST_P(Inspection, ShowsNothingOfAMissingStream) {
  EXPECT_EQ(s().length(), 0U);
  const StreamInfo info = s().info();
  EXPECT_EQ(info.length, 0U);
  EXPECT_EQ(info.groups, 0U);
  EXPECT_EQ(info.first_entry, std::nullopt);
  EXPECT_EQ(info.entries_added, std::nullopt);
  EXPECT_EQ(info.max_deleted_id, std::nullopt);
  EXPECT_TRUE(s().groups().empty());
  EXPECT_TRUE(s().consumers("g").empty());
  const FullStreamInfo full = s().full_info();
  EXPECT_EQ(full.length, 0U);
  EXPECT_TRUE(full.entries.empty());
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

class Pending : public StreamTest {};

TEST_P(Pending, IsSummedUpByConsumer) {
  given_three_pending();
  s().claim("g", "bob", 0ms, {StreamId{2, 0}});
  const PendingSummary summary = s().pending("g");
  EXPECT_EQ(summary.count, 3U);
  EXPECT_EQ(summary.lowest, (StreamId{1, 0}));
  EXPECT_EQ(summary.highest, (StreamId{3, 0}));
  ASSERT_EQ(summary.consumers.size(), 2U);
  EXPECT_EQ(summary.consumers[0].name, "alice");
  EXPECT_EQ(summary.consumers[0].count, 2U);
  EXPECT_EQ(summary.consumers[1].name, "bob");
  EXPECT_EQ(summary.consumers[1].count, 1U);
}

TEST_P(Pending, OfNothingHasNoIds) {
  s().ensure_group("g", GroupStart::beginning());
  const PendingSummary summary = s().pending("g");
  EXPECT_EQ(summary.count, 0U);
  EXPECT_EQ(summary.lowest, std::nullopt);
  EXPECT_EQ(summary.highest, std::nullopt);
  EXPECT_TRUE(summary.consumers.empty());
}

TEST_P(Pending, IsListedWithOwnerIdleTimeAndDeliveries) {
  given_three_pending();
  s().claim_ids("g", "bob", 0ms, {StreamId{2, 0}}, {.idle = 500s, .delivery_count = 4});
  const std::vector<PendingEntry> entries = s().pending_entries("g");
  EXPECT_EQ(text(entries), "1-0 alice 1, 2-0 bob 4, 3-0 alice 1");
  EXPECT_GE(entries[1].idle, 500s);
  EXPECT_LT(entries[0].idle, 400s);
}

TEST_P(Pending, IsListedByRangeCountConsumerAndIdleTime) {
  given_three_pending();
  s().claim_ids("g", "bob", 0ms, {StreamId{2, 0}}, {.idle = 500s});
  const auto list = [&](const PendingQuery& query) {
    return text(s().pending_entries("g", query));
  };
  EXPECT_EQ(list({.start = StreamId{2, 0}}), "2-0 bob 1, 3-0 alice 1");
  EXPECT_EQ(list({.start = RangeStart::after({2, 0})}), "3-0 alice 1");
  EXPECT_EQ(list({.end = StreamId{2, 0}}), "1-0 alice 1, 2-0 bob 1");
  EXPECT_EQ(list({.end = RangeEnd::before({2, 0})}), "1-0 alice 1");
  EXPECT_EQ(list({.start = RangeStart::after(StreamId::max())}), "");
  EXPECT_EQ(list({.end = RangeEnd::before(StreamId::min())}), "");
  EXPECT_EQ(list({.count = 1}), "1-0 alice 1");
  EXPECT_EQ(list({.consumer = "bob"}), "2-0 bob 1");
  EXPECT_EQ(list({.min_idle = 400s}), "2-0 bob 1");
  EXPECT_EQ(list({.consumer = "alice", .min_idle = 400s}), "");
}

TEST_P(Pending, RefusesACountOfZeroAndANegativeIdleTime) {
  given_three_pending();
  EXPECT_THROW(s().pending_entries("g", {.count = 0}), InvalidArgument);
  EXPECT_THROW(s().pending_entries("g", {.min_idle = -1ms}), InvalidArgument);
}

TEST_P(Pending, IsNotChangedByLooking) {
  given_three_pending();
  s().claim_ids("g", "alice", 0ms, {StreamId{1, 0}}, {.idle = 500s});
  s().pending("g");
  s().pending_entries("g");
  s().full_info();
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
  EXPECT_GE(s().pending_entries("g").at(0).idle, 500s);
}

MILLRACE_ON_BOTH_PROTOCOLS(Inspection);
MILLRACE_ON_BOTH_PROTOCOLS(Pending);

}  // namespace
}  // namespace millrace::test

#include "stream/group_health.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

/// Entries 11-0 to 20-0.
StreamInfo ten() {
  return {.length = 10,
          .groups = 1,
          .last_generated_id = {20, 0},
          .first_entry = OwnedEntry{.id = {11, 0}},
          .last_entry = OwnedEntry{.id = {20, 0}}};
}

GroupInfo at(StreamId position, std::optional<std::int64_t> lag) {
  return {.name = "g", .pending = 99, .last_delivered_id = position, .lag = lag};
}

TEST(UnreadEntries, AreTheLag) { EXPECT_EQ(unread_entries(ten(), at({15, 0}, 5)), 5U); }

TEST(UnreadEntries, AreNoneWhereTheGroupHasReadToTheEndWhateverTheLag) {
  EXPECT_EQ(unread_entries(ten(), at({20, 0}, std::nullopt)), 0U);
  EXPECT_EQ(unread_entries(ten(), at({20, 0}, 7)), 0U);
  EXPECT_EQ(unread_entries(ten(), at(StreamId::max(), -7)), 0U);
  EXPECT_EQ(unread_entries({.last_generated_id = {20, 0}}, at({15, 0}, 4)), 0U);
  StreamInfo tail_deleted = ten();
  tail_deleted.last_generated_id = {22, 0};
  EXPECT_EQ(unread_entries(tail_deleted, at({20, 0}, std::nullopt)), 0U);
}

TEST(UnreadEntries, AreAllWhereTheGroupHasReadNoneOfThoseThatAreThere) {
  EXPECT_EQ(unread_entries(ten(), at({}, std::nullopt)), 10U);
  EXPECT_EQ(unread_entries(ten(), at({3, 0}, 17)), 10U) << "the lag counts what was trimmed";
}

TEST(UnreadEntries, AreNeverMoreThanThereAre) {
  EXPECT_EQ(unread_entries(ten(), at({15, 0}, 17)), 10U);
}

TEST(UnreadEntries, AreUnknownWhereTheServerDoesNotKnowOrIsWrong) {
  EXPECT_EQ(unread_entries(ten(), at({15, 0}, std::nullopt)), std::nullopt);
  EXPECT_EQ(unread_entries(ten(), at({15, 0}, -9'998)), std::nullopt);
}

class TellHealth : public ::testing::Test {
 protected:
  static HealthReplies replies() {
    return {.stream = ten(),
            .groups = {{.name = "other"}, at({15, 0}, 5)},
            .consumers = {{.name = "alice", .pending = 3, .idle = 4ms, .inactive = 5ms}},
            .pending = {.count = 3, .lowest = StreamId{12'000, 7}},
            .now = 72'000ms};
  }
  static GroupHealth health_of(HealthReplies replies, const std::string& group = "g") {
    GroupHealth health{.stream = "s", .group = group};
    tell_health(health, std::move(replies));
    return health;
  }
};

TEST_F(TellHealth, PutsTogetherWhatTheServerSays) {
  const GroupHealth health = health_of(replies());
  EXPECT_TRUE(health.exists);
  EXPECT_EQ(health.length, 10U);
  EXPECT_EQ(health.lag, 5);
  EXPECT_EQ(health.unread, 5U);
  EXPECT_EQ(health.pending, 3U);
  EXPECT_EQ(health.backlog(), 8U);
  EXPECT_EQ(health.oldest_pending, (StreamId{12'000, 7}));
  EXPECT_EQ(health.oldest_pending_age, 60s) << "since it was appended";
  EXPECT_EQ(health.last_delivered_id, (StreamId{15, 0}));
  ASSERT_EQ(health.consumers.size(), 1U);
  EXPECT_EQ(health.consumers[0].name, "alice");
}

TEST_F(TellHealth, KnowsNoAgeWithoutAPendingEntry) {
  HealthReplies none = replies();
  none.pending = {};
  const GroupHealth health = health_of(std::move(none));
  EXPECT_EQ(health.oldest_pending, std::nullopt);
  EXPECT_EQ(health.oldest_pending_age, std::nullopt);
}

TEST_F(TellHealth, TakesAnEntryOfTheFutureForOneOfNow) {
  HealthReplies early = replies();
  early.pending.lowest = StreamId::max();
  EXPECT_EQ(health_of(std::move(early)).oldest_pending_age, 0ms);
}

TEST_F(TellHealth, KnowsOnlyTheStreamOfAGroupThatThereIsNot) {
  const GroupHealth health = health_of(replies(), "nobody");
  EXPECT_FALSE(health.exists);
  EXPECT_EQ(health.length, 10U);
  EXPECT_EQ(health.unread, std::nullopt);
  EXPECT_EQ(health.backlog(), std::nullopt);
  EXPECT_EQ(health.pending, 0U);
}

}  // namespace
}  // namespace millrace::detail

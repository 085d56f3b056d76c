#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class GroupsHealth : public StreamTest {
 protected:
  GroupHealth health() { return s().group_health("g"); }
};

TEST_P(GroupsHealth, TellsWhatIsUnreadAndWhatIsPendingWithWhom) {
  given_three_entries();
  s().consume("g", "alice", {.count = 2, .block = 0ms});
  s().create_consumer("g", "bob");
  const GroupHealth health = this->health();
  EXPECT_TRUE(health.exists);
  EXPECT_EQ(health.stream, "s");
  EXPECT_EQ(health.group, "g");
  EXPECT_EQ(health.length, 3U);
  EXPECT_EQ(health.lag, 1);
  EXPECT_EQ(health.unread, 1U);
  EXPECT_EQ(health.pending, 2U);
  EXPECT_EQ(health.backlog(), 3U);
  EXPECT_EQ(health.last_delivered_id, (StreamId{2, 0}));
  ASSERT_EQ(health.consumers.size(), 2U);
  EXPECT_EQ(health.consumers[0].name, "alice");
  EXPECT_EQ(health.consumers[0].pending, 2U);
  EXPECT_EQ(health.consumers[1].pending, 0U);
  EXPECT_EQ(health.consumers[1].inactive, std::nullopt);
}

TEST_P(GroupsHealth, HasTheAgeOfTheOldestPendingEntryByTheServersClock) {
  const auto now = [this] { return raw()("TIME"); };
  const std::uint64_t seconds = std::stoull(now()[0].text);
  append(s(), {{(seconds - 3'600) * 1'000, 0}, {seconds * 1'000, 0}});
  s().ensure_group("g", GroupStart::beginning());
  s().consume("g", "alice", kAllNow);
  s().claim_ids("g", "bob", 0ms, {StreamId{(seconds - 3'600) * 1'000, 0}});
  const GroupHealth health = this->health();
  ASSERT_TRUE(health.oldest_pending_age.has_value());
  EXPECT_GE(*health.oldest_pending_age, 1h) << "although it has just been claimed";
  EXPECT_LT(*health.oldest_pending_age, 2h);
  EXPECT_EQ(health.oldest_pending, (StreamId{(seconds - 3'600) * 1'000, 0}));
}

TEST_P(GroupsHealth, CountsNothingThatWasTrimmedAsUnread) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}});
  s().ensure_group("g", GroupStart::beginning());
  s().consume("g", "alice", {.count = 1, .block = 0ms});
  s().trim(Trim::max_len(1).exactly());
  EXPECT_EQ(health().unread, 1U);
  s().trim(Trim::max_len(0).exactly());
  EXPECT_EQ(health().unread, 0U);
}

TEST_P(GroupsHealth, KnowsWhatIsUnreadAfterADeletionUnlessItIsInTheMiddle) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}});
  s().ensure_group("g", GroupStart::beginning());
  s().erase({StreamId{3, 0}});
  EXPECT_EQ(health().lag, std::nullopt);
  EXPECT_EQ(health().unread, 4U) << "nothing was read: they are all that there are";
  s().consume("g", "alice", {.count = 1, .block = 0ms});
  EXPECT_EQ(health().unread, std::nullopt);
  s().consume("g", "alice", kAllNow);
  EXPECT_EQ(health().unread, 0U);
}

TEST_P(GroupsHealth, IsEmptyWithoutTheStreamOrTheGroup) {
  EXPECT_FALSE(health().exists);
  EXPECT_EQ(health().length, 0U);
  append(s(), {{1, 0}});
  EXPECT_FALSE(health().exists);
  EXPECT_EQ(health().length, 1U);
  EXPECT_EQ(health().pending, 0U);
  EXPECT_EQ(health().unread, std::nullopt);
}

TEST_P(GroupsHealth, IsAnErrorOfAKeyOfAnotherType) {
  raw()("SET", "s", "x");
  EXPECT_THROW(health(), WrongTypeError);
  EXPECT_THROW(s().group_health(""), InvalidArgument);
}

TEST_P(GroupsHealth, GoesByItsOwnClockWhereItMayNotAskForTheServers) {
  given_three_pending();
  raw()("ACL", "SETUSER", "watch", "on", ">secret", "~*", "+@all", "-time");
  ConnectionOptions options = this->options();
  options.username = "watch";
  options.password = "secret";
  const GroupHealth health = EventStream{ConnectionPool{options}, "s"}.group_health("g");
  raw()("ACL", "DELUSER", "watch");
  EXPECT_EQ(health.pending, 3U);
  EXPECT_GT(health.oldest_pending_age.value(), 24h) << "since 1970";
}

TEST_P(GroupsHealth, OfABinaryNameIsFound) {
  const std::string name{"g\0\xff{\"", 5};
  append(s(), {{1, 0}});
  s().ensure_group(name, GroupStart::beginning());
  EXPECT_EQ(s().group_health(name).unread, 1U);
}

MILLRACE_ON_BOTH_PROTOCOLS(GroupsHealth);

}  // namespace
}  // namespace millrace::test

#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class Group : public StreamTest {};

TEST_P(Group, IsMadeOnceAndWithItsStream) {
  EXPECT_TRUE(s().ensure_group("g", GroupStart::beginning()));
  EXPECT_FALSE(s().ensure_group("g", GroupStart::beginning()));
  EXPECT_EQ(raw()("EXISTS", "s"), ":1");
}

TEST_P(Group, KeepsItsPositionWhenItIsEnsuredAgain) {
  append(s(), {{1, 0}, {2, 0}});
  s().ensure_group("g", GroupStart::after({1, 0}));
  EXPECT_FALSE(s().ensure_group("g", GroupStart::beginning()));
  EXPECT_EQ(s().groups().at(0).last_delivered_id, (StreamId{1, 0}));
}

TEST_P(Group, StartsAtTheBeginningNowOrAfterAnId) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  s().ensure_group("all", GroupStart::beginning());
  s().ensure_group("later", GroupStart::after({2, 0}));
  s().ensure_group("new", GroupStart::now());
  append(s(), {{4, 0}});
  EXPECT_EQ(s().consume("all", "a", kAllNow).size(), 4U);
  EXPECT_EQ(s().consume("later", "a", kAllNow).ids(), (Ids{{3, 0}, {4, 0}}));
  EXPECT_EQ(s().consume("new", "a", kAllNow).ids(), (Ids{{4, 0}}));
}

TEST_P(Group, IsMadeByOneOfManyAtOnce) {
  const EventStream wide{pool({.max_connections = 10}), "s"};
  std::vector<std::future<bool>> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(std::async(std::launch::async,
                               [wide] { return wide.ensure_group("g", GroupStart::beginning()); }));
  }
  int created = 0;
  for (auto& call : calls) created += call.get() ? 1 : 0;
  EXPECT_EQ(created, 1);
}

TEST_P(Group, ThatIsDeletedForgetsItsPendingEntries) {
  given_three_pending();
  EXPECT_TRUE(s().delete_group("g"));
  EXPECT_FALSE(s().delete_group("g"));
  EXPECT_THROW(s().consume("g", "alice", kAllNow), NoGroupError);
  s().ensure_group("g", GroupStart::now());
  EXPECT_EQ(s().pending("g").count, 0U);
  EXPECT_EQ(s().length(), 3U);
}

TEST_P(Group, ThatIsDeletedEndsItsReaders) {
  s().ensure_group("g", GroupStart::beginning());
  auto read = consume_in_background(s(), "alice");
  ASSERT_TRUE(blocked(1));
  s().delete_group("g");
  EXPECT_THROW(read.get(), NoGroupError);
}

TEST_P(Group, HasAPositionThatMovesBothWays) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  s().ensure_group("g", GroupStart::beginning());
  s().set_group_position("g", GroupStart::after({2, 0}));
  EXPECT_EQ(s().consume("g", "alice", kAllNow).ids(), (Ids{{3, 0}}));
  s().set_group_position("g", GroupStart::beginning());
  EXPECT_EQ(s().consume("g", "alice", kAllNow).size(), 3U);
  s().set_group_position("g", GroupStart::beginning());
  s().set_group_position("g", GroupStart::now());
  EXPECT_TRUE(s().consume("g", "alice", kAllNow).empty());
}

TEST_P(Group, ThatIsMissingIsAnErrorToThoseWhoNeedIt) {
  const auto expect_no_group = [&] {
    EXPECT_THROW(s().set_group_position("g", GroupStart::now()), NoGroupError);
    EXPECT_THROW(s().create_consumer("g", "alice"), NoGroupError);
    EXPECT_THROW(s().consume("g", "alice", kAllNow), NoGroupError);
    EXPECT_THROW(s().consume_own_pending("g", "alice"), NoGroupError);
    EXPECT_THROW(s().autoclaim_page("g", "alice"), NoGroupError);
    EXPECT_THROW(s().autoclaim("g", "alice"), NoGroupError);
    EXPECT_THROW(s().claim("g", "alice", 0ms, {StreamId{1, 0}}), NoGroupError);
    EXPECT_THROW(s().claim_ids("g", "alice", 0ms, {StreamId{1, 0}}), NoGroupError);
    EXPECT_THROW(s().handover_pending("g", "alice", "bob"), NoGroupError);
    EXPECT_THROW(s().remove_consumer("g", "alice"), NoGroupError);
  };
  expect_no_group();  // nor is there a stream
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
  append(s(), {{1, 0}});
  expect_no_group();
  const auto error = thrown<NoGroupError>([&] { s().consume("g", "alice", kAllNow); });
  EXPECT_EQ(error.prefix(), "NOGROUP");
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
}

TEST_P(Group, ThatIsMissingIsNothingToThoseWhoAsk) {
  const auto expect_nothing = [&] {
    EXPECT_FALSE(s().delete_group("g"));
    EXPECT_EQ(s().ack("g", {StreamId{1, 0}}), 0U);
    EXPECT_TRUE(s().groups().empty());
    EXPECT_TRUE(s().consumers("g").empty());
    EXPECT_EQ(s().pending("g").count, 0U);
    EXPECT_TRUE(s().pending_entries("g").empty());
  };
  expect_nothing();
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
  append(s(), {{1, 0}});
  expect_nothing();
}

TEST_P(Group, HasTheConsumersThatWereMade) {
  s().ensure_group("g", GroupStart::beginning());
  EXPECT_TRUE(s().create_consumer("g", "alice"));
  EXPECT_FALSE(s().create_consumer("g", "alice"));
  const std::vector<ConsumerInfo> consumers = s().consumers("g");
  ASSERT_EQ(consumers.size(), 1U);
  EXPECT_EQ(consumers[0].name, "alice");
}

MILLRACE_ON_BOTH_PROTOCOLS(Group);

}  // namespace
}  // namespace millrace::test

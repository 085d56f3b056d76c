#include "script_fixture.hpp"

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kWithoutAlice = R"(*6["token:bob" "his" "at:bob" "1" "left:alice" "mine"])";

class LeaveScript : public ScriptTest {
 protected:
  void leave() { scripts::leave(eval(), config()); }
  std::vector<std::string> consumers() {
    std::vector<std::string> names;
    for (const ConsumerInfo& consumer : s().consumers("g")) names.push_back(consumer.name);
    return names;
  }
  void expect_only_bob() {
    EXPECT_EQ(raw()("HMGET", kRecord, "token:bob", "left:alice"), R"(*2["his" "mine"])");
    EXPECT_GE(recorded("at:bob"), ago(1min));
    EXPECT_GE(recorded("left_at:alice"), ago(1min));
    EXPECT_EQ(raw()("HLEN", kRecord), ":4");
  }
  /// As while alice and bob work.
  void given_names() {
    raw()("HSET", kRecord, "token:alice", "mine", "at:alice", ago(1s), "token:bob", "his", "at:bob",
          ago(1s));
  }
};

TEST_F(LeaveScript, GivesTheNameFreeAndRemovesAConsumerThatOwnsNothing) {
  given_pending(2);
  given({1, 0}, "bob", 1, 0ms);
  s().ack("g", {{2, 0}});
  given_names();
  leave();
  EXPECT_THAT(consumers(), ElementsAre("bob"));
  expect_only_bob();
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 0m"));
}

TEST_F(LeaveScript, KeepsAConsumerThatOwnsPendingEntries) {
  given_pending(2);
  given_names();
  leave();
  EXPECT_THAT(consumers(), ElementsAre("alice"));
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m", "2-0 alice 1 idle 0m"));
  expect_only_bob();
}

TEST_F(LeaveScript, HasNothingChangedByWhatComesLateFromAWorkerThatHasLeft) {
  given_pending(1);
  given({1, 0}, "alice", 2, 2h);
  given_names();
  leave();
  const std::string before = everything();
  const auto is_refused = [&](auto&& call) {
    return thrown<ServerError>(call).prefix() == "SUPERSEDED" && everything() == before;
  };
  const scripts::Hold start{{1, 0}, 2, 3};
  const detail::Pending entry{{1, 0}, 2};
  EXPECT_TRUE(is_refused([&] { scripts::hold(eval(), config(), {&start, 1}); }));
  EXPECT_TRUE(is_refused([&] { scripts::renew(eval(), config(), {}); }));
  EXPECT_TRUE(is_refused([&] { scripts::take(eval(), config(), {}, 10); }));
  EXPECT_TRUE(is_refused([&] { scripts::retake(eval(), config(), {&entry, 1}); }));
  EXPECT_TRUE(is_refused([&] { leave(); }));
  EXPECT_TRUE(is_refused([&] { scripts::open(eval(), config(), std::nullopt); }));

  config().token = "another";
  EXPECT_TRUE(scripts::open(eval(), config(), std::nullopt).name_was_free);
  EXPECT_EQ(scripts::hold(eval(), config(), {&start, 1}).front(), scripts::Holding::kOurs);
}

TEST_F(LeaveScript, RemembersForAnHourWhoHasLeftOrDied) {
  given_pending(1);
  raw()("HSET", kRecord, "min_idle", 1000, "at:dave", ago(61min), "token:dave", "his", "at:erin",
        ago(59min));
  raw()("HSET", kRecord, "left:bob", "his", "left_at:bob", ago(61min), "left:carol", "hers",
        "left_at:carol", ago(59min));
  leave();
  EXPECT_EQ(raw()("HMGET", kRecord, "left:bob", "left_at:bob", "left:carol", "left:alice"),
            R"(*4[$-1 $-1 "hers" "mine"])");
  EXPECT_EQ(raw()("HMGET", kRecord, "at:dave", "token:dave"), "*2[$-1 $-1]");
  EXPECT_EQ(raw()("HEXISTS", kRecord, "at:erin"), ":1");

  raw()("HSET", kRecord, "min_idle", 3'600'000, "at:dave", ago(119min));
  config().consumer = "frank";
  leave();
  EXPECT_EQ(raw()("HEXISTS", kRecord, "at:dave"), ":1") << "he may renew as seldom";
}

TEST_F(LeaveScript, LeavesNameAndConsumerToANewerWorker) {
  given_pending(1);
  s().ack("g", {{1, 0}});
  given_names();
  expect_needs_the_token([&] { leave(); });
  EXPECT_THAT(consumers(), IsEmpty()) << "with its own token it went";
}

}  // namespace
}  // namespace millrace::test

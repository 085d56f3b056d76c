#include "script_fixture.hpp"

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeaveScript : public ScriptTest {
 protected:
  void leave() { scripts::leave(eval(), config()); }
  std::vector<std::string> consumers() {
    std::vector<std::string> names;
    for (const ConsumerInfo& consumer : s().consumers("g")) names.push_back(consumer.name);
    return names;
  }
  /// As while alice and bob work.
  void given_names() {
    raw()("HSET", kRecord, "token:alice", "mine", "at:alice", 1, "token:bob", "his", "at:bob", 1);
  }
};

TEST_F(LeaveScript, GivesTheNameFreeAndRemovesAConsumerThatOwnsNothing) {
  given_pending(2);
  given({1, 0}, "bob", 1, 0ms);
  s().ack("g", {{2, 0}});
  given_names();
  leave();
  EXPECT_THAT(consumers(), ElementsAre("bob"));
  EXPECT_EQ(raw()("HGETALL", kRecord), R"(*4["token:bob" "his" "at:bob" "1"])");
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 0m"));
}

TEST_F(LeaveScript, KeepsAConsumerThatOwnsPendingEntries) {
  given_pending(2);
  given_names();
  leave();
  EXPECT_THAT(consumers(), ElementsAre("alice"));
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m", "2-0 alice 1 idle 0m"));
  EXPECT_EQ(raw()("HGETALL", kRecord), R"(*4["token:bob" "his" "at:bob" "1"])");
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

#include "script_fixture.hpp"

namespace millrace::test {
namespace {

using scripts::Holding;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HoldScript : public ScriptTest {
 protected:
  std::vector<scripts::Holding> hold(const std::vector<scripts::Hold>& holds) {
    return scripts::hold(eval(), config(), holds);
  }
  scripts::Renewal renew(const std::vector<scripts::Hold>& holds = {}) {
    return scripts::renew(eval(), config(), holds);
  }
};

TEST_F(HoldScript, SetsCountAndIdleTimeOfWhatIsOurs) {
  given_pending(2);
  EXPECT_THAT(hold({{{1, 0}, 1, 2, 10min}, {{2, 0}, 1, 0, 0ms}}),
              ElementsAre(Holding::kOurs, Holding::kOurs));
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 2 idle 10m", "2-0 alice 0 idle 0m"));
}

TEST_F(HoldScript, StealsNothingFromAPeer) {
  given_pending(2);
  given({1, 0}, "bob", 1, 2h);
  EXPECT_THAT(hold({{{1, 0}, 1, 1}, {{2, 0}, 1, 1}}),
              ElementsAre(Holding::kNotOurs, Holding::kOurs));
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 120m", "2-0 alice 1 idle 0m"));
}

TEST_F(HoldScript, ChangesNothingThatHasAnotherCount) {
  given_pending(2);
  given({1, 0}, "alice", 2, 2h);
  given({2, 0}, "alice", 2, 2h);
  EXPECT_THAT(hold({{{1, 0}, 1, 1}, {{2, 0}, 3, 3}}),
              ElementsAre(Holding::kNotOurs, Holding::kNotOurs));
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 2 idle 120m", "2-0 alice 2 idle 120m"));
}

TEST_F(HoldScript, LeavesWhatAReadHasBroughtAgainToWhoTakesItsReply) {
  given_pending(3);
  given({1, 0}, "alice", 3, 2h);
  given({2, 0}, "alice", 3, 2h);
  given({3, 0}, "bob", 3, 2h);
  raw()("XGROUP", "SETID", "s", "g", "0");
  s().consume("g", "alice", {.count = 2, .block = 0ms});
  const auto before = pending();
  EXPECT_THAT(before,
              ElementsAre("1-0 alice 1 idle 0m", "2-0 alice 1 idle 0m", "3-0 bob 3 idle 120m"));
  EXPECT_THAT(hold({{{1, 0}, 3, 4}, {{2, 0}, 2, 2, 10min}, {{3, 0}, 3, 3}}),
              ElementsAre(Holding::kCountedAnew, Holding::kCountedAnew, Holding::kNotOurs));
  EXPECT_EQ(pending(), before);
}

TEST_F(HoldScript, HasALateCopyChangeNothing) {
  given_pending(1);
  given({1, 0}, "alice", 2, 2h);
  const scripts::Hold start{{1, 0}, 2, 3};
  EXPECT_THAT(hold({start}), ElementsAre(Holding::kOurs));
  given({1, 0}, "alice", 3, 2h);
  EXPECT_THAT(hold({start}), ElementsAre(Holding::kNotOurs));
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 3 idle 120m"));
}

TEST_F(HoldScript, TellsWhatWasAcknowledgedFromWhatWasTrimmed) {
  given_pending(2);
  s().ack("g", {{1, 0}, {2, 0}});
  raw()("XDEL", "s", "2-0");
  EXPECT_THAT(hold({{{1, 0}, 1, 1}, {{2, 0}, 1, 1}}),
              ElementsAre(Holding::kNotOurs, Holding::kGone));
  EXPECT_THAT(pending(), IsEmpty());
}

TEST_F(HoldScript, LeavesATrimmedEntryPending) {
  given_pending(1);
  given({1, 0}, "alice", 1, 2h);
  raw()("XDEL", "s", "1-0");
  EXPECT_THAT(hold({{{1, 0}, 1, 1}}), ElementsAre(Holding::kTrimmed));
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 120m"));
}

TEST_F(HoldScript, TakesATrimmedEntryOfAPeerForThePeers) {
  given_pending(1);
  given({1, 0}, "bob", 1, 2h);
  raw()("XDEL", "s", "1-0");
  EXPECT_THAT(hold({{{1, 0}, 1, 1}}), ElementsAre(Holding::kNotOurs));
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 120m"));
}

TEST_F(HoldScript, NeedsTheToken) {
  given_pending(1);
  given({1, 0}, "alice", 1, 2h);
  expect_needs_the_token([&] { hold({{{1, 0}, 1, 2}}); });
}

TEST_F(HoldScript, GoesOnWhereTheRecordWasLost) {
  given_pending(1);
  EXPECT_THAT(hold({{{1, 0}, 1, 2}}), ElementsAre(Holding::kOurs)) << "nobody else has the name";
}

TEST_F(HoldScript, NeedsNoTokenForANameThatNobodyElseCanHave) {
  given_pending(1);
  given_newer();
  config().token.clear();
  EXPECT_THAT(hold({{{1, 0}, 1, 2}}), ElementsAre(Holding::kOurs));
}

TEST_F(HoldScript, RenewsNoRecordWhereItIsNotAskedTo) {
  given_pending(1);
  hold({{{1, 0}, 1, 1}});
  EXPECT_EQ(raw()("EXISTS", kRecord), ":0");
}

TEST_F(HoldScript, RenewsThePlaceInTheRecord) {
  given_pending(3);
  given({2, 0}, "bob", 1, 0ms);
  raw()("HSET", kRecord, "token:alice", "mine", "at:alice", 1, "renewed", 1, "min_idle", 1);
  const auto renewal = renew({{{1, 0}, 1, 1}, {{2, 0}, 1, 1}});
  EXPECT_THAT(renewal.found, ElementsAre(Holding::kOurs, Holding::kNotOurs));
  EXPECT_EQ(renewal.pending, 2U) << "bob's is not counted";
  EXPECT_EQ(renewal.entries_added, 3U);
  EXPECT_EQ(recorded("min_idle"), "3600000");
  EXPECT_GE(recorded("renewed"), ago(1min));
  EXPECT_GE(recorded("at:alice"), ago(1min));
  EXPECT_EQ(recorded("token:alice"), "mine");
}

TEST_F(HoldScript, TakesNoMarkOfAGroupThatAStrangerMade) {
  given_pending(2);
  s().ack("g", {{1, 0}, {2, 0}});
  EXPECT_EQ(renew().mark, (StreamId{2, 0}));
  append(s(), {{3, 0}});
  raw()("XGROUP", "DESTROY", "s", "g");
  raw()("XGROUP", "CREATE", "s", "g", "$");
  EXPECT_EQ(renew().mark, std::nullopt) << "3-0 was passed over";
  EXPECT_EQ(renew().mark, std::nullopt);
  EXPECT_EQ(recorded("mark"), "2-0");
  EXPECT_EQ(raw()("XINFO", "CONSUMERS", "s", "g").elements.size(), 0U);
}

TEST_F(HoldScript, RenewsNothingForAnOlderWorker) {
  given_pending(1);
  expect_needs_the_token([&] { renew({{{1, 0}, 1, 1}}); });
}

TEST_F(HoldScript, KeepsTheMarkOfTheWholeGroup) {
  given_pending(3);
  given({1, 0}, "bob", 1, 0ms);
  EXPECT_EQ(renew().mark, (StreamId{1, 0}.prev())) << "bob has still to do it";
  EXPECT_EQ(recorded("mark"), "(1-0");
  s().ack("g", {{1, 0}, {2, 0}});
  EXPECT_EQ(renew().mark, (StreamId{3, 0}.prev()));
  s().ack("g", {{3, 0}});
  append(s(), {{4, 0}});
  EXPECT_EQ(renew().mark, (StreamId{3, 0})) << "the group has not read further";
  EXPECT_EQ(recorded("mark"), "3-0");
}

}  // namespace
}  // namespace millrace::test

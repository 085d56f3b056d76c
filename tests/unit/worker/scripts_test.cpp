#include "worker/scripts.hpp"

#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <regex>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class ScriptsTest : public ::testing::Test {
 protected:
  /// Answers with `replies`, one after another.
  void answers(std::deque<std::string> replies) { replies_ = std::move(replies); }

  Parts parts_;
  WorkerConfig& config_ = parts_.config;
  std::deque<std::string> replies_;
  ScriptedEval eval_{[this](const std::string&, const Words&) {
    const std::string reply = replies_.front();
    replies_.pop_front();
    return reply;
  }};
};

constexpr const char* kPage =
    "*5\r\n$3\r\n9-0\r\n"
    "*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    "*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nw\r\n"
    "*2\r\n$3\r\n2-0\r\n$3\r\n4-0\r\n"
    "*2\r\n:5\r\n:0\r\n"
    "*1\r\n*3\r\n$3\r\n4-0\r\n$3\r\nbob\r\n:7\r\n";
constexpr const char* kEmptyPage = "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*0\r\n";

TEST_F(ScriptsTest, HaveNoShebangAndOneCommonBeginning) {
  for (const Script* script :
       {&kBuryScript, &kHoldScript, &kLeaveScript, &kOpenScript, &kRetakeScript, &kTakeScript}) {
    EXPECT_FALSE(script->source.starts_with("#!")) << "then a server without memory refuses it";
    EXPECT_TRUE(script->source.starts_with("-- Stands in front of each script"));
    EXPECT_EQ(script->sha1.size(), 40U);
  }
}

TEST_F(ScriptsTest, TakeAsksForAPageAndGivesEntriesWithTheirCounts) {
  answers({kPage});
  const auto taken = scripts::take(eval_, config_, {4, 2}, 16);
  EXPECT_EQ(eval_.scripts, Words{"take"});
  EXPECT_EQ(eval_.keys, (std::vector<Words>{{"s", "{s}:millrace:g", "{s}:dlq"}}));
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "30000", "4-2", "16", ""}}));
  EXPECT_EQ(taken.entries.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(taken.entries[1].at("f"), "w");
  EXPECT_EQ(taken.deliveries, (std::vector<std::uint64_t>{5, 0}));
  EXPECT_EQ(taken.deleted_ids, (Ids{{2, 0}, {4, 0}}));
  ASSERT_EQ(taken.trimmed.size(), 1U);
  EXPECT_EQ(taken.trimmed[0].id, (StreamId{4, 0}));
  EXPECT_EQ(taken.next_cursor, (StreamId{9, 0}));
}

TEST_F(ScriptsTest, SayTheLimitOfTheDeadLettersAndWhereThereAreNone) {
  answers({kEmptyPage, kEmptyPage, kEmptyPage});
  config_.letters.max_length = 100;
  scripts::take(eval_, config_, {}, 16);
  config_.letters.sink = [](const DeadLetter&) {};
  scripts::take(eval_, config_, {}, 16);
  config_.letters = {.enabled = false, .stream = "x"};
  scripts::take(eval_, config_, {}, 16);
  EXPECT_EQ(eval_.args[0].back(), "100");
  EXPECT_EQ(eval_.args[1].back(), "sink");
  EXPECT_EQ(eval_.args[2].back(), "-");
  EXPECT_EQ(eval_.keys[0].size(), 3U);
  EXPECT_EQ(eval_.keys[1].size(), 2U) << "nobody needs the right to a key that is not used";
  EXPECT_EQ(eval_.keys[2].size(), 2U);
}

TEST_F(ScriptsTest, RetakeNamesEachEntryWithItsCount) {
  answers({kPage});
  const std::vector<Pending> pending{{{1, 0}, 5}, {{3, 0}, 0}};
  const auto taken = scripts::retake(eval_, config_, pending);
  EXPECT_EQ(eval_.scripts, Words{"retake"});
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "5", "3-0", "0"}}));
  EXPECT_EQ(taken.entries.ids(), (Ids{{1, 0}, {3, 0}}));
  ASSERT_EQ(taken.trimmed.size(), 1U);
  EXPECT_EQ(taken.trimmed[0].id, (StreamId{4, 0}));
}

TEST_F(ScriptsTest, DeclareTheKeysThatTheyUseAndNoOthers) {
  answers({kEmptyPage, "*1\r\n*0\r\n", "*4\r\n*0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n",
           "*5\r\n:0\r\n$1\r\nx\r\n$3\r\n0-0\r\n:1\r\n$0\r\n\r\n", ":0\r\n", kEmptyPage, ":1\r\n",
           ":1\r\n"});
  const Pending pending{{1, 0}, 1};
  scripts::retake(eval_, config_, {&pending, 1});
  const scripts::Hold hold{};
  EXPECT_THROW(scripts::hold(eval_, config_, {&hold, 1}), ProtocolError);
  scripts::renew(eval_, config_, {});
  scripts::open(eval_, config_, std::nullopt);
  scripts::leave(eval_, config_);
  for (const Words& keys : eval_.keys) EXPECT_EQ(keys, (Words{"s", "{s}:millrace:g"}));
  EXPECT_EQ(eval_.keys.size(), 5U);

  scripts::take(eval_, config_, {}, 16);
  const Settlement settlement;
  scripts::bury(eval_, config_, {settlement});
  EXPECT_EQ(eval_.keys[5], (Words{"s", "{s}:millrace:g", "{s}:dlq"}));
  EXPECT_EQ(eval_.keys[6], (Words{"s", "{s}:millrace:g", "{s}:dlq"}));
  scripts::bury(eval_, config_, {settlement, scripts::Burial::Payload::kWritten});
  EXPECT_EQ(eval_.keys[7], (Words{"s", "{s}:millrace:g"}));
}

TEST_F(ScriptsTest, TakeTellsWhatIsDeletedAndPendingStill) {
  answers({"*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*1\r\n*3\r\n$3\r\n1-0\r\n$3\r\nbob\r\n:7\r\n"});
  const auto taken = scripts::take(eval_, config_, {}, 16);
  ASSERT_EQ(taken.trimmed.size(), 1U);
  EXPECT_EQ(taken.trimmed[0].id, (StreamId{1, 0}));
  EXPECT_EQ(taken.trimmed[0].owner, "bob");
  EXPECT_EQ(taken.trimmed[0].deliveries, 7U);
}

TEST_F(ScriptsTest, AnEmptyPageIsNoSurprise) {
  answers({kEmptyPage});
  const auto taken = scripts::take(eval_, config_, {}, 16);
  EXPECT_TRUE(taken.entries.empty());
  EXPECT_EQ(taken.next_cursor, StreamId{});
}

TEST_F(ScriptsTest, OtherCountsThanEntriesAreRefused) {
  for (const std::string reply : {"*5\r\n$3\r\n0-0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$"
                                  "1\r\nv\r\n*0\r\n*0\r\n*0\r\n",
                                  "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*1\r\n:1\r\n*0\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::take(eval_, config_, {}, 16), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, RepliesOfAnotherShapeAreRefused) {
  for (const std::string reply :
       {"+OK\r\n", "$-1\r\n", ":1\r\n", "*0\r\n", "*5\r\n$1\r\nx\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
        "*5\r\n$3\r\n0-0\r\n:1\r\n*0\r\n*0\r\n*0\r\n",
        "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*1\r\n:3\r\n",
        "*5\r\n$3\r\n0-0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*0\r\n*1\r\n:-"
        "1\r\n*0\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::take(eval_, config_, {}, 16), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, HoldNamesEachEntryWithTheCountItHasAndIsToHaveAndItsIdleTime) {
  answers({"*1\r\n*4\r\n:1\r\n:0\r\n:2\r\n:3\r\n"});
  const std::vector<scripts::Hold> holds{
      {{1, 0}, 1, 2}, {{2, 0}, 7, 7, 250ms}, {{3, 0}, 1, 0}, {{4, 0}, 2, 2}};
  using enum scripts::Holding;
  EXPECT_EQ(scripts::hold(eval_, config_, holds),
            (std::vector<scripts::Holding>{kOurs, kNotOurs, kTrimmed, kCountedAnew}));
  EXPECT_EQ(eval_.scripts, Words{"hold"});
  EXPECT_EQ(eval_.args,
            (std::vector<Words>{{"g", "alice", "me",  "",  "1-0", "1", "2",   "0", "2-0", "7",
                                 "7", "250",   "3-0", "1", "0",   "0", "4-0", "2", "2",   "0"}}));
}

TEST_F(ScriptsTest, HoldAsksForAFewAtATime) {
  std::vector<scripts::Hold> holds;
  for (std::uint64_t i = 1; i <= scripts::kMostIds + 2; ++i) holds.push_back({{i, 0}, 1, 0});
  std::string first = "*1\r\n*64\r\n:0\r\n";
  for (std::size_t i = 1; i < scripts::kMostIds; ++i) first += ":1\r\n";
  answers({first, "*1\r\n*2\r\n:0\r\n:1\r\n"});
  const auto found = scripts::hold(eval_, config_, holds);
  ASSERT_EQ(eval_.args.size(), 2U);
  EXPECT_EQ(eval_.args[0].size(), 4 + 4 * scripts::kMostIds);
  EXPECT_EQ(eval_.args[1].size(), 4U + 4 * 2);
  ASSERT_EQ(found.size(), holds.size());
  EXPECT_EQ(found.front(), scripts::Holding::kNotOurs);
  EXPECT_EQ(found[scripts::kMostIds], scripts::Holding::kNotOurs);
  EXPECT_EQ(found.back(), scripts::Holding::kOurs);
}

TEST_F(ScriptsTest, HoldOfNothingAsksNobody) {
  EXPECT_TRUE(scripts::hold(eval_, config_, {}).empty());
  EXPECT_TRUE(eval_.args.empty());
}

TEST_F(ScriptsTest, HoldRefusesAnAnswerForOtherEntries) {
  const std::vector<scripts::Hold> holds{{{1, 0}, 1, 2}};
  for (const std::string reply :
       {"*1\r\n*0\r\n", "*1\r\n*2\r\n:1\r\n:1\r\n", "*0\r\n", "$-1\r\n", "+OK\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::hold(eval_, config_, holds), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, RenewSaysMinIdleAndLearnsWhatIsPendingAndWhereTheGroupIs) {
  answers({"*3\r\n*1\r\n:1\r\n:12\r\n$3\r\n8-3\r\n"});
  const std::vector<scripts::Hold> holds{{{1, 0}, 1, 1}};
  const auto renewal = scripts::renew(eval_, config_, holds);
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "30000", "1-0", "1", "1", "0"}}));
  EXPECT_EQ(renewal.found, (std::vector<scripts::Holding>{scripts::Holding::kOurs}));
  EXPECT_EQ(renewal.pending, 12U);
  EXPECT_EQ(renewal.mark, (StreamId{8, 3}));
}

TEST_F(ScriptsTest, RenewTakesAMarkForJustBeforeThePendingEntryThatItNames) {
  answers({"*3\r\n*0\r\n:0\r\n$4\r\n(8-3\r\n", "*3\r\n*0\r\n:0\r\n$4\r\n(8-0\r\n",
           "*3\r\n*0\r\n:0\r\n$4\r\n(0-0\r\n", "*3\r\n*0\r\n:0\r\n$0\r\n\r\n",
           "*3\r\n*0\r\n:0\r\n$1\r\nx\r\n"});
  const auto mark = [&] { return scripts::renew(eval_, config_, {}).mark; };
  EXPECT_EQ(mark(), (StreamId{8, 2}));
  EXPECT_EQ(mark(), (StreamId{8, 0}.prev()));
  EXPECT_EQ(mark(), StreamId{});
  EXPECT_EQ(mark(), std::nullopt) << "it could not say";
  EXPECT_EQ(mark(), std::nullopt);
}

TEST_F(ScriptsTest, RenewRefusesHalfAnAnswer) {
  for (const std::string reply : {"*1\r\n*0\r\n", "*3\r\n*0\r\n:-1\r\n$0\r\n\r\n", "*0\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::renew(eval_, config_, {}), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, OpenSaysWhereTheGroupStartsAndHowLongANameIsKept) {
  answers({"*4\r\n:1\r\n$2\r\nm1\r\n$3\r\n0-0\r\n:1\r\n"});
  const auto opened = scripts::open(eval_, config_, std::nullopt);
  EXPECT_TRUE(opened.made);
  EXPECT_EQ(opened.making, "m1");
  EXPECT_EQ(opened.position, StreamId{});
  EXPECT_TRUE(opened.name_was_free);
  EXPECT_EQ(eval_.scripts, Words{"open"});
  ASSERT_EQ(eval_.args[0].size(), 9U);
  const std::string word = eval_.args[0][6];
  EXPECT_TRUE(std::regex_match(word, std::regex{"[0-9a-f]{16}"})) << word;
  EXPECT_EQ(eval_.args[0], (Words{"g", "alice", "me", "0-0", "30000", "15000", word, "", ""}));
}

TEST_F(ScriptsTest, OpenSaysWhatWasKnownOfAGroupThatIsMadeAgain) {
  config_.group_start = GroupStart::now();
  answers(
      {"*4\r\n:0\r\n$2\r\nm2\r\n$3\r\n7-1\r\n:0\r\n", "*4\r\n:1\r\n$1\r\nm\r\n$1\r\n$\r\n:1\r\n"});
  const auto opened = scripts::open(eval_, config_, scripts::Remaking{"m1", {5, 0}});
  EXPECT_FALSE(opened.made);
  EXPECT_EQ(opened.making, "m2");
  EXPECT_EQ(opened.position, (StreamId{7, 1}));
  EXPECT_FALSE(opened.name_was_free);
  EXPECT_EQ(eval_.args[0][3], "$");
  EXPECT_EQ(eval_.args[0][7], "m1");
  EXPECT_EQ(eval_.args[0][8], "5-0");
  EXPECT_EQ(scripts::open(eval_, config_, std::nullopt).position, StreamId{}) << "nobody knows";
}

TEST_F(ScriptsTest, OpenRefusesAnotherShape) {
  for (const std::string reply :
       {"*0\r\n", "+OK\r\n", "*4\r\n$1\r\nx\r\n$1\r\nm\r\n$1\r\n0\r\n:1\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::open(eval_, config_, std::nullopt), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, LeaveSaysWhoLeaves) {
  answers({":0\r\n"});
  scripts::leave(eval_, config_);
  EXPECT_EQ(eval_.scripts, Words{"leave"});
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me"}}));
}

TEST_F(ScriptsTest, PassOnThatAnotherWorkerHasTheName) {
  answers({"-SUPERSEDED a newer worker has taken the consumer name alice\r\n"});
  const auto error = test::thrown<ServerError>([&] { scripts::take(eval_, config_, {}, 1); });
  EXPECT_EQ(error.prefix(), "SUPERSEDED");
}

TEST_F(ScriptsTest, ListOwnReadsThePendingListAndChangesNothing) {
  ScriptedConnection connection{[](const Words&) {
    return "*2\r\n*4\r\n$3\r\n1-0\r\n$5\r\nalice\r\n:9\r\n:3\r\n"
           "*4\r\n$3\r\n2-0\r\n$5\r\nalice\r\n:9\r\n:-1\r\n";
  }};
  const CallSpec spec{.command = "XPENDING", .key = "s"};
  const auto own = scripts::list_own(connection, config_, {}, 64, spec);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[0].id, (StreamId{1, 0}));
  EXPECT_EQ(own[0].deliveries, 3U);
  EXPECT_EQ(own[1].deliveries, 0U) << "no server has less than none";
  scripts::list_own(connection, config_, {9, 0}, 64, spec);
  EXPECT_EQ(connection.sent,
            (std::vector<Words>{{"XPENDING", "s", "g", "-", "+", "64", "alice"},
                                {"XPENDING", "s", "g", "(9-0", "+", "64", "alice"}}));
}

}  // namespace
}  // namespace millrace::detail

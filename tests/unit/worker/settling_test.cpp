#include "worker/settling.hpp"

#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class SettlingTest : public ::testing::Test {
 protected:
  Settlement failed(Work work, Settlement::Kind kind) {
    return {.kind = kind,
            .work = running(parts_.ledger, std::move(work)),
            .due = parts_.clock.now() + 10s,
            .attempts = 5,
            .reason = "no"};
  }
  void park(StreamId id) {
    parts_.ledger.fail(failed(work_of(id, parts_.clock.now()), Settlement::Kind::kPark));
  }
  void bury(StreamId id) {
    parts_.ledger.fail(failed(work_of(id, parts_.clock.now()), Settlement::Kind::kBury));
  }
  void settle() {
    settling_.settle(
        {.eval = eval_,
         .pipeline = [this](const CallSpec& spec, WriteRequest write,
                            TakeReply take) { return connection_.pipeline(spec, write, take); }},
        TimePoint::max());
  }
  Ids parked() {
    Ids ids;
    for (const auto& [entry, due] : parts_.ledger.parked()) ids.push_back(entry.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  Ids waiting() {
    Ids ids;
    for (const auto& one : parts_.ledger.take_settlements(100)) ids.push_back(one.work.ticket.id);
    return ids;
  }
  /// The scripts that were run, and of which entry.
  Words ran() const {
    Words ran;
    for (std::size_t i = 0; i < eval_.scripts.size(); ++i) {
      const bool holds = eval_.scripts[i] == "hold";
      ran.push_back(eval_.scripts[i] + ' ' + eval_.args[i][holds ? 4 : 3]);
    }
    return ran;
  }

  Parts parts_;
  ScriptedEval::Answer answer_ = [](const std::string& script, const Words& args) {
    return script == "hold" ? all_ours(args) : std::string{":1\r\n"};
  };
  ScriptedEval eval_{
      [this](const std::string& script, const Words& args) { return answer_(script, args); }};
  std::string added_ = "$3\r\n9-0\r\n";  // of XADD
  ScriptedConnection connection_{[this](const Words&) { return added_; }};
  Settling settling_{parts_.shared};
};

TEST_F(SettlingTest, ParksAllInOneCallSoIdleThatAPeerFindsThemWhenTheyAreDue) {
  for (std::uint64_t i = 1; i <= 3; ++i) park({i, 0});
  settle();
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "1", "1", "20000",
                                             "2-0", "1", "1", "20000", "3-0", "1", "1", "20000"}}));
  EXPECT_EQ(parked(), (Ids{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(SettlingTest, HasARetryThatIsDueLaterThanMinIdleIdleForNoTime) {
  const TimePoint now = parts_.clock.now();
  EXPECT_EQ(idle_until(now + 10s, now, 30s), 20s);
  EXPECT_EQ(idle_until(now, now, 30s), 30s);
  EXPECT_EQ(idle_until(now - 5s, now, 30s), 30s) << "it is due already";
  EXPECT_EQ(idle_until(now + 1h, now, 30s), 0s);
}

TEST_F(SettlingTest, ParksNothingThatIsAPeers) {
  park({1, 0});
  park({2, 0});
  answer_ = [](const std::string&, const Words&) { return "*1\r\n*2\r\n:0\r\n:1\r\n"; };
  settle();
  EXPECT_EQ(parked(), (Ids{{2, 0}}));
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(SettlingTest, WaitsForTheReplyToAReadThatCountsAnEntryAnew) {
  park({1, 0});
  bury({2, 0});
  answer_ = [](const std::string& script, const Words&) {
    return script == "hold" ? "*1\r\n*1\r\n:3\r\n" : ":2\r\n";
  };
  settle();
  EXPECT_TRUE(settling_.is_early());
  EXPECT_FALSE(settling_.refusal().has_value());
  EXPECT_EQ(waiting(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_TRUE(parked().empty());
  EXPECT_EQ(parts_.counters.dead_lettered, 0U);
}

TEST_F(SettlingTest, GivesASinkNothingBeforeItsCountIsRight) {
  bool called = false;
  parts_.config.letters.sink = [&called](const DeadLetter&) { called = true; };
  bury({1, 0});
  answer_ = [](const std::string&, const Words&) { return "*1\r\n*1\r\n:3\r\n"; };
  settle();
  EXPECT_FALSE(called);
  EXPECT_EQ(waiting(), (Ids{{1, 0}}));
}

TEST_F(SettlingTest, DoesNothingAboutWhatAPeerHasDoneWithSinceItsLeaseRanOut) {
  park({1, 0});
  bury({2, 0});
  bury({3, 0});
  auto some = parts_.ledger.take_settlements(3);
  some[0].had_no_lease = some[1].had_no_lease = true;
  for (Settlement& one : some) parts_.ledger.unsettled(std::move(one));
  answer_ = [](const std::string& script, const Words&) {
    return script == "hold" ? "*1\r\n*1\r\n:4\r\n" : ":1\r\n";
  };
  settle();
  EXPECT_EQ(parts_.observer->dead_letters(), (Ids{{3, 0}})) << "its lease has lasted";
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.ledger.next_retry(parts_.clock.now()), TimePoint::max());
}

TEST_F(SettlingTest, HasATrimmedEntryRestInMemory) {
  park({1, 0});
  answer_ = [](const std::string&, const Words&) { return "*1\r\n*1\r\n:2\r\n"; };
  settle();
  EXPECT_TRUE(parked().empty());
  EXPECT_EQ(parts_.ledger.next_retry(parts_.clock.now()), parts_.clock.now() + 10s);
  EXPECT_TRUE(parts_.ledger.holds({1, 0}));
}

TEST_F(SettlingTest, HasRetriesWaitAgainWhereTheyCouldNotBeParked) {
  park({1, 0});
  bury({2, 0});
  answer_ = [](const std::string&, const Words&) -> std::string { throw IoError{"lost"}; };
  EXPECT_THROW(settle(), IoError);
  EXPECT_EQ(waiting(), (Ids{{1, 0}, {2, 0}}));
}

TEST_F(SettlingTest, DoesAllThatWaitsInPieces) {
  for (std::uint64_t i = 1; i <= 2 * scripts::kMostIds + 1; ++i) park({i, 0});
  settle();
  EXPECT_EQ(eval_.args.size(), 3U);
  EXPECT_EQ(parked().size(), 2 * scripts::kMostIds + 1);
}

TEST_F(SettlingTest, ParksBeforeItBuries) {
  bury({1, 0});
  park({2, 0});
  settle();
  EXPECT_EQ(ran(), (Words{"hold 2-0", "bury 1-0"}));
}

TEST_F(SettlingTest, BuriesAndTellsOfIt) {
  bury({1, 0});
  settle();
  EXPECT_EQ(ran(), (Words{"bury 1-0"}));
  EXPECT_EQ(eval_.args[0][11], "given");
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
  EXPECT_EQ(parts_.observer->dead_letters(), (Ids{{1, 0}}));
  EXPECT_FALSE(settling_.refusal().has_value());
}

TEST_F(SettlingTest, TellsOfNoLetterOfAnEntryThatIsAPeers) {
  bury({1, 0});
  answer_ = [](const std::string&, const Words&) { return ":0\r\n"; };
  settle();
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.dead_lettered, 0U);
  EXPECT_TRUE(parts_.observer->dead_letters().empty());
}

TEST_F(SettlingTest, HasARefusedLetterWaitAndGoesOnWithTheOthers) {
  for (std::uint64_t i = 1; i <= 3; ++i) bury({i, 0});
  answer_ = [](const std::string&, const Words& args) {
    return args[3] == "2-0" ? "$9\r\nFULL here\r\n" : ":1\r\n";
  };
  settle();
  EXPECT_EQ(parts_.observer->dead_letters(), (Ids{{1, 0}, {3, 0}}));
  ASSERT_TRUE(settling_.refusal().has_value());
  EXPECT_EQ(settling_.refusal()->prefix(), "FULL");
  EXPECT_TRUE(parts_.ledger.holds({2, 0})) << "it is not acknowledged";
  answer_ = [](const std::string&, const Words&) { return ":1\r\n"; };
  settle();
  EXPECT_EQ(parts_.counters.dead_lettered, 3U);
  EXPECT_FALSE(settling_.refusal().has_value());
}

TEST_F(SettlingTest, HasLettersWaitAgainWhereTheConnectionIsLost) {
  for (std::uint64_t i = 1; i <= 3; ++i) bury({i, 0});
  answer_ = [](const std::string&, const Words& args) -> std::string {
    if (args[3] == "2-0") throw IoError{"lost"};
    return ":1\r\n";
  };
  EXPECT_THROW(settle(), IoError);
  EXPECT_EQ(parts_.observer->dead_letters(), (Ids{{1, 0}}));
  EXPECT_EQ(waiting(), (Ids{{2, 0}, {3, 0}}));
}

TEST_F(SettlingTest, TakesThePayloadOfADeletedEntryFromNowhere) {
  parts_.ledger.add_settlement(
      {.kind = Settlement::Kind::kBury,
       .work = {.ticket = {.id = {1, 0}}, .entry = Entry{{1, 0}, {}, true}},
       .trimmed = true});
  settle();
  EXPECT_EQ(eval_.args.at(0).at(11), "stream");
  EXPECT_EQ(parts_.ledger.settlements(), 0U);
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
}

TEST_F(SettlingTest, AcknowledgesWhatHasLeftTheStreamWhereThereAreNoLetters) {
  parts_.config.letters.enabled = false;
  bury({1, 0});
  settle();
  EXPECT_EQ(eval_.args.at(0).back(), "written");
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.dead_lettered, 0U);
  EXPECT_TRUE(parts_.observer->dead_letters().empty());
}

class SettlingSinkTest : public SettlingTest {
 protected:
  SettlingSinkTest() {
    parts_.config.letters.sink = [this](const DeadLetter& letter) {
      letters_.push_back(letter);
      if (!error_.empty()) throw std::runtime_error{error_};
    };
  }
  std::vector<DeadLetter> letters_;
  std::string error_;
};

TEST_F(SettlingSinkTest, GivesALetterToTheSinkBetweenAskingAndAcknowledging) {
  bury({1, 0});
  settle();
  EXPECT_EQ(ran(), (Words{"hold 1-0", "bury 1-0"}));
  EXPECT_EQ(eval_.args[1].back(), "written");
  ASSERT_EQ(letters_.size(), 1U);
  EXPECT_EQ(letters_[0].stream, "s");
  EXPECT_EQ(letters_[0].entry_id, (StreamId{1, 0}));
  EXPECT_EQ(letters_[0].group, "g");
  EXPECT_EQ(letters_[0].consumer, "alice");
  EXPECT_EQ(letters_[0].attempts, 5U);
  EXPECT_EQ(letters_[0].reason, "no");
  EXPECT_EQ(letters_[0].fields, (OwnedFields{{"f", "v"}}));
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
}

TEST_F(SettlingSinkTest, GivesTheSinkNothingThatIsAPeers) {
  bury({1, 0});
  answer_ = [](const std::string&, const Words&) { return "*1\r\n*1\r\n:0\r\n"; };
  settle();
  EXPECT_TRUE(letters_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(SettlingSinkTest, KeepsTheEntryOfASinkThatThrows) {
  bury({1, 0});
  error_ = "the disk is full";
  settle();
  ASSERT_TRUE(settling_.refusal().has_value());
  EXPECT_STREQ(settling_.refusal()->what(), "the sink of dead letters threw: the disk is full");
  EXPECT_EQ(ran(), (Words{"hold 1-0"})) << "nothing is acknowledged";
  EXPECT_EQ(parts_.counters.dead_lettered, 0U);
  error_.clear();
  settle();
  EXPECT_EQ(letters_.size(), 2U);
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
}

TEST_F(SettlingSinkTest, AsksNobodyAboutAnEntryThatHasLeftThePendingList) {
  parts_.ledger.add_settlement(
      {.kind = Settlement::Kind::kBury,
       .work = {.ticket = {.id = {1, 0}}, .entry = Entry{{1, 0}, {}, true}},
       .trimmed = true});
  settle();
  EXPECT_EQ(ran(), (Words{"bury 1-0"}));
  EXPECT_EQ(letters_.size(), 1U);
}

class SettlingLargeTest : public SettlingTest {
 protected:
  /// An entry with more fields than a script can pass on.
  void bury_large() {
    Work work{.entry = Entry{{1, 0}, fields_}, .leased_at = parts_.clock.now()};
    parts_.ledger.fail(failed(work, Settlement::Kind::kBury));
  }
  std::vector<Field> fields_ = std::vector<Field>(scripts::kMostFields + 1, Field{"f", "v"});
};

TEST_F(SettlingLargeTest, IsWrittenWithoutAScriptAndThenAcknowledged) {
  bury_large();
  settle();
  EXPECT_EQ(ran(), (Words{"hold 1-0", "bury 1-0"}));
  EXPECT_EQ(eval_.args[1].back(), "written");
  ASSERT_EQ(connection_.sent.size(), 1U);
  const Words& words = connection_.sent[0];
  EXPECT_EQ(words.size(), 3 + 16 + 2 * fields_.size());
  EXPECT_EQ((Words{words.begin(), words.begin() + 7}),
            (Words{"XADD", "{s}:dlq", "*", "dlq_stream", "s", "dlq_id", "1-0"}));
  EXPECT_EQ((Words{words.begin() + 17, words.begin() + 21}), (Words{"dlq_reason", "no", "f", "v"}));
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
}

TEST_F(SettlingLargeTest, IsWrittenByAScriptIfItJustFits) {
  fields_.pop_back();
  bury_large();
  settle();
  EXPECT_EQ(ran(), (Words{"bury 1-0"}));
  EXPECT_TRUE(connection_.sent.empty());
}

TEST_F(SettlingLargeTest, IsNotWrittenIfItIsAPeers) {
  bury_large();
  answer_ = [](const std::string&, const Words&) { return "*1\r\n*1\r\n:0\r\n"; };
  settle();
  EXPECT_TRUE(connection_.sent.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(SettlingLargeTest, WaitsAgainWhereItIsRefused) {
  bury_large();
  added_ = "-OOM no memory\r\n";
  settle();
  ASSERT_TRUE(settling_.refusal().has_value());
  EXPECT_EQ(settling_.refusal()->code(), Error::Code::kOutOfMemory);
  EXPECT_EQ(ran(), (Words{"hold 1-0"}));
  EXPECT_EQ(waiting(), (Ids{{1, 0}}));
}

TEST_F(SettlingTest, HasALetterWaitWhereTheServerRefusesTheScriptAsAWhole) {
  for (std::uint64_t i = 1; i <= 2; ++i) bury({i, 0});
  answer_ = [](const std::string&, const Words&) {
    return "-NOPERM No permissions to access a key\r\n";
  };
  settle();
  EXPECT_EQ(eval_.scripts.size(), 2U) << "one keeps no other waiting";
  EXPECT_EQ(settling_.refusal().value().code(), Error::Code::kPermission);
  EXPECT_TRUE(parts_.ledger.holds({1, 0}));
  EXPECT_EQ(waiting(), (Ids{{1, 0}, {2, 0}}));
}

TEST_F(SettlingSinkTest, AcknowledgesWhatIsPendingForAPeerUnderItsName) {
  parts_.ledger.add_settlement(
      {.kind = Settlement::Kind::kBury,
       .work = {.ticket = {.id = {1, 0}}, .entry = Entry{{1, 0}, {}, true}},
       .trimmed = true,
       .owner = "bob"});
  settle();
  EXPECT_EQ(letters_.size(), 1U);
  EXPECT_EQ(eval_.args.at(0).at(10), "bob");
  EXPECT_EQ(eval_.args.at(0).at(11), "written");
}

TEST_F(SettlingLargeTest, WaitsWhereItsStreamMayNotBeLookedAt) {
  bury_large();
  parts_.config.letters.max_length = 10;
  added_ = "-NOPERM No permissions to access a key\r\n";
  settle();
  EXPECT_EQ(settling_.refusal().value().code(), Error::Code::kPermission);
  EXPECT_TRUE(parts_.ledger.holds({1, 0}));
}

}  // namespace
}  // namespace millrace::detail

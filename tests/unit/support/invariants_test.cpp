#include "support/invariants.hpp"

#include "evidence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Event = Record::Event;

/// What is wrong with it, as `kind id`.
std::vector<std::string> wrong_with(const Evidence& evidence) {
  return names_of(violations(evidence));
}

TEST(Invariants, HaveNothingToSayOfAGoodRun) {
  EXPECT_THAT(
      wrong_with(evidence_of(3, {Told{"p"}.handle(1s, 1).handle(2s, 2), Told{"q"}.handle(1s, 3)})),
      IsEmpty());
}

TEST(Invariants, NameAnEntryThatWasNeverHandled) {
  EXPECT_THAT(wrong_with(evidence_of(2, {Told{"p"}.handle(1s, 1)})), ElementsAre("lost 2-0"));
}

TEST(Invariants, NameAnEntryThatOneGroupOfTwoHasLost) {
  Evidence evidence = evidence_of(1, {Told{"p"}.handle(1s, 1)});
  evidence.groups.emplace_back("h");
  const auto found = violations(evidence);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, Violation::Kind::kLost);
  EXPECT_EQ(found[0].group, "h");
}

TEST(Invariants, NameAnEntryOfWhichEveryCallWasCutShort) {
  EXPECT_THAT(wrong_with(evidence_of(1, {Told{"p"}.start(1s, 1).kill(2s)})),
              ElementsAre("lost 1-0"));
}

TEST(Invariants, NameAnEntryThatFailedAndIsGone) {
  EXPECT_THAT(wrong_with(evidence_of(1, {Told{"p"}.start(1s, 1).fail(2s, 1)})),
              ElementsAre("lost 1-0"));
}

TEST(Invariants, NameAnAppendThatTheServerForgot) {
  Evidence evidence = evidence_of(1, {Told{"p"}.handle(1s, 1)});
  evidence.appended.push_back({2, 0});
  EXPECT_THAT(wrong_with(evidence), ElementsAre("append lost 2-0"));
}

TEST(Invariants, NameAnAcknowledgementBeforeSuccess) {
  EXPECT_THAT(wrong_with(evidence_of(1, {Told{"p"}.start(1s, 1).ack(2s, 1).succeed(3s, 1)})),
              ElementsAre("acknowledged before success 1-0"));
}

TEST(Invariants, NameAnAcknowledgementOfWhatAnotherProcessHandled) {
  EXPECT_THAT(wrong_with(evidence_of(1, {Told{"p"}.handle(1s, 1), Told{"q"}.ack(2s, 1)})),
              ElementsAre("acknowledged before success 1-0"));
}

TEST(Invariants, NameWhatIsPendingInTheEnd) {
  Evidence evidence = evidence_of(1, {Told{"p"}.handle(1s, 1)});
  evidence.pending = {{"g", {1, 0}}};
  EXPECT_THAT(wrong_with(evidence), ElementsAre("still pending 1-0"));
}

TEST(Invariants, NameStaleConsumers) {
  Evidence evidence = evidence_of(1, {Told{"p"}.handle(1s, 1)});
  evidence.stale_consumers = {{"g", "gone"}};
  const auto found = violations(evidence);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, Violation::Kind::kStaleConsumer);
  EXPECT_EQ(found[0].what, "gone");
}

// ---------------------------------------------------------------------------------- dead letters

TEST(DeadLetterInvariants, WantOneLetterForEachPoisonEntry) {
  Evidence evidence = evidence_of(1, {Told{"p"}.start(1s, 1).event(Event::kRefused, 2s, 1)}, 1);
  EXPECT_THAT(wrong_with(evidence), ElementsAre("poison without a dead letter 1-0", "lost 1-0"));
  evidence.dead_letters = {{"g", {1, 0}}};
  EXPECT_THAT(wrong_with(evidence), IsEmpty());
  evidence.dead_letters = {{"g", {1, 0}}, {"g", {1, 0}}};
  EXPECT_THAT(wrong_with(evidence), ElementsAre("dead-lettered twice 1-0"));
}

TEST(DeadLetterInvariants, WantOneInEachGroup) {
  Evidence evidence = evidence_of(1, {}, 1);
  evidence.groups.emplace_back("h");
  evidence.dead_letters = {{"g", {1, 0}}, {"h", {1, 0}}};
  EXPECT_THAT(wrong_with(evidence), IsEmpty());
  evidence.dead_letters = {{"g", {1, 0}}, {"g", {1, 0}}};
  EXPECT_THAT(wrong_with(evidence), ElementsAre("dead-lettered twice 1-0",
                                                "poison without a dead letter 1-0", "lost 1-0"));
}

TEST(DeadLetterInvariants, NameAHealthyEntryThatWasDeadLettered) {
  Evidence evidence = evidence_of(1, {Told{"p"}.start(1s, 1).fail(2s, 1)});
  evidence.dead_letters = {{"g", {1, 0}}};
  EXPECT_THAT(wrong_with(evidence), ElementsAre("dead-lettered although healthy 1-0"));
}

TEST(DeadLetterInvariants, NameAnAttemptBeyondTheLast) {
  EXPECT_THAT(wrong_with(evidence_of(1, {Told{"p"}.start(1s, 1, 6).succeed(2s, 1)})),
              ElementsAre("started too often 1-0"));
}

TEST(DeadLetterInvariants, NameMoreStartsThanThereMayBe) {
  Told p{"p"};
  for (std::uint64_t i = 1; i <= 5; ++i) p.start(i * 1s, 1, i).fail(i * 1s + 1ms, 1);
  EXPECT_THAT(wrong_with(evidence_of(1, {p}, 0)), ElementsAre("lost 1-0"));
  p.start(6s, 1, 5).fail(7s, 1);
  EXPECT_THAT(wrong_with(evidence_of(1, {p}, 0)), ElementsAre("lost 1-0", "started too often 1-0"));
}

// ----------------------------------------------------------------------------- handled twice at
// once

/// `first` begins at 10 s, and `q` handles the same from 12 s to 13 s.
std::vector<std::string> wrong_beside(const Told& first) {
  return wrong_with(evidence_of(1, {first, Told{"q"}.start(12s, 1, 2).succeed(13s, 1)}));
}

const std::string kTwice = "handled twice at once 1-0";

TEST(TwiceAtOnce, IsACallThatBeganWhileAnotherRan) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).succeed(14s, 1)), ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsACallOfWhichNobodySawTheEnd) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1)), ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsNotOneAfterTheOther) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).fail(11s, 1)), IsEmpty());
}

TEST(TwiceAtOnce, IsNotOneGroupBesideAnother) {
  Evidence evidence = evidence_of(
      1, {Told{"p"}.start(10s, 1).succeed(14s, 1), Told{"q"}.start(12s, 1).succeed(13s, 1)});
  evidence.groups.emplace_back("h");
  for (Record& record : evidence.processes[1].records) record.group = "h";
  EXPECT_THAT(wrong_with(evidence), IsEmpty());
}

TEST(TwiceAtOnce, IsExcusedIfDeliveryStopHadFired) {
  EXPECT_THAT(
      wrong_beside(Told{"p"}.start(10s, 1).event(Event::kStopFired, 11s, 1).succeed(14s, 1)),
      IsEmpty());
}

TEST(TwiceAtOnce, IsExcusedIfTheLeaseWasReportedLost) {
  EXPECT_THAT(
      wrong_beside(Told{"p"}.start(10s, 1).event(Event::kLeaseLost, 11s, 1).succeed(14s, 1)),
      IsEmpty());
}

TEST(TwiceAtOnce, IsNotExcusedIfTheFirstHeardOfItTooLate) {
  EXPECT_THAT(
      wrong_beside(Told{"p"}.start(10s, 1).event(Event::kStopFired, 13001ms, 1).succeed(14s, 1)),
      ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsNotExcusedByTheLossOfAnotherEntrysLease) {
  EXPECT_THAT(
      wrong_beside(Told{"p"}.start(10s, 1).event(Event::kLeaseLost, 11s, 2).succeed(14s, 1)),
      ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsExcusedWhileTheFirstProcessIsStopped) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).succeed(14s, 1).freeze(11s, 13s)), IsEmpty());
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).freeze(11s, std::nullopt)), IsEmpty());
}

TEST(TwiceAtOnce, IsNotExcusedByAStopThatWasOverOrCameLater) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).succeed(14s, 1).freeze(10s, 10'900ms)),
              ElementsAre(kTwice));
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).succeed(14s, 1).freeze(12'100ms, 13s)),
              ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsNotACallOfAProcessThatWasKilledBefore) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).kill(11s)), IsEmpty());
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).kill(12'001ms)), ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsNotACallThatEndedItsProcess) {
  EXPECT_THAT(wrong_beside(Told{"p"}.start(10s, 1).event(Event::kAborting, 11s, 1)), IsEmpty());
}

TEST(TwiceAtOnce, IsNeverExcusedWithinOneProcess) {
  const Told p = Told{"p"}
                     .start(10s, 1)
                     .event(Event::kStopFired, 11s, 1)
                     .start(12s, 1, 2)
                     .succeed(13s, 1)
                     .succeed(14s, 1)
                     .freeze(11s, 13s);
  EXPECT_THAT(wrong_with(evidence_of(1, {p})), ElementsAre(kTwice));
}

TEST(TwiceAtOnce, IsNamedForEachPairOfThree) {
  Evidence evidence = evidence_of(
      1, {Told{"p"}.start(10s, 1).succeed(14s, 1), Told{"q"}.start(11s, 1, 2).succeed(13s, 1),
          Told{"r"}.start(12s, 1, 3).succeed(13s, 1)});
  EXPECT_THAT(wrong_with(evidence), ElementsAre(kTwice, kTwice, kTwice));
}

// ------------------------------------------------------------------------------------------ counts

TEST(CallCounts, TellHowCallsEnded) {
  const CallCounts counts = count_calls(evidence_of(
      4, {Told{"p"}.start(1s, 1).succeed(2s, 1).start(2s, 2).fail(3s, 2),
          Told{"q"}
              .start(3s, 1, 2)
              .succeed(4s, 1)
              .start(4s, 3)
              .event(Event::kLeaseLost, 5s, 3)
              .kill(6s),
          Told{"r"}.start(5s, 3, 2).succeed(7s, 3).start(8s, 4).event(Event::kAborting, 9s, 4)}));
  EXPECT_EQ(counts.calls, 6U);
  EXPECT_EQ(counts.succeeded, 3U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.aborted, 1U);
  EXPECT_EQ(counts.cut_short, 1U);
  EXPECT_EQ(counts.reclaimed, 2U);
  EXPECT_EQ(counts.leases_lost, 1U);
  EXPECT_EQ(counts.handled_again, 1U);
  EXPECT_EQ(counts.overlapping, 1U);
}

}  // namespace
}  // namespace millrace::test

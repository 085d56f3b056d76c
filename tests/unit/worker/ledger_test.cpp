#include "worker/ledger.hpp"

#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
TEST_F(LedgerTest, HoldsAnEntryOnce) {
  Work work = entry({1, 0});
  ASSERT_TRUE(ledger_.hold(work));
  EXPECT_EQ(work.ticket.id, (StreamId{1, 0}));
  EXPECT_FALSE(ledger_.hold(work));
  EXPECT_FALSE(ledger_.reserve(work));
  EXPECT_TRUE(can_be_held({1, 1}));
  EXPECT_EQ(ledger_.size(), 2U);
  EXPECT_EQ(started(), (Ids{{1, 0}, {1, 1}})) << "each once";
}

TEST_F(LedgerTest, SkipsAnEntryInEveryStateUntilItsAcknowledgementIsAnswered) {
  const Ticket ticket = running({1, 0}).ticket;
  EXPECT_FALSE(can_be_held({1, 0})) << "running";
  ledger_.finish(ticket, clock_.now());
  EXPECT_FALSE(can_be_held({1, 0})) << "done";
  const AckBatch acks = ledger_.take_acks(10);
  EXPECT_FALSE(can_be_held({1, 0})) << "being acknowledged";
  ledger_.not_acknowledged(acks);
  EXPECT_FALSE(can_be_held({1, 0})) << "to be acknowledged again";
  ledger_.acknowledged(ledger_.take_acks(10), 10);
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(can_be_held({1, 0}));
}

TEST_F(LedgerTest, StartsAnEntryOnce) {
  const Ticket ticket = queued({1, 0});
  EXPECT_TRUE(ledger_.start(ticket, {}));
  EXPECT_FALSE(ledger_.start(ticket, {}));
  ledger_.finish(ticket, clock_.now());
  EXPECT_FALSE(ledger_.start(ticket, {}));
}

TEST_F(LedgerTest, DoesNotStartOrFinishWhatItDoesNotHold) {
  const Ticket ticket = queued({1, 0});
  ledger_.drop(ticket);
  EXPECT_FALSE(ledger_.start(ticket, {}));
  EXPECT_EQ(ledger_.finish(ticket, clock_.now()), std::nullopt);
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(ledger_.take_acks(10).ids.empty());
}

TEST_F(LedgerTest, DoesNotFinishWhatWasNotStarted) {
  EXPECT_EQ(ledger_.finish(queued({1, 0}), clock_.now()), std::nullopt);
  EXPECT_TRUE(ledger_.take_acks(10).ids.empty());
  AckBatch acks;
  ledger_.finish_into(acks, queued({2, 0}));
  EXPECT_TRUE(acks.ids.empty());
}

TEST_F(LedgerTest, GivesUpAnEntryInAnyState) {
  ledger_.drop(queued({1, 0}));
  ledger_.drop(running({2, 0}).ticket);
  const Ticket waiting = done({3, 0});
  ledger_.drop(waiting);
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(ledger_.take_acks(10).ids.empty()) << "nor is it acknowledged";
  EXPECT_EQ(ledger_.acks_due_at(), std::nullopt);
}

TEST_F(LedgerTest, KnowsWhatRunsInOrder) {
  for (const std::uint64_t i : {30U, 1U, 500U, 7U, 1000U, 4U}) running({i, 0});
  queued({2, 0});
  done({3, 0});
  EXPECT_EQ(ledger_.running(), (Ids{{1, 0}, {4, 0}, {7, 0}, {30, 0}, {500, 0}, {1000, 0}}));
}

TEST_F(LedgerTest, SaysWhenTheFirstAcknowledgementIsDue) {
  EXPECT_EQ(ledger_.acks_due_at(), std::nullopt);
  const TimePoint first = clock_.now();
  EXPECT_EQ(ledger_.finish(running({1, 0}).ticket, clock_.now()), first + Ledger::kAckDelay);
  clock_.advance(3ms);
  EXPECT_EQ(ledger_.finish(running({2, 0}).ticket, clock_.now()), std::nullopt)
      << "nothing changes";
  EXPECT_EQ(ledger_.acks_due_at(), first + Ledger::kAckDelay);
}

TEST_F(LedgerTest, HasAFullBatchDueAtOnce) {
  for (std::uint64_t i = 1; i < Ledger::kAckBatch; ++i) done({i, 0});
  EXPECT_GT(ledger_.acks_due_at(), clock_.now());
  EXPECT_EQ(ledger_.finish(running({Ledger::kAckBatch, 0}).ticket, clock_.now()), clock_.now());
  EXPECT_LE(ledger_.acks_due_at(), clock_.now());
}

TEST_F(LedgerTest, GivesAcknowledgementsInTheOrderInWhichTheyWereFinished) {
  for (const std::uint64_t i : {3U, 1U, 2U}) done({i, 0});
  EXPECT_EQ(ledger_.take_acks(2).ids, (Ids{{3, 0}, {1, 0}}));
  EXPECT_EQ(ledger_.take_acks(2).ids, (Ids{{2, 0}}));
  EXPECT_EQ(ledger_.take_acks(2).ids, Ids{});
  EXPECT_EQ(ledger_.size(), 3U) << "held until the reply comes";
}

TEST_F(LedgerTest, HasFailedAcknowledgementsAgainBeforeLaterOnesAndDueAtOnce) {
  done({1, 0});
  done({2, 0});
  const AckBatch acks = ledger_.take_acks(10);
  done({3, 0});
  EXPECT_FALSE(ledger_.acks_failing());
  ledger_.not_acknowledged(acks);
  EXPECT_TRUE(ledger_.acks_failing());
  EXPECT_LE(ledger_.acks_due_at(), clock_.now());

  const AckBatch again = ledger_.take_acks(10);
  EXPECT_EQ(again.ids, (Ids{{1, 0}, {2, 0}, {3, 0}}));
  ledger_.acknowledged(again, 10);
  EXPECT_FALSE(ledger_.acks_failing());
  EXPECT_EQ(ledger_.size(), 0U);
}

TEST_F(LedgerTest, IsNotToldThatAcknowledgementsFailByThoseThatWereNone) {
  ledger_.not_acknowledged(ledger_.take_acks(10));
  EXPECT_FALSE(ledger_.acks_failing());
}

TEST_F(LedgerTest, KnowsWhichAcknowledgementsMayFindNothing) {
  done({1, 0});
  done({2, 0});
  ledger_.not_acknowledged(ledger_.take_acks(1));
  ledger_.note_trimmed(Ids{{3, 0}});
  queued({3, 0});
  queued({4, 0});
  ledger_.note_trimmed(Ids{{4, 0}});
  const AckBatch again = ledger_.take_acks(10);
  EXPECT_EQ(again.ids, (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(ledger_.acknowledged(again, 0), 1U) << "1-0 was sent before";

  AckBatch rest;
  const Ticket trimmed = running({5, 0}).ticket;
  ledger_.note_trimmed(Ids{{5, 0}});
  ledger_.finish_into(rest, trimmed);
  ledger_.finish_into(rest, running({6, 0}).ticket);
  ledger_.note_trimmed(Ids{{6, 0}});
  EXPECT_EQ(ledger_.acknowledged(rest, 0), 0U)
      << "5-0 was trimmed while it was held, 6-0 when its acknowledgement was on its way";
}

TEST_F(LedgerTest, KeepsAStartThatIsCountedButWasPutOff) {
  Work work = entry({1, 0});
  work.reclaimed = true;
  work.deliveries = 4;
  const Work first = detail::running(ledger_, work);
  ledger_.starting(first.ticket, 5);
  ledger_.await_recovery(first.ticket);  // the reply was lost
  work.deliveries = 5;
  work.waits_since = clock_.now();
  for (int times = 0; times < 2; ++times) {
    const Work again = detail::running(ledger_, work);
    EXPECT_TRUE(again.start_counted);
    parked(again, Milliseconds{0});
  }
}

TEST_F(LedgerTest, AddsToTheAcknowledgementsOfWhoeverSendsThemItself) {
  AckBatch acks;
  ledger_.finish_into(acks, running({1, 0}).ticket);
  ledger_.finish_into(acks, running({2, 0}).ticket);
  EXPECT_EQ(acks.ids, (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(ledger_.acks_due_at(), std::nullopt) << "nobody else sends them";
  EXPECT_FALSE(can_be_held({1, 0}));
  ledger_.acknowledged(acks, 10);
  EXPECT_EQ(ledger_.size(), 0U);
}

TEST_F(LedgerTest, HasThemWaitIfTheyCouldNotBeSent) {
  AckBatch acks;
  ledger_.finish_into(acks, running({1, 0}).ticket);
  ledger_.not_acknowledged(acks);
  EXPECT_EQ(ledger_.take_acks(10).ids, (Ids{{1, 0}}));
}

TEST_F(LedgerTest, TakesWhatItLeftForNoOrphanUntilItIsDue) {
  ledger_.leave(running({1, 0}).ticket, clock_.now());
  EXPECT_EQ(ledger_.size(), 0U);
  clock_.advance(29'999ms);
  EXPECT_FALSE(is_orphan({1, 0}));
  EXPECT_TRUE(is_orphan({2, 0}));
  clock_.advance(1ms);
  EXPECT_TRUE(is_orphan({1, 0}));
}

TEST_F(LedgerTest, TakesWhatItLeftAsSoonAsTheServerSaysThatItIsIdle) {
  ledger_.leave(running({1, 0}).ticket, clock_.now());
  EXPECT_TRUE(ledger_.start(queued({1, 0}), {}));
}

TEST_F(LedgerTest, CountsTheTimeOfAnEntryThatWasLeftAgainFromTheLastTime) {
  ledger_.leave(running({1, 0}).ticket, clock_.now());
  ledger_.leave(running({2, 0}).ticket, clock_.now());
  clock_.advance(20s);
  ledger_.leave(running({1, 0}).ticket, clock_.now());
  clock_.advance(10s);
  EXPECT_TRUE(is_orphan({2, 0}));
  EXPECT_FALSE(is_orphan({1, 0}));
  clock_.advance(20s);
  EXPECT_TRUE(is_orphan({1, 0}));
}

TEST_F(LedgerTest, ForgetsEverythingWhenTheStreamIsMadeNew) {
  queued({1, 0});
  running({2, 0});
  done({3, 0});
  done({4, 0});
  const AckBatch acks = ledger_.take_acks(1);
  ledger_.not_acknowledged(acks);
  ledger_.leave(running({5, 0}).ticket, clock_.now());
  ledger_.start_over();
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_FALSE(ledger_.acks_failing());
  EXPECT_EQ(ledger_.acks_due_at(), std::nullopt);
  EXPECT_TRUE(is_orphan({5, 0}));
}

TEST_F(LedgerTest, LetsNoTicketOfAnOldStreamTouchAnEntryOfTheNewOne) {
  const Ticket waits = queued({1, 0});
  const Ticket runs = running({2, 0}).ticket;
  done({3, 0});
  const AckBatch acks = ledger_.take_acks(10);
  ledger_.start_over();
  queued({1, 0});
  running({2, 0});
  done({3, 0});

  EXPECT_FALSE(ledger_.start(waits, {}));
  EXPECT_EQ(ledger_.finish(runs, clock_.now()), std::nullopt);
  AckBatch mine;
  ledger_.finish_into(mine, runs);
  EXPECT_TRUE(mine.ids.empty());
  ledger_.drop(waits);
  ledger_.leave(runs, clock_.now());
  ledger_.acknowledged(acks, 10);
  ledger_.not_acknowledged(acks);
  EXPECT_EQ(ledger_.size(), 3U);
  EXPECT_FALSE(ledger_.acks_failing());
  EXPECT_EQ(ledger_.running(), (Ids{{2, 0}}));
  EXPECT_EQ(ledger_.take_acks(10).ids, (Ids{{3, 0}}));
}

TEST_F(LedgerTest, DropsTheAcknowledgementsOfAnOldStreamFromABatchThatGoesOn) {
  AckBatch acks;
  ledger_.finish_into(acks, running({1, 0}).ticket);
  ledger_.start_over();
  ledger_.finish_into(acks, running({2, 0}).ticket);
  EXPECT_EQ(acks.ids, (Ids{{2, 0}}));
  ledger_.acknowledged(acks, 10);
  EXPECT_EQ(ledger_.size(), 0U);
}

}  // namespace
}  // namespace millrace::detail

#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

class LedgerLeaseTest : public LedgerTest {
 protected:
  std::stop_token call(const Work& work, TimePoint until = TimePoint::max()) {
    return ledger_.begin_call(work.ticket, until).value();
  }
  std::size_t leases() const { return ledger_.leases().size(); }
  std::uint64_t count_of(const Ticket& ticket) const {
    return ledger_.counts_of({&ticket, 1}).at(0).second;
  }
};

TEST_F(LedgerLeaseTest, DoesNotCountWhatAPeerHasAmongWhatIsPendingUnderOurName) {
  const Work work = running({1, 0});
  running({2, 0});
  call(work);
  ASSERT_EQ(ledger_.known_pending(clock_.now()), 2U);
  ASSERT_TRUE(ledger_.lost(work.ticket, 1));
  EXPECT_EQ(ledger_.known_pending(clock_.now()), 1U)
      << "or it would stand for an entry of ours that nobody holds";
}

TEST_F(LedgerLeaseTest, FiresTheTokenOfACallThatIsLostAndTellsOnce) {
  const Work work = running({1, 0});
  const auto stop = call(work);
  EXPECT_TRUE(ledger_.lost(work.ticket, 1));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_FALSE(ledger_.lost(work.ticket, 1));
  EXPECT_EQ(ledger_.running(), (Ids{{1, 0}})) << "until the handler returns";
  EXPECT_EQ(leases(), 0U) << "and nobody renews it";
}

TEST_F(LedgerLeaseTest, LosesNothingByAnAnswerToAnotherCount) {
  const Work work = running({1, 0});
  const auto stop = call(work);
  ledger_.started(work.ticket, clock_.now(), 2);
  EXPECT_FALSE(ledger_.lost(work.ticket, 1)) << "the question was sent before the start";
  EXPECT_FALSE(stop.stop_requested());
  EXPECT_EQ(leases(), 1U);
  EXPECT_TRUE(ledger_.lost(work.ticket, 2));
}

TEST_F(LedgerLeaseTest, LosesNothingWhileItsStartIsOnItsWay) {
  const Work work = running({1, 0});
  ledger_.starting(work.ticket, 1);
  EXPECT_FALSE(ledger_.lost(work.ticket, 1));
  ledger_.started(work.ticket, clock_.now(), 1);
  EXPECT_TRUE(ledger_.lost(work.ticket, 1));
}

TEST_F(LedgerLeaseTest, LosesNothingThatWasFinishedMeanwhile) {
  const Ticket waits = done({1, 0});
  EXPECT_FALSE(ledger_.lost(waits, 1));
  const AckBatch acks = ledger_.take_acks(1);
  EXPECT_FALSE(ledger_.lost(waits, 1));
  ledger_.acknowledged(acks, 10);
  EXPECT_FALSE(ledger_.lost(waits, 1));
}

TEST_F(LedgerLeaseTest, DropsWhatIsLostBeforeItsStart) {
  const Ticket ticket = queued({1, 0});
  EXPECT_TRUE(ledger_.lost(ticket, 1));
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(started().empty());
}

TEST_F(LedgerLeaseTest, BeginsNoCallOfWhatIsLostOrNotHeld) {
  const Work work = running({1, 0});
  ledger_.lost(work.ticket, 1);
  EXPECT_EQ(ledger_.begin_call(work.ticket, TimePoint::max()), std::nullopt);
  EXPECT_EQ(ledger_.begin_call(queued({2, 0}), TimePoint::max()), std::nullopt);
  ledger_.drop(work.ticket);
  EXPECT_EQ(ledger_.begin_call(work.ticket, TimePoint::max()), std::nullopt);
}

TEST_F(LedgerLeaseTest, AcknowledgesAfterALostLeaseWithoutSurprise) {
  const Work work = running({1, 0});
  ledger_.lost(work.ticket, 1);
  ledger_.finish(work.ticket, clock_.now());
  EXPECT_EQ(ledger_.acknowledged(ledger_.take_acks(1), 0), 0U);
}

TEST_F(LedgerLeaseTest, ThatRanOutDuringACallIsToldOfOnce) {
  const Work fails = running({1, 0});
  const Work succeeds = running({2, 0});
  clock_.advance(30s);
  EXPECT_EQ(ledger_.expire(clock_.now()).size(), 2U);
  ledger_.fail({.kind = Settlement::Kind::kPark, .work = fails, .due = clock_.now()});
  EXPECT_FALSE(ledger_.lost(fails.ticket, 1)) << "a peer has it";
  EXPECT_EQ(ledger_.running(), (Ids{{2, 0}})) << "and nobody here";
  ledger_.finish(succeeds.ticket, clock_.now());
  EXPECT_EQ(ledger_.acknowledged(ledger_.take_acks(1), 0), 0U);
}

TEST_F(LedgerLeaseTest, EndsByTheClockAlone) {
  const Ticket waits = queued({1, 0});
  const Work runs = running({2, 0});
  const auto stop = call(runs);
  EXPECT_EQ(ledger_.next_expiry(), clock_.now() + 30s);
  clock_.advance(29'999ms);
  EXPECT_TRUE(ledger_.expire(clock_.now()).empty());
  clock_.advance(1ms);
  EXPECT_EQ(ledger_.expire(clock_.now()), (Ids{{2, 0}, {1, 0}}));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_FALSE(ledger_.drop(waits)) << "what was queued is dropped";
  EXPECT_EQ(ledger_.running(), (Ids{{2, 0}}));
  EXPECT_EQ(ledger_.next_expiry(), TimePoint::max());
  clock_.advance(1h);
  EXPECT_TRUE(ledger_.expire(clock_.now()).empty()) << "it is told once";
  EXPECT_FALSE(ledger_.lost(runs.ticket, 1)) << "nor is it news then";
}

TEST_F(LedgerLeaseTest, IsAskedAboutYetAfterItEndedByTheClock) {
  const Work work = running({1, 0});
  clock_.advance(30s);
  ASSERT_EQ(ledger_.expire(clock_.now()).size(), 1U);
  EXPECT_EQ(leases(), 1U) << "the server may know better";
  ledger_.renewed(work.ticket, clock_.now());
  EXPECT_EQ(ledger_.next_expiry(), clock_.now() + 30s);
  EXPECT_TRUE(ledger_.expire(clock_.now()).empty());
}

TEST_F(LedgerLeaseTest, GoesOnFromTheLatestRequestThatRenewedIt) {
  const Work work = running({1, 0});
  clock_.advance(10s);
  const TimePoint sent_at = clock_.now();
  ledger_.renewed(work.ticket, sent_at);
  ledger_.renewed(work.ticket, sent_at - 5s);
  EXPECT_EQ(ledger_.next_expiry(), sent_at + 30s);
  clock_.advance(10s);
  ledger_.started(work.ticket, clock_.now(), 2);
  EXPECT_EQ(ledger_.next_expiry(), clock_.now() + 30s);
  EXPECT_EQ(count_of(work.ticket), 2U);
}

TEST_F(LedgerLeaseTest, DoesNotEndOfWhatWaitsForItsAcknowledgementOrRests) {
  done({1, 0});
  rest(running({2, 0}), 1h);
  clock_.advance(30s);
  EXPECT_EQ(ledger_.next_expiry(), TimePoint::max());
  EXPECT_TRUE(ledger_.expire(clock_.now()).empty());
  EXPECT_EQ(ledger_.size(), 2U);
}

TEST_F(LedgerLeaseTest, EndsOfACallThatTakesTooLong) {
  const Work work = running({1, 0});
  const auto stop = call(work, clock_.now() + 5s);
  EXPECT_EQ(ledger_.next_expiry(), clock_.now() + 5s);
  clock_.advance(5s);
  EXPECT_EQ(ledger_.expire(clock_.now()), (Ids{{1, 0}}));
  EXPECT_TRUE(stop.stop_requested());
  EXPECT_EQ(leases(), 0U) << "it is renewed no more, so that a peer takes it";
  EXPECT_FALSE(ledger_.lost(work.ticket, 1)) << "it is no news that it has";
}

TEST_F(LedgerLeaseTest, GivesACallMoreTimeWhileItHasALease) {
  const Work work = running({1, 0});
  const auto stop = call(work, clock_.now() + 5s);
  clock_.advance(4s);
  EXPECT_TRUE(ledger_.extend(work.ticket, clock_.now() + 5s));
  clock_.advance(4s);
  EXPECT_TRUE(ledger_.expire(clock_.now()).empty());
  clock_.advance(1s);
  EXPECT_EQ(ledger_.expire(clock_.now()).size(), 1U);
  EXPECT_FALSE(ledger_.extend(work.ticket, clock_.now() + 5s)) << "that comes too late";
}

TEST_F(LedgerLeaseTest, IsLostWhereItHadRunOutAndThereIsNothingToRenew) {
  const Work runs = running({1, 0});
  const Work fails = running({2, 0});
  const Work succeeds = running({3, 0});
  EXPECT_FALSE(ledger_.lost_if_expired(runs.ticket)) << "it has its lease: it was trimmed";
  clock_.advance(30s);
  ledger_.expire(clock_.now());
  ledger_.finish(succeeds.ticket, clock_.now());
  ledger_.fail({.kind = Settlement::Kind::kPark, .work = fails, .due = clock_.now()});
  const auto waiting = ledger_.take_settlements(1);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_TRUE(waiting[0].had_no_lease);
  EXPECT_TRUE(ledger_.lost_if_expired(runs.ticket));
  EXPECT_TRUE(ledger_.lost_if_expired(fails.ticket));
  EXPECT_FALSE(ledger_.lost_if_expired(succeeds.ticket)) << "it is acknowledged whoever has it";
  ledger_.fail({.kind = Settlement::Kind::kBury, .work = runs});
  EXPECT_EQ(ledger_.settlements(), 0U) << "a loser's failure changes nothing";
}

TEST_F(LedgerLeaseTest, TakesNoTimeFromACallThatHadMore) {
  const Work work = running({1, 0});
  const Work unlimited = running({2, 0});
  call(work, clock_.now() + 5s);
  call(unlimited, TimePoint::max());
  EXPECT_TRUE(ledger_.extend(work.ticket, clock_.now() + 1s));
  EXPECT_TRUE(ledger_.extend(unlimited.ticket, clock_.now() + 1s));
  clock_.advance(4s);
  EXPECT_TRUE(ledger_.expire(clock_.now()).empty());
  clock_.advance(1s);
  EXPECT_EQ(ledger_.expire(clock_.now()), (Ids{{1, 0}}));
}

TEST_F(LedgerLeaseTest, GivesNoMoreTimeWithoutALease) {
  const Work lost = running({1, 0});
  ledger_.lost(lost.ticket, 1);
  EXPECT_FALSE(ledger_.extend(lost.ticket, TimePoint::max()));
  const Work expired = running({2, 0});
  clock_.advance(30s);
  ledger_.expire(clock_.now());
  EXPECT_FALSE(ledger_.extend(expired.ticket, TimePoint::max()));
  EXPECT_FALSE(ledger_.extend(done({3, 0}), TimePoint::max())) << "it does not run";
}

TEST_F(LedgerLeaseTest, IsThatOfAllThatIsHeld) {
  queued({1, 0});
  running({2, 0});
  rest(running({3, 0}), 1s);
  done({4, 0});
  ledger_.fail({.work = running({5, 0})});
  parked(running({6, 0}), 1s);
  EXPECT_EQ(leases(), 4U + 1U);
}

TEST_F(LedgerLeaseTest, CountsAreThoseOfWhatIsStillHeld) {
  const Ticket ticket = queued({1, 0});
  const Ticket gone = queued({2, 0});
  ledger_.drop(gone);
  const auto counts = ledger_.counts_of(std::vector{ticket, gone});
  ASSERT_EQ(counts.size(), 1U);
  EXPECT_EQ(counts[0].first.id, (StreamId{1, 0}));
  EXPECT_EQ(counts[0].second, 1U);
  ledger_.start_over();
  EXPECT_TRUE(ledger_.counts_of(std::vector{ticket}).empty());
}

TEST_F(LedgerLeaseTest, KnowsHowManyTheServerShouldHave) {
  queued({1, 0});
  parked(running({2, 0}), 1h);
  ledger_.leave(running({3, 0}).ticket, clock_.now());
  EXPECT_EQ(ledger_.known_pending(clock_.now()), 3U);
  clock_.advance(30s);
  EXPECT_EQ(ledger_.known_pending(clock_.now()), 2U) << "what was left may be anybody's";
}

TEST_F(LedgerLeaseTest, OrphansAreWhatNobodyHereKnows) {
  queued({1, 0});
  parked(running({2, 0}), 1h);
  ledger_.leave(running({3, 0}).ticket, clock_.now());
  const std::vector<Pending> pending{{{1, 0}, 1}, {{2, 0}, 1}, {{3, 0}, 1}, {{4, 0}, 7}};
  const auto orphans = ledger_.orphans(pending, clock_.now());
  ASSERT_EQ(orphans.size(), 1U);
  EXPECT_EQ(orphans[0].id, (StreamId{4, 0}));
  EXPECT_EQ(orphans[0].deliveries, 7U);
}

TEST_F(LedgerLeaseTest, PutsBackAnEntryThatWasNotStartedAfterAll) {
  const Ticket anybodys = queued({1, 0});
  ledger_.next(clock_.now());
  ledger_.put_back(anybodys);
  EXPECT_EQ(ledger_.room(), 3U);
  EXPECT_EQ(started(), (Ids{{1, 0}}));
  ledger_.put_back(running({2, 0}).ticket);
  EXPECT_TRUE(started().empty()) << "one that was reserved is so still";
  EXPECT_EQ(ledger_.withdraw(std::vector{Ticket{.id = {2, 0}}}).size(), 1U);
}

}  // namespace
}  // namespace millrace::detail

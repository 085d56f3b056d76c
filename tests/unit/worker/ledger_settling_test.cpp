#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

class LedgerSettlingTest : public LedgerTest {
 protected:
  void fail(const Work& work, Settlement::Kind kind = Settlement::Kind::kBury) {
    ledger_.fail({.kind = kind, .work = work, .due = clock_.now() + 10s, .failed = kFailed});
  }
  static Ids ids(const std::vector<Settlement>& settlements) {
    Ids ids;
    for (const Settlement& one : settlements) ids.push_back(one.work.ticket.id);
    return ids;
  }
  Ids due() {
    Ids ids;
    for (const Pending& entry : ledger_.due_retries(clock_.now(), 10)) ids.push_back(entry.id);
    return ids;
  }

  /// As recovery, the reaper, or a retry that is due takes an entry.
  Work taken(StreamId id, std::uint64_t deliveries) const {
    Work work = taken_over(id, deliveries, clock_.now());
    work.waits_since = clock_.now();
    return work;
  }
  bool can_be_taken(StreamId id, std::uint64_t deliveries) {
    Work work = taken(id, deliveries);
    return ledger_.hold(work);
  }
  static constexpr WallTime kFailed{1'000s};
};

TEST_F(LedgerSettlingTest, GivesFailuresInTheirOrderAndHoldsThemMeanwhile) {
  for (std::uint64_t i = 1; i <= 3; ++i) fail(running({i, 0}));
  EXPECT_EQ(ledger_.settlements(), 3U);
  EXPECT_EQ(ids(ledger_.take_settlements(2)), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(ids(ledger_.take_settlements(2)), (Ids{{3, 0}}));
  EXPECT_EQ(ledger_.settlements(), 0U);
  EXPECT_FALSE(can_be_held({1, 0}));
  EXPECT_EQ(ledger_.size(), 3U);
  EXPECT_TRUE(ledger_.running().empty());
}

TEST_F(LedgerSettlingTest, LetsGoOfWhatWasBuried) {
  fail(running({1, 0}));
  ledger_.settled(ledger_.take_settlements(1).front(), true);
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(ledger_.parked().empty());
  EXPECT_TRUE(is_orphan({1, 0})) << "a peer's count may bring it back";
}

TEST_F(LedgerSettlingTest, ParksWhatIsOursUntilItIsDue) {
  Work work = running({1, 0});
  ledger_.started(work.ticket, clock_.now(), 3);
  fail(work, Settlement::Kind::kPark);
  ledger_.settled(ledger_.take_settlements(1).front(), true);
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_FALSE(is_orphan({1, 0}));
  EXPECT_EQ(ledger_.next_retry(clock_.now()), clock_.now() + 10s);
  ASSERT_EQ(ledger_.parked().size(), 1U);
  EXPECT_EQ(ledger_.parked()[0].second, clock_.now() + 10s);
  EXPECT_TRUE(due().empty());
  clock_.advance(10s);
  ASSERT_EQ(due(), (Ids{{1, 0}}));
  EXPECT_EQ(ledger_.due_retries(clock_.now(), 10)[0].deliveries, 3U) << "as the server counts";
}

TEST_F(LedgerSettlingTest, ParksNothingThatIsNotOurs) {
  fail(running({1, 0}), Settlement::Kind::kPark);
  ledger_.settled(ledger_.take_settlements(1).front(), false);
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(ledger_.parked().empty());
  EXPECT_TRUE(is_orphan({1, 0}));
}

TEST_F(LedgerSettlingTest, GivesRetriesThatAreDueFirstComeFirstAndNotTooMany) {
  parked(running({1, 0}), 3s);
  parked(running({2, 0}), 1s);
  parked(running({3, 0}), 2s);
  parked(running({4, 0}), 9s);
  clock_.advance(5s);
  EXPECT_EQ(due(), (Ids{{2, 0}, {3, 0}, {1, 0}}));
  EXPECT_EQ(ledger_.due_retries(clock_.now(), 2).size(), 2U);
}

TEST_F(LedgerSettlingTest, ForgetsAParkedEntryThatIsHeldOrTrimmedOrAPeers) {
  for (std::uint64_t i = 1; i <= 3; ++i) parked(running({i, 0}), 1s);
  clock_.advance(1s);
  EXPECT_TRUE(can_be_taken({1, 0}, 1));
  ledger_.forget_parked({{2, 0}, 2});
  EXPECT_EQ(ledger_.parked().size(), 2U) << "it has been started, and parked again, since";
  ledger_.forget_parked({{2, 0}, 1});
  ledger_.forget_parked({{2, 0}, 1});
  ledger_.note_trimmed(Ids{{3, 0}});
  EXPECT_TRUE(due().empty());
  EXPECT_TRUE(ledger_.parked().empty());
  EXPECT_EQ(ledger_.next_retry(clock_.now()), TimePoint::max());
  EXPECT_TRUE(is_orphan({2, 0}));
}

TEST_F(LedgerSettlingTest, LeavesAParkedEntryParkedUntilItIsDueHoweverItComesBack) {
  parked(detail::running(ledger_, taken({1, 0}, 3)), 10s);
  EXPECT_FALSE(can_be_taken({1, 0}, 3));
  EXPECT_TRUE(ledger_.resets(10).empty()) << "whoever takes it over keeps its count";
  EXPECT_FALSE(can_be_held({1, 0})) << "a read of new entries brings it, counted as the first time";
  EXPECT_EQ(ledger_.size(), 0U);
  EXPECT_TRUE(started().empty());
  ASSERT_EQ(ledger_.resets(10).size(), 1U);
  const auto [entry, due_at] = ledger_.resets(10).front();
  EXPECT_EQ(entry.id, (StreamId{1, 0}));
  EXPECT_EQ(entry.deliveries, 3U) << "what the server is to have again";
  EXPECT_EQ(due_at, clock_.now() + 10s);
  EXPECT_TRUE(ledger_.parked().empty()) << "nobody parks it again with that count before";
  ledger_.reset_undone({1, 0}, true);
  EXPECT_TRUE(ledger_.resets(10).empty());
  EXPECT_EQ(ledger_.parked().size(), 1U);

  clock_.advance(10s);
  EXPECT_FALSE(can_be_held({1, 0})) << "it is taken by its id, with its count";
  EXPECT_EQ(ledger_.due_retries(clock_.now(), 10).front().deliveries, 3U);
  EXPECT_TRUE(can_be_taken({1, 0}, 3));
}

TEST_F(LedgerSettlingTest, HoldsAParkedEntryThatHasBeenAPeersMeanwhile) {
  parked(detail::running(ledger_, taken({1, 0}, 3)), 10s);
  EXPECT_TRUE(can_be_taken({1, 0}, 4));
  parked(running({2, 0}), 10s);
  EXPECT_FALSE(can_be_held({2, 0}));
  ledger_.reset_undone({2, 0}, false);
  EXPECT_TRUE(is_orphan({2, 0}));
}

TEST_F(LedgerSettlingTest, TakesACountThatAReadHasResetForNoLossOfALease) {
  const Work work = detail::running(ledger_, taken({1, 0}, 3));
  EXPECT_FALSE(can_be_held({1, 0}));
  ASSERT_EQ(ledger_.resets(10).size(), 1U);
  EXPECT_EQ(ledger_.resets(10).front().second, TimePoint::max()) << "it is not parked";
  EXPECT_FALSE(ledger_.lost(work.ticket, 3));
  fail(work, Settlement::Kind::kPark);
  ledger_.settled(ledger_.take_settlements(1).front(), false);
  EXPECT_EQ(ledger_.settlements(), 1U) << "it is asked for again";
  ledger_.reset_undone({1, 0}, true);
  EXPECT_TRUE(ledger_.lost(work.ticket, 3));

  queued({2, 0});
  EXPECT_FALSE(can_be_held({2, 0}));
  EXPECT_TRUE(ledger_.resets(10).empty()) << "its count is 1 as before";
}

TEST_F(LedgerSettlingTest, HasTheCountRightThatAStartLeavesBehind) {
  const Work work = detail::running(ledger_, taken({1, 0}, 3));
  ledger_.starting(work.ticket, 4);
  EXPECT_FALSE(can_be_held({1, 0}));
  EXPECT_TRUE(ledger_.resets(10).empty()) << "was it counted anew before the start, or after it?";
  ledger_.started(work.ticket, clock_.now(), 4);
  ASSERT_EQ(ledger_.resets(10).size(), 1U);
  EXPECT_EQ(ledger_.resets(10).front().first.deliveries, 4U);
}

TEST_F(LedgerSettlingTest, HasAStartThatWasPutOffAgainWhenItIsDue) {
  const Work work = detail::running(ledger_, taken({1, 0}, 3));
  ledger_.starting(work.ticket, 4);
  EXPECT_FALSE(can_be_held({1, 0}));
  ledger_.start_put_off(work.ticket, clock_.now() + 20ms);
  ASSERT_EQ(ledger_.resets(10).size(), 1U);
  EXPECT_EQ(ledger_.resets(10).front().first.deliveries, 3U) << "it was not started";
  EXPECT_TRUE(started().empty());
  clock_.advance(20ms);
  const auto again = ledger_.next(clock_.now());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->deliveries, 3U);
  EXPECT_FALSE(again->start_counted);
}

TEST_F(LedgerSettlingTest, TakesWhatIsDoneAndComesAgainForAnotherDelivery) {
  const Work work = detail::running(ledger_, taken({1, 0}, 3));
  ledger_.finish(work.ticket, clock_.now());
  const AckBatch acks = ledger_.take_acks(1);
  EXPECT_FALSE(can_be_held({1, 0}));
  EXPECT_TRUE(ledger_.resets(10).empty()) << "its acknowledgement was there before the read";
  ledger_.acknowledged(acks, 1);
  EXPECT_TRUE(can_be_held({1, 0}));
}

TEST_F(LedgerSettlingTest, FindsInAListOfWhatIsPendingThatAReadHasBroughtItAgain) {
  parked(detail::running(ledger_, taken({1, 0}, 3)), 10s);
  detail::running(ledger_, taken({2, 0}, 2));
  detail::running(ledger_, taken({3, 0}, 2));
  const std::vector<Pending> own{{{1, 0}, 1}, {{2, 0}, 1}, {{3, 0}, 2}, {{4, 0}, 1}};
  EXPECT_EQ(ledger_.orphans(own, clock_.now()).size(), 1U);
  std::map<StreamId, std::uint64_t> counts;
  for (const auto& [entry, due] : ledger_.resets(10)) counts[entry.id] = entry.deliveries;
  EXPECT_EQ(counts, (std::map<StreamId, std::uint64_t>{{{1, 0}, 3}, {{2, 0}, 2}}));
}

TEST_F(LedgerSettlingTest, RemembersWhenAnEntryFailedForTheFirstTime) {
  fail(running({1, 0}), Settlement::Kind::kPark);
  ledger_.settled(ledger_.take_settlements(1).front(), true);
  clock_.advance(10s);
  Work again = taken({1, 0}, 1);
  ASSERT_TRUE(ledger_.reserve(again));
  EXPECT_EQ(again.first_failed, kFailed);
  ledger_.start(again.ticket, {});
  ledger_.fail({.work = again, .failed = kFailed + 1h});
  EXPECT_EQ(ledger_.take_settlements(1).front().work.first_failed, kFailed);
}

TEST_F(LedgerSettlingTest, HasWhatCouldNotBeDoneWaitAgain) {
  fail(running({1, 0}));
  fail(running({2, 0}));
  auto some = ledger_.take_settlements(1);
  ledger_.unsettled(std::move(some.front()));
  EXPECT_EQ(ids(ledger_.take_settlements(10)), (Ids{{2, 0}, {1, 0}})) << "others come first";
}

TEST_F(LedgerSettlingTest, HasNothingWaitThatIsNotHeldAnyMore) {
  fail(running({1, 0}));
  auto some = ledger_.take_settlements(1);
  EXPECT_TRUE(ledger_.lost(some.front().work.ticket, 1));
  ledger_.unsettled(std::move(some.front()));
  EXPECT_EQ(ledger_.settlements(), 0U);
}

TEST_F(LedgerSettlingTest, AsksTheServerForTheCountThatItHasNow) {
  Work work = running({1, 0});
  ledger_.started(work.ticket, clock_.now(), 4);
  fail(work);
  EXPECT_EQ(ledger_.take_settlements(1).front().work.deliveries, 4U);
}

TEST_F(LedgerSettlingTest, DoesNothingAboutAFailureWhoseLeaseIsLost) {
  const Work parks = running({1, 0});
  const Work rests = running({2, 0});
  EXPECT_TRUE(ledger_.lost(parks.ticket, 1));
  EXPECT_TRUE(ledger_.lost(rests.ticket, 1));
  fail(parks);
  rest(rests, 1s);
  EXPECT_EQ(ledger_.settlements(), 0U);
  EXPECT_EQ(ledger_.size(), 0U) << "it is a peer's";
}

TEST_F(LedgerSettlingTest, FailsNothingThatDoesNotRun) {
  fail(entry({1, 0}));
  Work work = entry({2, 0});
  ledger_.hold(work);
  fail(work);
  EXPECT_EQ(ledger_.settlements(), 0U);
}

TEST_F(LedgerSettlingTest, HasATrimmedEntryRestInMemoryAndHandlesItFromThere) {
  fail(running({1, 0}), Settlement::Kind::kPark);
  const auto some = ledger_.take_settlements(1);
  ledger_.rest_in_memory(some.front());
  EXPECT_EQ(ledger_.next_retry(clock_.now()), clock_.now() + 10s);
  EXPECT_TRUE(started().empty());
  clock_.advance(10s);
  const auto work = ledger_.next(clock_.now());
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->entry.at("f"), "v");
  EXPECT_TRUE(work->reclaimed) << "its next start is counted";
  ledger_.finish(work->ticket, clock_.now());
  EXPECT_EQ(ledger_.acknowledged(ledger_.take_acks(1), 0), 0U);
}

TEST_F(LedgerSettlingTest, HasNothingRestInMemoryThatIsNotHeldAnyMore) {
  fail(running({1, 0}), Settlement::Kind::kPark);
  const auto some = ledger_.take_settlements(1);
  ledger_.drop(some.front().work.ticket);
  ledger_.rest_in_memory(some.front());
  EXPECT_EQ(ledger_.next_retry(clock_.now()), TimePoint::max());
}

TEST_F(LedgerSettlingTest, TakesTheLetterOfAnEntryThatNobodyHolds) {
  ledger_.add_settlement({.work = {.ticket = {.id = {1, 0}}}, .trimmed = true});
  auto some = ledger_.take_settlements(10);
  ASSERT_EQ(ids(some), (Ids{{1, 0}}));
  ledger_.unsettled(std::move(some.front()));
  ASSERT_EQ(ledger_.settlements(), 1U) << "it is nobody's, and waits all the same";
  ledger_.settled(ledger_.take_settlements(1).front(), true);
  EXPECT_EQ(ledger_.settlements(), 0U);
}

TEST_F(LedgerSettlingTest, ForgetsTheFailuresOfAStreamThatIsMadeNew) {
  parked(running({1, 0}), 1s);
  rest(running({2, 0}), 1s);
  fail(running({3, 0}));
  auto some = ledger_.take_settlements(1);
  fail(running({4, 0}));
  ledger_.add_settlement({.work = {.ticket = {.id = {5, 0}}}, .trimmed = true});
  auto trimmed = some.front();
  trimmed.trimmed = true;
  ledger_.start_over();
  ledger_.unsettled(std::move(some.front()));
  ledger_.unsettled(std::move(trimmed));
  EXPECT_EQ(ledger_.settlements(), 0U);
  EXPECT_TRUE(ledger_.parked().empty());
  EXPECT_EQ(ledger_.next_retry(clock_.now()), TimePoint::max());
  EXPECT_TRUE(is_orphan({1, 0}));
  EXPECT_EQ(ledger_.room(), 4U);
}

class LedgerRestingTest : public LedgerTest {};

TEST_F(LedgerRestingTest, IsStartedAgainWhenItIsDueAndItsStartIsCounted) {
  const Work work = running({1, 0});
  EXPECT_FALSE(work.reclaimed);
  rest(work, 2s);
  EXPECT_EQ(ledger_.next_retry(clock_.now()), clock_.now() + 2s);
  EXPECT_TRUE(ledger_.running().empty());
  EXPECT_FALSE(can_be_held({1, 0}));
  clock_.advance(2s);
  const auto again = ledger_.next(clock_.now());
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->reclaimed);
  EXPECT_EQ(again->first_failed, WallTime{});
  EXPECT_EQ(ledger_.next_retry(clock_.now()), TimePoint::max());
}

TEST_F(LedgerRestingTest, IsStartedByAnybodyAlthoughItWasReserved) {
  const Ticket mine = reserved({1, 0});
  rest(*ledger_.start(mine, {}), 1s);
  clock_.advance(1s);
  EXPECT_EQ(started(), (Ids{{1, 0}})) << "who reserved it has gone on";
}

TEST_F(LedgerRestingTest, WakesAllThatAreDueInTheirOrder) {
  rest(running({1, 0}), 2s);
  rest(running({2, 0}), 1s);
  rest(running({3, 0}), 5s);
  clock_.advance(3s);
  EXPECT_EQ(started(), (Ids{{2, 0}, {1, 0}}));
}

TEST_F(LedgerRestingTest, DoesNotRestWhatDoesNotRun) {
  Work work = entry({1, 0});
  ledger_.hold(work);
  rest(work, 1s);
  EXPECT_EQ(ledger_.next_retry(clock_.now()), TimePoint::max());
  EXPECT_EQ(started(), (Ids{{1, 0}}));
}

TEST_F(LedgerRestingTest, CanBeDropped) {
  const Work work = running({1, 0});
  rest(work, 1s);
  EXPECT_TRUE(ledger_.drop(work.ticket));
  EXPECT_FALSE(ledger_.drop(work.ticket));
  clock_.advance(1s);
  EXPECT_TRUE(started().empty());
}

class LedgerEndingTest : public LedgerTest {};

TEST_F(LedgerEndingTest, GivesBackWhatWasQueuedOrRestedAndStartsNothing) {
  queued({3, 0});
  queued({1, 0}, 7);
  reserved({2, 0}, 7);
  rest(running({4, 0}), 1s);
  const Work runs = running({5, 0});
  done({6, 0});
  const auto back = ledger_.close();
  Ids ids;
  for (const Work& work : back) ids.push_back(work.ticket.id);
  EXPECT_EQ(ids, (Ids{{1, 0}, {2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(ledger_.size(), 2U);
  EXPECT_EQ(ledger_.room(), 0U);

  const Ticket late = queued({7, 0});
  EXPECT_TRUE(started().empty());
  EXPECT_EQ(ledger_.start(late, {}), std::nullopt);
  ledger_.put_back(runs.ticket);
  EXPECT_EQ(ledger_.close().size(), 2U) << "what comes late is given back as well";
}

TEST_F(LedgerEndingTest, IsIdleWhereNothingWaitsOrRuns) {
  EXPECT_TRUE(ledger_.is_idle());
  const Ticket ticket = queued({1, 0});
  EXPECT_FALSE(ledger_.is_idle());
  ledger_.start(ticket, {});
  EXPECT_FALSE(ledger_.is_idle());
  ledger_.finish(ticket, clock_.now());
  EXPECT_TRUE(ledger_.is_idle());
  rest(running({2, 0}), 1s);
  EXPECT_TRUE(ledger_.is_idle());
}

TEST_F(LedgerEndingTest, IsNotIdleWhileAFailureIsSettled) {
  ledger_.fail({.kind = Settlement::Kind::kPark, .work = running({1, 0}), .due = clock_.now()});
  EXPECT_FALSE(ledger_.is_idle());
  const auto taken = ledger_.take_settlements(1);
  EXPECT_FALSE(ledger_.is_idle()) << "it is on its way, and may be due before it has come there";
  ledger_.settled(taken.front(), true);
  EXPECT_TRUE(ledger_.is_idle());
}

TEST_F(LedgerEndingTest, FiresTheTokensOfAStreamThatIsMadeNew) {
  const auto stop = ledger_.begin_call(running({1, 0}).ticket, TimePoint::max());
  ASSERT_TRUE(stop.has_value());
  ledger_.start_over();
  EXPECT_TRUE(stop->stop_requested());
}

TEST_F(LedgerEndingTest, FiresTheTokensOfAllCalls) {
  const auto first = ledger_.begin_call(running({1, 0}).ticket, TimePoint::max());
  const auto second = ledger_.begin_call(running({2, 0}).ticket, TimePoint::max());
  ledger_.stop_calls();
  EXPECT_TRUE(first->stop_requested());
  EXPECT_TRUE(second->stop_requested());
}

}  // namespace
}  // namespace millrace::detail

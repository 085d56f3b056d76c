#include "support/wait_until.hpp"
#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

class LedgerRoomTest : public LedgerTest {
 protected:
  Ticket big(StreamId id, std::size_t bytes, Lane lane = {}) {
    const std::string value(bytes - 1, 'x');
    const Field field{"f", value};
    Work work{.entry = Entry{id, {&field, 1}}, .leased_at = clock_.now(), .lane = lane};
    EXPECT_TRUE(ledger_.hold(work));
    return work.ticket;
  }
};

TEST_F(LedgerRoomTest, IsThePlacesThatNoQueuedEntryTakes) {
  EXPECT_EQ(ledger_.room(), 4U);
  queued({1, 0});
  queued({2, 0});
  EXPECT_EQ(ledger_.room(), 2U);
  ledger_.next(clock_.now());
  EXPECT_EQ(ledger_.room(), 3U) << "what runs waits for nobody";
  for (std::uint64_t i = 3; i < 9; ++i) queued({i, 0});
  EXPECT_EQ(ledger_.room(), 0U);
}

TEST_F(LedgerRoomTest, IsNoneWhileThePayloadsAreTooBig) {
  const Ticket first = big({1, 0}, 600);
  EXPECT_EQ(ledger_.queued_bytes(), 600U);
  EXPECT_EQ(ledger_.room(), 3U);
  const Ticket second = big({2, 0}, 400);
  EXPECT_EQ(ledger_.room(), 0U);
  started();
  EXPECT_EQ(ledger_.room(), 0U) << "they are still in memory";
  ledger_.finish(first, clock_.now());
  EXPECT_EQ(ledger_.queued_bytes(), 400U) << "an acknowledgement needs no payload";
  EXPECT_EQ(ledger_.room(), 4U);
  ledger_.drop(second);
  EXPECT_EQ(ledger_.queued_bytes(), 0U);
}

TEST_F(LedgerRoomTest, IsNoneWhileAcknowledgementsFail) {
  done({1, 0});
  ledger_.not_acknowledged(ledger_.take_acks(1));
  EXPECT_EQ(ledger_.room(), 0U);
  ledger_.acknowledged(ledger_.take_acks(1), 10);
  EXPECT_EQ(ledger_.room(), 4U);
}

TEST_F(LedgerRoomTest, CountsACallThatSomebodyFinishesLater) {
  const Ticket ticket = running({1, 0}).ticket;
  ledger_.defer(ticket);
  ledger_.defer(ticket);
  EXPECT_EQ(ledger_.room(), 3U);
  ledger_.finish(ticket, clock_.now());
  EXPECT_EQ(ledger_.room(), 4U);

  const Ticket dropped = running({2, 0}).ticket;
  ledger_.defer(dropped);
  ledger_.drop(dropped);
  EXPECT_EQ(ledger_.room(), 4U);
  ledger_.defer(dropped);
  EXPECT_EQ(ledger_.room(), 4U) << "it is not held";
}

TEST_F(LedgerRoomTest, IsNotTakenByWhatWaitsBehindARestingHead) {
  queued({1, 0}, 7);
  const auto head = ledger_.next(clock_.now());
  for (std::uint64_t i = 2; i < 6; ++i) queued({i, 0}, 7);
  EXPECT_EQ(ledger_.room(), 0U) << "the head runs: they are next";
  rest(*head, 1s);
  EXPECT_EQ(ledger_.room(), 4U);
  queued({9, 0}, 8);
  EXPECT_EQ(ledger_.room(), 3U);
}

TEST_F(LedgerRoomTest, IsNotTakenByThePayloadsOfWhatWaitsBehindARestingHead) {
  big({1, 0}, 100, 7);
  const auto head = ledger_.next(clock_.now());
  big({2, 0}, 500, 7);
  EXPECT_EQ(ledger_.queued_bytes(), 600U) << "the head runs: it is next";
  rest(*head, 1s);
  EXPECT_EQ(ledger_.queued_bytes(), 100U) << "the head fails from memory, if it has to";
  big({3, 0}, 5'000, 7);
  EXPECT_EQ(ledger_.queued_bytes(), 100U) << "nor what comes later";
  EXPECT_EQ(ledger_.room(), 4U);
  EXPECT_EQ(ledger_.leases().size(), 3U) << "they are leased all the same";

  clock_.advance(1s);
  const auto again = ledger_.next(clock_.now());
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->shed);
  EXPECT_EQ(ledger_.room(), 4U) << "they hold no place while it runs again";
  ledger_.finish(again->ticket, clock_.now());
  auto next = ledger_.next(clock_.now());
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->ticket.id, (StreamId{2, 0}));
  EXPECT_TRUE(next->shed);
  EXPECT_TRUE(next->entry.deleted());
  next->entry = work_of({2, 0}, {}).entry;
  next->leased_at = clock_.now();
  ledger_.fetched(*next);
  ledger_.fetched(*next);
  EXPECT_EQ(ledger_.queued_bytes(), 2U) << "f=v, once";
  ledger_.put_back(next->ticket);
  EXPECT_FALSE(ledger_.next(clock_.now())->shed) << "it has its payload";
}

TEST_F(LedgerRoomTest, CountsWhatWaitsWithoutAPayloadUntilItIsGone) {
  rest(running({1, 0}, 7), 1h);
  for (std::uint64_t i = 2; i <= 4; ++i) queued({i, 0}, 7);
  ledger_.drop({.id = {2, 0}});
  ledger_.forget_shed(Ids{{1, 0}, {3, 0}, {9, 0}});
  EXPECT_TRUE(ledger_.holds({1, 0})) << "it has its payload";
  EXPECT_FALSE(ledger_.holds({3, 0}));
  EXPECT_TRUE(ledger_.lost({.id = {1, 0}}, 1));
  auto next = ledger_.next(clock_.now());
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->ticket.id, (StreamId{4, 0}));
  ledger_.put_back(next->ticket);
  EXPECT_EQ(ledger_.room(), 4U) << "without a payload it still holds no place";
  queued({5, 0});
  EXPECT_EQ(ledger_.room(), 3U);
}

TEST_F(LedgerRoomTest, IsTakenByWhatIsNowhereButHere) {
  big({1, 0}, 100, 7);
  const auto head = ledger_.next(clock_.now());
  big({2, 0}, 500, 7);
  ledger_.note_trimmed(Ids{{2, 0}});
  rest(*head, 1s);
  EXPECT_EQ(ledger_.queued_bytes(), 600U);
  EXPECT_EQ(ledger_.room(), 3U);
}

TEST_F(LedgerRoomTest, IsNotTakenByTheBatchThatARestingHeadCameWith) {
  const std::vector<OwnedEntry> owned{{.id = {1, 0}, .fields = {{"f", "v"}}},
                                      {.id = {2, 0}, .fields = {{"f", "v"}}}};
  const auto batch = std::make_shared<const EntryBatch>(EntryBatch::of(owned));
  Work work{.entry = (*batch)[0], .batch = batch, .lane = 7};
  work = detail::running(ledger_, work);
  const auto alone = std::make_shared<const EntryBatch>(EntryBatch::of({owned.data(), 1}));
  ledger_.rest(work.ticket, clock_.now(), {}, alone);
  work = {};
  EXPECT_EQ(batch.use_count(), 1);
  EXPECT_EQ(ledger_.next(clock_.now())->entry.at("f"), "v");
}

TEST_F(LedgerRoomTest, HasAnEndHoweverManyWaitBehindARestingHead) {
  queued({1, 0}, 7);
  rest(*ledger_.next(clock_.now()), 1s);
  std::uint64_t next = 2;
  while (ledger_.room() > 0 && next < 1'000) queued({next++, 0}, 7);
  EXPECT_EQ(ledger_.size(), (Ledger::kMostWaiting + 1) * 4);
}

TEST_F(LedgerRoomTest, IsWaitedForUntilAnEntryStarts) {
  for (std::uint64_t i = 1; i <= 4; ++i) queued({i, 0});
  std::atomic<bool> has_room{false};
  std::thread waiter{[&] {
    ledger_.wait_for_room({}, Clock::system().now() + test::kGenerous, Clock::system());
    has_room = ledger_.room() > 0;
  }};
  ledger_.drop({.id = {1, 0}});
  waiter.join();
  EXPECT_TRUE(has_room);
}

TEST_F(LedgerRoomTest, IsNotWaitedForPastTheTimeOrAStop) {
  for (std::uint64_t i = 1; i <= 4; ++i) queued({i, 0});
  ledger_.wait_for_room({}, Clock::system().now(), Clock::system());
  std::stop_source stop;
  stop.request_stop();
  ledger_.wait_for_room(stop.get_token(), TimePoint::max(), Clock::system());
  EXPECT_EQ(ledger_.room(), 0U);
}

}  // namespace
}  // namespace millrace::detail

#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

/// Lanes whose head is neither held nor known to be a peer's.
class LedgerAwaitingTest : public LedgerTest {
 protected:
  void finish(StreamId id) { ledger_.finish({.id = id}, clock_.now()); }
};

TEST_F(LedgerAwaitingTest, WaitForAHeadThatRecoveryIsToFind) {
  const Ticket head = running({1, 0}, 7).ticket;
  queued({2, 0}, 7);
  queued({3, 0}, 8);
  ledger_.await_recovery(head);
  EXPECT_FALSE(ledger_.holds({1, 0}));
  EXPECT_TRUE(is_orphan({1, 0}));
  EXPECT_EQ(started(), (Ids{{3, 0}}));
  queued({1, 0}, 7);
  EXPECT_EQ(started(), (Ids{{1, 0}}));
  finish({1, 0});
  EXPECT_EQ(started(), (Ids{{2, 0}}));
}

TEST_F(LedgerAwaitingTest, CountTheFirstStartOfAHeadThatHadNoneOnce) {
  const auto comes_back = [this](const Work& head, std::uint64_t deliveries) {
    ledger_.await_recovery(head.ticket);
    Work work = taken_over(head.ticket.id, deliveries, clock_.now());
    EXPECT_TRUE(ledger_.hold(work));
    return work.start_counted;
  };
  EXPECT_TRUE(comes_back(running({1, 0}, 7), 1)) << "it was delivered, and that is all";
  EXPECT_FALSE(comes_back(running({2, 0}, 8), 2)) << "a peer has started it";
  EXPECT_FALSE(comes_back(detail::running(ledger_, taken_over({3, 0}, 1, {})), 1));
}

TEST_F(LedgerAwaitingTest, GoOnOnceARecoveryHasNotFoundTheirHead) {
  const Ticket head = running({1, 0}, 7).ticket;
  queued({2, 0}, 7);
  const std::uint64_t before = ledger_.begin_recovery();
  ledger_.await_recovery(head);
  EXPECT_EQ(ledger_.end_recovery(before), Ids{}) << "it may have passed it by";
  EXPECT_EQ(started(), Ids{});
  EXPECT_EQ(ledger_.end_recovery(ledger_.begin_recovery()), (Ids{{1, 0}}));
  EXPECT_EQ(started(), (Ids{{2, 0}}));
  EXPECT_EQ(ledger_.end_recovery(ledger_.begin_recovery()), Ids{});
}

TEST_F(LedgerAwaitingTest, WaitForTheirHeadNoLongerThanItsLeaseLasts) {
  const Ticket head = running({1, 0}, 7).ticket;
  ledger_.await_recovery(head);
  clock_.advance(20s);
  queued({2, 0}, 7);
  EXPECT_EQ(ledger_.next_expiry(), clock_.now() + 10s);
  EXPECT_EQ(ledger_.expire(clock_.now()), Ids{});
  clock_.advance(10s);
  EXPECT_EQ(ledger_.expire(clock_.now()), (Ids{{1, 0}}));
  EXPECT_EQ(started(), (Ids{{2, 0}}));
}

TEST_F(LedgerAwaitingTest, HaveRoomForAHeadThatAllOthersWaitFor) {
  const Ticket head = running({1, 0}, 7).ticket;
  for (std::uint64_t i = 2; i <= 5; ++i) queued({i, 0}, 7);
  EXPECT_EQ(ledger_.room(), 0U);
  ledger_.await_recovery(head);
  EXPECT_EQ(ledger_.room(), 1U);
  queued({1, 0}, 7);
  EXPECT_EQ(ledger_.room(), 0U);
}

TEST_F(LedgerAwaitingTest, OfAnotherMakingOfTheStreamWaitForNothing) {
  ledger_.await_recovery(running({1, 0}, 7).ticket);
  ledger_.start_over();
  queued({2, 0}, 7);
  EXPECT_EQ(started(), (Ids{{2, 0}}));
}

TEST_F(LedgerAwaitingTest, DoNotWaitForAHeadThatIsAPeers) {
  const Ticket head = running({1, 0}, 7).ticket;
  queued({2, 0}, 7);
  EXPECT_TRUE(ledger_.lost(head, 1));
  ledger_.await_recovery(head);
  EXPECT_EQ(started(), (Ids{{2, 0}}));
}

TEST_F(LedgerAwaitingTest, HoldNobodyBackWhereThereIsNone) {
  ledger_.await_recovery(running({1, 0}).ticket);
  EXPECT_TRUE(is_orphan({1, 0}));
  EXPECT_EQ(ledger_.next_expiry(), TimePoint::max());
}

}  // namespace
}  // namespace millrace::detail

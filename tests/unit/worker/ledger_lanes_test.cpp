#include "support/sleeping.hpp"
#include "support/wait_until.hpp"
#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

class LedgerLanesTest : public LedgerTest {
 protected:
  std::optional<StreamId> next() {
    const auto work = ledger_.next(clock_.now());
    return work ? std::optional{work->ticket.id} : std::nullopt;
  }
  void finish(StreamId id) { ledger_.finish({.id = id}, clock_.now()); }
};

TEST_F(LedgerLanesTest, StartEntriesWithoutALaneInTheOrderInWhichTheyCame) {
  for (const std::uint64_t i : {3U, 1U, 2U}) queued({i, 0});
  EXPECT_EQ(started(), (Ids{{3, 0}, {1, 0}, {2, 0}}));
}

TEST_F(LedgerLanesTest, RunOneEntryOfALaneAtATime) {
  queued({1, 0}, 7);
  queued({2, 0}, 7);
  queued({3, 0}, 8);
  EXPECT_EQ(started(), (Ids{{1, 0}, {3, 0}}));
  finish({3, 0});
  EXPECT_EQ(started(), Ids{}) << "another lane has ended";
  finish({1, 0});
  EXPECT_EQ(started(), (Ids{{2, 0}}));
}

TEST_F(LedgerLanesTest, StartTheLowestIdOfALaneFirstHoweverTheyCame) {
  queued({5, 0}, 7);
  queued({3, 0}, 7);
  queued({4, 0}, 7);
  EXPECT_EQ(started(), (Ids{{3, 0}}));
  finish({3, 0});
  EXPECT_EQ(started(), (Ids{{4, 0}}));
  finish({4, 0});
  EXPECT_EQ(started(), (Ids{{5, 0}}));
}

TEST_F(LedgerLanesTest, BlockOnlyTheLaneOfAHeadThatRests) {
  queued({1, 0}, 7);
  queued({2, 0}, 7);
  queued({3, 0}, 8);
  queued({4, 0});
  const auto head = ledger_.next(clock_.now());
  ASSERT_EQ(head->ticket.id, (StreamId{1, 0}));
  rest(*head, 1s);
  EXPECT_EQ(started(), (Ids{{3, 0}, {4, 0}}));
  clock_.advance(999ms);
  EXPECT_EQ(next(), std::nullopt);
  clock_.advance(1ms);
  EXPECT_EQ(next(), (StreamId{1, 0})) << "before what came after it";
  EXPECT_EQ(next(), std::nullopt);
  finish({1, 0});
  EXPECT_EQ(next(), (StreamId{2, 0}));
}

TEST_F(LedgerLanesTest, GoOnWhenTheirHeadIsDropped) {
  queued({1, 0}, 7);
  queued({2, 0}, 7);
  const auto head = ledger_.next(clock_.now());
  ASSERT_TRUE(ledger_.drop(head->ticket));
  EXPECT_EQ(next(), (StreamId{2, 0})) << "it ran";

  const Ticket waits = queued({3, 0}, 8);
  queued({4, 0}, 8);
  ASSERT_TRUE(ledger_.drop(waits));
  EXPECT_EQ(next(), (StreamId{4, 0})) << "it waited";
}

TEST_F(LedgerLanesTest, GoOnWhenTheLeaseOfARestingHeadIsLost) {
  queued({1, 0}, 7);
  queued({2, 0}, 7);
  const auto head = ledger_.next(clock_.now());
  rest(*head, 1h);
  ASSERT_EQ(next(), std::nullopt);
  EXPECT_TRUE(ledger_.lost(head->ticket, 1));
  EXPECT_EQ(next(), (StreamId{2, 0}));
  clock_.advance(1h);
  EXPECT_EQ(next(), std::nullopt) << "nothing is left of it";
}

TEST_F(LedgerLanesTest, GoOnWhenTheirHeadFailsIsLeftOrIsGivenToTheServer) {
  for (std::uint64_t i = 1; i <= 4; ++i) queued({i, 0}, 7);
  auto head = ledger_.next(clock_.now());
  ledger_.leave(head->ticket, clock_.now());
  head = ledger_.next(clock_.now());
  ASSERT_EQ(head->ticket.id, (StreamId{2, 0}));
  ledger_.fail({.kind = Settlement::Kind::kBury, .work = *head});
  head = ledger_.next(clock_.now());
  ASSERT_EQ(head->ticket.id, (StreamId{3, 0}));
  AckBatch acks;
  ledger_.finish_into(acks, head->ticket);
  EXPECT_EQ(next(), (StreamId{4, 0}));
}

TEST_F(LedgerLanesTest, LetALowerIdThatComesLateGoBeforeARestingHead) {
  queued({5, 0}, 7);
  const auto work = ledger_.next(clock_.now());
  rest(*work, 1s);
  queued({3, 0}, 7);
  EXPECT_EQ(next(), (StreamId{3, 0}));
  clock_.advance(1s);
  EXPECT_EQ(next(), std::nullopt) << "3-0 runs";
  finish({3, 0});
  EXPECT_EQ(next(), (StreamId{5, 0}));
}

TEST_F(LedgerLanesTest, KeepThePlaceOfAnEntryThatWasPutBack) {
  queued({1, 0}, 7);
  queued({2, 0}, 7);
  const auto head = ledger_.next(clock_.now());
  ledger_.put_back(head->ticket);
  EXPECT_EQ(started(), (Ids{{1, 0}}));
}

TEST_F(LedgerLanesTest, StartAReservedEntryForNobodyButWhoReservedIt) {
  const Ticket mine = reserved({1, 0}, 7);
  queued({2, 0}, 7);
  queued({3, 0});
  EXPECT_EQ(started(), (Ids{{3, 0}})) << "2-0 waits behind the one that is reserved";
  EXPECT_TRUE(ledger_.start(mine, {}));
  finish({1, 0});
  EXPECT_EQ(started(), (Ids{{2, 0}}));
}

TEST_F(LedgerLanesTest, StartAReservedEntryAsSoonAsItsLaneIsFree) {
  const auto head = running({1, 0}, 7);
  const Ticket mine = reserved({2, 0}, 7);
  std::optional<Work> work;
  std::thread starter{[&] { work = ledger_.start(mine, {}); }};
  ledger_.finish(head.ticket, clock_.now());
  starter.join();
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->ticket.id, (StreamId{2, 0}));
}

TEST_F(LedgerLanesTest, StartAReservedEntryNeverOnceAStopCameOrItIsGone) {
  running({1, 0}, 7);
  const Ticket mine = reserved({2, 0}, 7);
  std::stop_source stop;
  std::optional<Work> work;
  std::thread starter{[&] { work = ledger_.start(mine, stop.get_token()); }};
  stop.request_stop();
  starter.join();
  EXPECT_EQ(work, std::nullopt);

  std::thread again{[&] { work = ledger_.start(mine, {}); }};
  ledger_.drop(mine);
  again.join();
  EXPECT_EQ(work, std::nullopt);
}

TEST_F(LedgerLanesTest, GiveReservedEntriesBackAndQueueNoneOfThem) {
  const std::vector<Ticket> mine{reserved({1, 0}, 7), reserved({2, 0}), queued({3, 0}, 7)};
  const Work runs = running({4, 0});
  const auto back = ledger_.withdraw(std::vector{mine[0], mine[1], mine[2], runs.ticket});
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].ticket.id, (StreamId{1, 0}));
  EXPECT_EQ(back[1].ticket.id, (StreamId{2, 0}));
  EXPECT_EQ(ledger_.size(), 2U);
  EXPECT_EQ(started(), (Ids{{3, 0}})) << "its lane is free";
}

/// Threads that wait for work.
class LedgerWaitingTest : public LedgerTest {
 protected:
  ~LedgerWaitingTest() override {
    stop_.request_stop();
    if (waiter_.joinable()) waiter_.join();
  }
  /// Waits on a thread of its own, by the machine's clock.
  void wait_for_next() {
    waiter_ = std::thread{[this] {
      thread_ = gettid();
      const auto work = ledger_.wait_for_next(stop_.get_token(), Clock::system());
      id_ = work ? work->ticket.id : StreamId::max();
      got_ = true;
    }};
    EXPECT_TRUE(test::wait_until([&] { return got_ || (thread_ != 0 && test::sleeps(thread_)); }));
  }
  bool gets(StreamId id) {
    return test::wait_until([&] { return got_.load(); }) && id_ == id;
  }

  std::stop_source stop_;
  std::atomic<pid_t> thread_{0};
  StreamId id_{};
  std::atomic<bool> got_{false};
  std::thread waiter_;
};

TEST_F(LedgerWaitingTest, GetsWhatIsQueued) {
  wait_for_next();
  queued({1, 0});
  EXPECT_TRUE(gets({1, 0}));
}

TEST_F(LedgerWaitingTest, GetsTheNextOfALaneWhenItsHeadHasEnded) {
  const Work head = running({1, 0}, 7);
  queued({2, 0}, 7);
  wait_for_next();
  ledger_.finish(head.ticket, clock_.now());
  EXPECT_TRUE(gets({2, 0}));
}

TEST_F(LedgerWaitingTest, EndsByAStop) {
  wait_for_next();
  stop_.request_stop();
  EXPECT_TRUE(gets(StreamId::max()));
}

TEST_F(LedgerWaitingTest, EndsWhenTheLedgerIsClosed) {
  wait_for_next();
  ledger_.close();
  EXPECT_TRUE(gets(StreamId::max()));
}

TEST_F(LedgerWaitingTest, GetsARestingEntryWhenItIsDue) {
  ledger_.rest(running({1, 0}).ticket, Clock::system().now() + 20ms, {});
  wait_for_next();
  EXPECT_TRUE(gets({1, 0}));
}

TEST_F(LedgerWaitingTest, GetsAnEntryThatRestsFromNowOn) {
  const Work work = running({1, 0});
  wait_for_next();  // with no time to wait until
  ledger_.rest(work.ticket, Clock::system().now() + 1ms, {});
  EXPECT_TRUE(gets({1, 0})) << "although nothing else happens";
}

TEST_F(LedgerWaitingTest, GetsAnEntryThatIsDueBeforeTheOneItWaitsFor) {
  ledger_.rest(running({1, 0}).ticket, Clock::system().now() + 1h, {});
  const Work work = running({2, 0});
  wait_for_next();
  ledger_.rest(work.ticket, Clock::system().now() + 1ms, {});
  EXPECT_TRUE(gets({2, 0}));
}

}  // namespace
}  // namespace millrace::detail

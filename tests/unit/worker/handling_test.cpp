#include "worker/handling.hpp"

#include "support/entries.hpp"
#include "unit/worker/handling_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class HandlingCallTest : public HandlingTest {
 protected:
  bool is_orphan(StreamId id) {
    const Pending pending{id, 1};
    return !parts_.ledger.orphans({&pending, 1}, parts_.clock.now()).empty();
  }
};

TEST_F(HandlingCallTest, HasASuccessWaitForItsAcknowledgement) {
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, fresh()), Result::kSucceeded);
  EXPECT_EQ(due_, (std::vector<TimePoint>{parts_.clock.now() + Ledger::kAckDelay}));
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
  EXPECT_EQ(parts_.counters.succeeded, 1U);
  EXPECT_EQ(parts_.counters.failed, 0U);
}

TEST_F(HandlingCallTest, GivesASuccessToWhoeverAcknowledgesItself) {
  auto handling = this->handling();
  AckBatch done;
  const auto send = [] { ADD_FAILURE() << "it may wait for others"; };
  Handling::Acks acks{done, send};
  EXPECT_EQ(handle(handling, fresh(), &acks), Result::kSucceeded);
  EXPECT_EQ(done.ids, (Ids{{1, 0}}));
  EXPECT_TRUE(due_.empty());
  EXPECT_EQ(parts_.ledger.acks_due_at(), std::nullopt);
}

TEST_F(HandlingCallTest, CountsWhatIsLeftForNoFailure) {
  auto handling = this->handling([](const Delivery&) { return Verdict::leave_pending(); });
  EXPECT_EQ(handle(handling, fresh()), Result::kFailed);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_TRUE(settlements().empty());
  EXPECT_EQ(parts_.counters.failed, 0U);
  EXPECT_EQ(parts_.counters.succeeded, 0U);
  EXPECT_FALSE(is_orphan({1, 0}));
  parts_.clock.advance(30s);
  EXPECT_TRUE(is_orphan({1, 0}));
}

TEST_F(HandlingCallTest, TakesAnExceptionOfAnyKindForAFailure) {
  auto handling = this->handling([](const Delivery& delivery) -> Verdict {
    if (delivery.entry.id() == StreamId{1, 0}) throw std::runtime_error{"no such card"};
    if (delivery.entry.id() == StreamId{2, 0}) throw std::runtime_error{""};
    throw 42;
  });
  for (const std::uint64_t i : {1U, 2U, 3U}) {
    EXPECT_EQ(handle(handling, fresh({i, 0})), Result::kFailed) << i;
  }
  EXPECT_EQ(parts_.counters.failed, 3U);
  EXPECT_EQ(settlements().size(), 3U);
  const auto said = parts_.observer->exceptions();
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[0], "no such card");
  EXPECT_FALSE(said[1].empty());
  EXPECT_FALSE(said[2].empty());
}

TEST_F(HandlingCallTest, GivesTheHandlerTheEntryAndWhoReadIt) {
  std::string said;
  auto handling = this->handling([&](const Delivery& delivery) {
    said = std::string{delivery.stream} + ' ' + std::string{delivery.group} + ' ' +
           std::string{delivery.consumer} + ' ' + delivery.entry.id().to_string() + ' ' +
           std::string{delivery.entry.at("f")};
    return Verdict::ack();
  });
  handle(handling, fresh({7, 1}));
  EXPECT_EQ(said, "s g alice 7-1 v");
}

TEST_F(HandlingCallTest, AsksNobodyAboutANewEntryWhileItsLeaseIsYoung) {
  auto handling = this->handling();
  const Work work = fresh();
  parts_.clock.advance(14'999ms);  // just under half of min_idle
  EXPECT_EQ(handle(handling, work), Result::kSucceeded);
  EXPECT_TRUE(eval_.args.empty());
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingCallTest, AsksWhetherAnEntryIsStillOursWhenItsLeaseIsHalfOver) {
  auto handling = this->handling();
  const Work work = fresh();
  parts_.clock.advance(15s);
  EXPECT_EQ(handle(handling, work), Result::kSucceeded);
  // The count stays: it is that of this start.
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "1", "1", "0"}}));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingCallTest, AsksAgainWhenTheLeaseGrewOldBeforeTheReplyWasRead) {
  auto handling = this->handling();
  when_asked_ = [this](std::size_t times) {
    if (times == 1) parts_.clock.advance(15s);  // the machine is suspended in between
    if (times == 2) answer_ = "*1\r\n*1\r\n:0\r\n";
  };
  EXPECT_EQ(handle(handling, taken_over(3)), Result::kNotOurs);
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "3", "4", "0"},
                                            {"g", "alice", "me", "", "1-0", "4", "4", "0"}}))
      << "its start is counted once";
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.observer->leases_lost(), (Ids{{1, 0}}));
}

TEST_F(HandlingCallTest, StartsOnceTheReplyComesInTime) {
  auto handling = this->handling();
  when_asked_ = [this](std::size_t times) {
    if (times <= 2) parts_.clock.advance(15s);
  };
  EXPECT_EQ(handle(handling, taken_over(3)), Result::kSucceeded);
  EXPECT_EQ(eval_.args.size(), 3U);
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{4}));
}

TEST_F(HandlingCallTest, StartsNothingWhereAStopComesBeforeTheLeaseIsYoung) {
  auto handling = this->handling();
  when_asked_ = [&](std::size_t) {
    parts_.clock.advance(15s);
    handling.drain();
  };
  EXPECT_EQ(handle(handling, taken_over(3)), Result::kNotStarted);
  EXPECT_EQ(eval_.args.size(), 1U);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(HandlingCallTest, StartsNothingUnderANameThatHasNotBeenRenewedForHalfOfMinIdle) {
  auto handling = this->handling();
  parts_.shared.group.renewed(parts_.clock.now(), std::nullopt, std::nullopt);
  parts_.clock.advance(15s);
  answer_ = "*4\r\n*0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n";
  EXPECT_EQ(handle(handling, fresh()), Result::kSucceeded);
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "30000"}})) << "it was renewed";

  when_asked_ = [&](std::size_t) {
    parts_.clock.advance(15s);  // the reply is long in coming
    if (eval_.args.size() == 4) handling.drain();
  };
  parts_.clock.advance(15s);
  EXPECT_EQ(handle(handling, fresh({2, 0})), Result::kNotStarted);
  EXPECT_EQ(eval_.args.size(), 4U);
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingCallTest, CountsTheStartOfAnEntryThatWasTakenOverBeforeItStarts) {
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(3)), Result::kSucceeded);
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "3", "4", "0"}}));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{4}));
}

TEST_F(HandlingCallTest, StartsAnEntryThatWasGivenBackUnstartedForTheFirstTime) {
  auto handling = this->handling();
  handle(handling, taken_over(0));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingCallTest, PutsAStartOffUntilTheReplyHasComeThatCountsItAnew) {
  answer_ = "*1\r\n*1\r\n:3\r\n";
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(2)), Result::kNotStarted);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_TRUE(parts_.ledger.holds({1, 0}));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
  EXPECT_FALSE(parts_.ledger.next(parts_.clock.now()).has_value()) << "not at once";
  parts_.clock.advance(scripts::kAskAgain);
  const auto again = parts_.ledger.next(parts_.clock.now());
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->deliveries, 2U);
}

TEST_F(HandlingCallTest, DoesNotTellAgainOfALeaseThatRanOutWhereAPeerHasDoneWithTheEntry) {
  answer_ = "*1\r\n*1\r\n:4\r\n";
  when_asked_ = [&](std::size_t) {
    parts_.clock.advance(31s);
    EXPECT_EQ(parts_.ledger.expire(parts_.clock.now()).size(), 1U) << "the keeper tells of it";
  };
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(1)), Result::kNotOurs);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
}

TEST_F(HandlingCallTest, DoesNotStartWhatAPeerHas) {
  answer_ = "*1\r\n*1\r\n:0\r\n";
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(1)), Result::kNotOurs);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.leases_lost, 1U);
  EXPECT_EQ(parts_.observer->leases_lost(), (Ids{{1, 0}}));
  EXPECT_TRUE(is_orphan({1, 0})) << "it may come back at any time";
}

TEST_F(HandlingCallTest, HandlesFromMemoryWhatIsNoLongerInTheStream) {
  answer_ = "*1\r\n*1\r\n:2\r\n";
  std::string value;
  auto handling = this->handling([&](const Delivery& delivery) {
    value = delivery.entry.at("f");
    return Verdict::ack();
  });
  EXPECT_EQ(handle(handling, taken_over(2)), Result::kSucceeded);
  EXPECT_EQ(value, "v");
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{3})) << "it is counted here";
  EXPECT_EQ(parts_.ledger.acknowledged(parts_.ledger.take_acks(1), 0), 0U);
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
}

TEST_F(HandlingCallTest, DoesNotStartWhatWasLostWhileItWaitedForItsTurn) {
  auto handling = this->handling();
  const Work work = fresh();
  ASSERT_TRUE(parts_.ledger.lost(work.ticket, 1));
  EXPECT_EQ(handle(handling, work), Result::kNotOurs);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(HandlingCallTest, TellsTheLedgerOfTheStartThatTheServerCounts) {
  Ticket ticket;
  auto handling = this->handling([&](const Delivery&) {
    const auto counts = parts_.ledger.counts_of({&ticket, 1});
    EXPECT_EQ(counts.at(0).second, 4U);
    EXPECT_FALSE(parts_.ledger.lost(ticket, 3)) << "an answer of before the start";
    return Verdict::ack();
  });
  const Work work = taken_over(3);
  ticket = work.ticket;
  EXPECT_EQ(handle(handling, work), Result::kSucceeded);
}

TEST_F(HandlingCallTest, HoldsNothingWhereItCouldNotAsk) {
  eval_throws_ = true;
  auto handling = this->handling();
  EXPECT_THROW(handle(handling, taken_over(1)), IoError);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_TRUE(is_orphan({1, 0}));

  eval_throws_ = false;
  EXPECT_EQ(handle(handling, fresh({2, 0})), Result::kSucceeded) << "the turn was given back";
}

TEST_F(HandlingCallTest, DoesNotStartAnEntryOfAStreamThatIsGone) {
  auto handling = this->handling();
  const Work work = fresh();
  parts_.ledger.start_over();
  EXPECT_EQ(handle(handling, work), Result::kNotOurs);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_TRUE(eval_.args.empty());
}

TEST_F(HandlingCallTest, TellsOfEachCallBeforeAndAfter) {
  class Order : public Observer {
   public:
    std::vector<std::string> order;
    void on_delivery(const Delivery& d) override { add("delivery", d); }
    void on_handler_exception(const Delivery& d, std::string_view) override { add("threw", d); }
    void on_verdict(const Delivery& d, const Verdict& verdict) override {
      add(verdict == Verdict::retry() ? "retry" : "ack", d);
    }

   private:
    void add(const std::string& what, const Delivery& d) {
      order.push_back(what + ' ' + d.entry.id().to_string());
    }
  };
  const auto observer = std::make_shared<Order>();
  const Events events{observer};
  const Shared shared = parts_.with(events);
  Handling handling{shared, Handler{[&](const Delivery&) {
                      observer->order.emplace_back("call");
                      throw 42;
                    }},
                    [](TimePoint) {}};
  handle(handling, fresh());
  EXPECT_EQ(observer->order,
            (std::vector<std::string>{"delivery 1-0", "call", "threw 1-0", "retry 1-0"}));
}

TEST_F(HandlingCallTest, FiresTheStopTokenWhenItIsGivenUpAndNotBefore) {
  Handling* self = nullptr;
  std::vector<bool> stopped;
  auto handling = this->handling([&](const Delivery& delivery) {
    stopped.push_back(delivery.stop.stop_requested());
    self->drain();
    stopped.push_back(delivery.stop.stop_requested());
    self->give_up();
    stopped.push_back(delivery.stop.stop_requested());
    return Verdict::ack();
  });
  self = &handling;
  handle(handling, fresh());
  EXPECT_EQ(stopped, (std::vector<bool>{false, false, true}));
}

TEST_F(HandlingCallTest, CountsTheCallThatEndsWhileItDrainsAndStartsNoOther) {
  Handling* self = nullptr;
  int calls = 0;
  auto handling = this->handling([&](const Delivery& delivery) {
    ++calls;
    if (delivery.entry.id() == StreamId{2, 0}) self->drain();
    return Verdict::ack();
  });
  self = &handling;
  handle(handling, fresh({1, 0}));
  EXPECT_EQ(handling.finished_while_draining(), 0U);
  handle(handling, fresh({2, 0}));
  EXPECT_EQ(handling.finished_while_draining(), 1U);
  EXPECT_EQ(handle(handling, fresh({3, 0})), Result::kNotStarted);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(parts_.ledger.running().empty());
  ASSERT_EQ(parts_.ledger.close().size(), 1U) << "it is given back";
  EXPECT_TRUE(eval_.args.empty()) << "nor is its start counted";
}

}  // namespace
}  // namespace millrace::detail

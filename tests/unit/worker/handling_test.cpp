#include "worker/handling.hpp"

#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using Result = Handling::Result;

class HandlingTest : public ::testing::Test {
 protected:
  using Then = std::function<Verdict(const Delivery&)>;

  Handling handling(Then then = [](const Delivery&) { return Verdict::ack(); }) {
    return Handling{parts_.config,
                    [this, then = std::move(then)](const Delivery& delivery) {
                      attempts_.push_back(delivery.attempt);
                      return then(delivery);
                    },
                    parts_.ledger,
                    parts_.counters,
                    parts_.events,
                    parts_.clock};
  }

  Work fresh(StreamId id = {1, 0}) {
    return {.ticket = parts_.ledger.take(id).value(),
            .entry = Entry{id, fields_},
            .leased_at = parts_.clock.now()};
  }
  Work taken_over(std::uint64_t deliveries, StreamId id = {1, 0}) {
    Work work = fresh(id);
    work.deliveries = deliveries;
    work.reclaimed = true;
    return work;
  }

  /// What stands for the server's script: it writes down what it was asked and answers.
  Reply eval(std::span<const std::string_view> args) {
    asked_.emplace_back(args.begin(), args.end());
    if (eval_throws_) throw IoError{"the connection is lost"};
    return resp(answer_);
  }
  Result handle(Handling& handling, const Work& work) {
    return handling.handle(work,
                           [this](const CallSpec&, const Script&, std::span<const std::string_view>,
                                  std::span<const std::string_view> args) { return eval(args); });
  }

  const std::array<Field, 1> fields_{Field{"f", "v"}};
  Parts parts_;
  std::vector<std::uint64_t> attempts_;
  std::vector<Words> asked_;
  std::string answer_ = "*1\r\n:1\r\n";  // it is still ours
  bool eval_throws_ = false;
};

TEST_F(HandlingTest, LeavesASuccessRunningForItsAcknowledgement) {
  auto handling = this->handling();
  const Work work = fresh();
  EXPECT_EQ(handle(handling, work), Result::kSucceeded);
  EXPECT_EQ(parts_.ledger.running(), (std::vector<StreamId>{{1, 0}}));
  EXPECT_EQ(parts_.counters.succeeded, 1U);
  EXPECT_EQ(parts_.counters.failed, 0U);
}

TEST_F(HandlingTest, LeavesAFailureToComeBackWhenItHasBeenIdle) {
  auto handling = this->handling([](const Delivery&) { return Verdict::retry(); });
  EXPECT_EQ(handle(handling, fresh()), Result::kFailed);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.failed, 1U);
  EXPECT_EQ(parts_.ledger.take_orphan({1, 0}, parts_.clock.now()), std::nullopt);
  parts_.clock.advance(30s);
  EXPECT_TRUE(parts_.ledger.take_orphan({1, 0}, parts_.clock.now()).has_value());
}

TEST_F(HandlingTest, CountsWhatIsLeftForNoFailure) {
  auto handling = this->handling([](const Delivery&) { return Verdict::leave_pending(); });
  EXPECT_EQ(handle(handling, fresh()), Result::kFailed);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.failed, 0U);
  EXPECT_EQ(parts_.counters.succeeded, 0U);
}

TEST_F(HandlingTest, TakesAnExceptionOfAnyKindForAFailure) {
  auto handling = this->handling([](const Delivery& delivery) -> Verdict {
    if (delivery.entry.id() == StreamId{1, 0}) throw std::runtime_error{"no such card"};
    if (delivery.entry.id() == StreamId{2, 0}) throw std::runtime_error{""};
    throw 42;
  });
  for (const std::uint64_t i : {1U, 2U, 3U}) {
    EXPECT_EQ(handle(handling, fresh({i, 0})), Result::kFailed) << i;
  }
  EXPECT_EQ(parts_.counters.failed, 3U);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  const auto said = parts_.observer->exceptions();
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[0], "no such card");
  EXPECT_FALSE(said[1].empty());
  EXPECT_FALSE(said[2].empty());
}

TEST_F(HandlingTest, GivesTheHandlerTheEntryAndWhoReadIt) {
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

TEST_F(HandlingTest, AsksNobodyAboutANewEntryWhileItsLeaseIsYoung) {
  auto handling = this->handling();
  const Work work = fresh();
  parts_.clock.advance(14'999ms);  // just under half of min_idle
  EXPECT_EQ(handle(handling, work), Result::kSucceeded);
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingTest, AsksWhetherAnEntryIsStillOursWhenItsLeaseIsHalfOver) {
  auto handling = this->handling();
  const Work work = fresh();
  parts_.clock.advance(15s);
  EXPECT_EQ(handle(handling, work), Result::kSucceeded);
  // The count stays: it is that of this start.
  EXPECT_EQ(asked_, (std::vector<Words>{{"g", "alice", "0", "1-0", "1", "1"}}));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingTest, CountsTheStartOfAnEntryThatWasTakenOverBeforeItStarts) {
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(3)), Result::kSucceeded);
  EXPECT_EQ(asked_, (std::vector<Words>{{"g", "alice", "0", "1-0", "3", "4"}}));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{4}));
}

TEST_F(HandlingTest, StartsAnEntryThatWasGivenBackUnstartedForTheFirstTime) {
  auto handling = this->handling();
  handle(handling, taken_over(0));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1}));
}

TEST_F(HandlingTest, DoesNotStartWhatAPeerHas) {
  answer_ = "*1\r\n:0\r\n";
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(1)), Result::kNotOurs);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.leases_lost, 1U);
  EXPECT_EQ(parts_.observer->leases_lost(), (std::vector<StreamId>{{1, 0}}));
  EXPECT_TRUE(parts_.ledger.take_orphan({1, 0}, parts_.clock.now()).has_value())
      << "it may come back at any time";
}

TEST_F(HandlingTest, HoldsNothingWhereItCouldNotAsk) {
  eval_throws_ = true;
  auto handling = this->handling();
  EXPECT_THROW(handle(handling, taken_over(1)), IoError);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_TRUE(parts_.ledger.take_orphan({1, 0}, parts_.clock.now()).has_value());

  eval_throws_ = false;
  EXPECT_EQ(handle(handling, fresh({2, 0})), Result::kSucceeded) << "the turn was given back";
}

TEST_F(HandlingTest, DoesNotStartAnEntryOfAStreamThatIsGone) {
  auto handling = this->handling();
  const Work work = fresh();
  parts_.ledger.start_over();
  EXPECT_EQ(handle(handling, work), Result::kNotOurs);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(HandlingTest, TellsOfEachCallBeforeAndAfter) {
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
  Handling handling{parts_.config,
                    [&](const Delivery&) {
                      observer->order.emplace_back("call");
                      throw 42;
                    },
                    parts_.ledger,
                    parts_.counters,
                    events,
                    parts_.clock};
  handle(handling, fresh());
  EXPECT_EQ(observer->order,
            (std::vector<std::string>{"delivery 1-0", "call", "threw 1-0", "retry 1-0"}));
}

TEST_F(HandlingTest, FiresTheStopTokenWhenItIsGivenUpAndNotBefore) {
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

TEST_F(HandlingTest, HandlesFromMemoryWhatWasTrimmedWhileItWaited) {
  answer_ = "*1\r\n:2\r\n";
  auto handling = this->handling();
  const Work work = taken_over(3);
  ASSERT_EQ(handle(handling, work), Result::kSucceeded);
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
  AckBatch acks;
  parts_.ledger.finish_into(acks, work.ticket);
  EXPECT_EQ(acks.maybe_gone, 1U) << "a reaper that drops it meanwhile takes it from nobody";
}

TEST_F(HandlingTest, LeavesWhatWasTrimmedAndFailsToTheReaper) {
  answer_ = "*1\r\n:2\r\n";
  auto handling = this->handling([](const Delivery&) { return Verdict::retry(); });
  EXPECT_EQ(handle(handling, taken_over(1)), Result::kFailed);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.failed, 1U);
}

TEST_F(HandlingTest, CountsTheCallThatEndsWhileItDrainsAndStartsNoOther) {
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
  EXPECT_EQ(handle(handling, fresh({3, 0})), Handling::Result::kNotStarted);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace millrace::detail

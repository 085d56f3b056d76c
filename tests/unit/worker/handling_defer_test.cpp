#include "support/entries.hpp"
#include "support/wait_until.hpp"
#include "unit/worker/handling_fixture.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class HandlingDeferTest : public HandlingTest {
 protected:
  Handling deferring() {
    return this->handling([this](const Delivery& delivery) {
      completion_ = delivery.defer();
      return Verdict::ack();  // is not looked at
    });
  }
  bool is_running() const { return !parts_.ledger.running().empty(); }

  Completion completion_;
};

TEST_F(HandlingDeferTest, HoldsTheEntryUntilSomebodyFinishesTheCall) {
  auto handling = deferring();
  EXPECT_EQ(handle(handling, fresh()), Result::kDeferred);
  EXPECT_TRUE(is_running());
  EXPECT_EQ(parts_.ledger.leases().size(), 1U);
  EXPECT_EQ(parts_.ledger.room(), 15U) << "it takes a place";
  EXPECT_EQ(parts_.counters.succeeded, 0U);
  std::thread{[&] { completion_.ack(); }}.join();
  EXPECT_FALSE(is_running());
  EXPECT_EQ(parts_.ledger.take_acks(1).ids, (Ids{{1, 0}}));
  EXPECT_EQ(parts_.counters.succeeded, 1U);
  EXPECT_EQ(due_.size(), 1U) << "nobody else acknowledges it";
  EXPECT_EQ(parts_.ledger.room(), 16U);
}

TEST_F(HandlingDeferTest, IsAFailureWhereItIsFinishedAsOne) {
  auto handling = deferring();
  handle(handling, taken_over(2, {1, 0}));
  completion_.retry();
  EXPECT_EQ(settlement().value().attempts, 3U);
  handle(handling, fresh({2, 0}));
  completion_.dead_letter("no such card");
  EXPECT_EQ(settlement().value().reason, "no such card");
  handle(handling, fresh({3, 0}));
  completion_.finish(Verdict::leave_pending());
  EXPECT_EQ(parts_.ledger.size(), 2U) << "the two that are to be settled";
}

TEST_F(HandlingDeferTest, LetsNobodyInBeforeALastStartHasEndedAndIsAcknowledged) {
  auto handling = deferring();
  std::atomic<bool> is_acknowledged{false};
  std::thread other{[&] {
    ASSERT_TRUE(test::wait_until([&] { return parts_.ledger.room() == 15; })) << "it has deferred";
    std::thread neighbour{[&] {
      const Company::Pass pass{parts_.company, Company::Pass::Wish::kAny};
      EXPECT_TRUE(is_acknowledged);
    }};
    completion_.ack();
    EXPECT_TRUE(test::wait_until([&] { return parts_.ledger.acks_due_at().has_value(); }));
    is_acknowledged = true;
    parts_.ledger.acknowledged(parts_.ledger.take_acks(1), 10);
    neighbour.join();
  }};
  EXPECT_EQ(handle(handling, taken_over(4)), Result::kDeferred);
  EXPECT_TRUE(is_acknowledged);
  other.join();
}

TEST_F(HandlingDeferTest, IsNotWaitedForByALastStartForLong) {
  auto handling = deferring();
  EXPECT_EQ(handle(handling, taken_over(4)), Result::kDeferred);
  EXPECT_TRUE(is_running()) << "whoever ends it may wait for others";
  const Company::Pass pass{parts_.company, Company::Pass::Wish::kAlone};
  EXPECT_TRUE(pass.is_inside());
}

TEST_F(HandlingDeferTest, CountsTheFirstEndOnly) {
  auto handling = deferring();
  handle(handling, fresh());
  completion_.ack();
  completion_.retry();
  EXPECT_TRUE(settlements().empty());
  EXPECT_EQ(parts_.counters.failed, 0U);
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
}

TEST_F(HandlingDeferTest, TakesACompletionThatIsDestroyedForARetry) {
  auto handling = deferring();
  handle(handling, fresh({1, 0}));
  completion_ = {};
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kPark);
  handle(handling, fresh({2, 0}));
  { const Completion lost = std::move(completion_); }
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kPark);
}

TEST_F(HandlingDeferTest, MovesTheEndWithItsCompletion) {
  auto handling = deferring();
  handle(handling, fresh());
  Completion moved = std::move(completion_);
  completion_.retry();  // NOLINT(bugprone-use-after-move): it does nothing
  EXPECT_TRUE(is_running());
  moved.ack();
  EXPECT_EQ(parts_.counters.succeeded, 1U);
}

TEST_F(HandlingDeferTest, GivesOneCompletionACall) {
  auto handling = this->handling([this](const Delivery& delivery) {
    completion_ = delivery.defer();
    Completion second = delivery.defer();
    second.ack();
    return Verdict::ack();
  });
  EXPECT_EQ(handle(handling, fresh()), Result::kDeferred);
  EXPECT_TRUE(is_running());
  completion_.ack();
  EXPECT_EQ(parts_.counters.succeeded, 1U);
}

TEST_F(HandlingDeferTest, CanBeFinishedBeforeTheHandlerReturns) {
  auto handling = this->handling([](const Delivery& delivery) {
    delivery.defer().ack();
    return Verdict::retry();
  });
  EXPECT_EQ(handle(handling, fresh()), Result::kDeferred);
  EXPECT_EQ(parts_.ledger.take_acks(1).ids, (Ids{{1, 0}}));
  EXPECT_EQ(parts_.ledger.room(), 16U);
  EXPECT_EQ(parts_.counters.failed, 0U);
}

TEST_F(HandlingDeferTest, RetriesACallThatDeferredAndThenThrew) {
  auto handling = this->handling([this](const Delivery& delivery) -> Verdict {
    completion_ = delivery.defer();
    throw std::runtime_error{"no"};
  });
  EXPECT_EQ(handle(handling, fresh()), Result::kDeferred);
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kPark);
  completion_.ack();
  EXPECT_EQ(parts_.counters.succeeded, 0U) << "whoever has the completion comes too late";
  EXPECT_EQ(parts_.observer->exceptions(), (std::vector<std::string>{"no"}));
}

TEST_F(HandlingDeferTest, DoesNothingWhenTheWorkerIsGone) {
  {
    auto handling = deferring();
    handle(handling, fresh());
  }
  completion_.ack();
  EXPECT_TRUE(is_running());
  EXPECT_EQ(parts_.counters.succeeded, 0U);
}

TEST_F(HandlingDeferTest, HasTheWorkerWaitForAnEndThatIsBeingMade) {
  class Slow : public Observer {
   public:
    std::atomic<bool> is_inside{false}, may_go{false};
    void on_verdict(const Delivery&, const Verdict&) override {
      is_inside = true;
      static_cast<void>(test::wait_until([this] { return may_go.load(); }));
    }
  };
  const auto observer = std::make_shared<Slow>();
  const Events events{observer};
  const Shared shared = parts_.with(events);
  std::atomic<bool> is_gone{false};
  std::optional<Handling> handling;
  handling.emplace(shared, Handler{[this](const Delivery& d) { completion_ = d.defer(); }},
                   [](TimePoint) {});
  handle(*handling, fresh());
  std::thread finisher{[&] { completion_.ack(); }};
  ASSERT_TRUE(test::wait_until([&] { return observer->is_inside.load(); }));
  std::thread ender{[&] {
    handling.reset();
    is_gone = true;
  }};
  EXPECT_FALSE(test::wait_until([&] { return is_gone.load(); }, 20ms));
  observer->may_go = true;
  finisher.join();
  ender.join();
  EXPECT_EQ(parts_.counters.succeeded, 1U);
}

TEST_F(HandlingDeferTest, TellsTheVerdictWhenItIsGiven) {
  class Verdicts : public Observer {
   public:
    std::vector<std::string> told;
    void on_verdict(const Delivery& delivery, const Verdict& verdict) override {
      told.push_back(delivery.entry.id().to_string() +
                     (verdict == Verdict::ack() ? " ack" : " other"));
    }
  };
  const auto observer = std::make_shared<Verdicts>();
  const Events events{observer};
  const Shared shared = parts_.with(events);
  Handling handling{shared, Handler{[this](const Delivery& d) { completion_ = d.defer(); }},
                    [](TimePoint) {}};
  handle(handling, fresh());
  EXPECT_TRUE(observer->told.empty());
  completion_.ack();
  EXPECT_EQ(observer->told, (std::vector<std::string>{"1-0 ack"}));
}

TEST_F(HandlingDeferTest, FiresTheTokenOfACallThatIsNotFinished) {
  std::stop_token stop;
  auto handling = this->handling([&](const Delivery& delivery) {
    completion_ = delivery.defer();
    stop = delivery.stop;
    return Verdict::ack();
  });
  handle(handling, fresh());
  EXPECT_FALSE(stop.stop_requested());
  handling.give_up();
  EXPECT_TRUE(stop.stop_requested());
}

TEST_F(HandlingDeferTest, CountsAnEndWhileItDrains) {
  auto handling = deferring();
  handle(handling, fresh());
  handling.drain();
  EXPECT_EQ(handling.finished_while_draining(), 0U);
  completion_.ack();
  EXPECT_EQ(handling.finished_while_draining(), 1U);
}

TEST_F(HandlingDeferTest, DefersSomeOfABatch) {
  auto handling = handling_of_batches([this](std::span<const Delivery> batch) {
    completion_ = batch[1].defer();
    return std::vector<Verdict>(batch.size(), Verdict::ack());
  });
  using enum Handling::Result;
  EXPECT_EQ(handling.handle(std::vector<Work>{fresh({1, 0}), fresh({2, 0}), fresh({3, 0})}, eval_),
            (std::vector<Result>{kSucceeded, kDeferred, kSucceeded}));
  EXPECT_EQ(parts_.ledger.running(), (Ids{{2, 0}}));
}

}  // namespace
}  // namespace millrace::detail

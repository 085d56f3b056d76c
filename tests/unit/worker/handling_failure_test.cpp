#include "support/entries.hpp"
#include "support/sleeping.hpp"
#include "support/wait_until.hpp"
#include "unit/worker/handling_fixture.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class HandlingFailureTest : public HandlingTest {
 protected:
  Handling failing(Verdict verdict = Verdict::retry()) {
    return this->handling([verdict](const Delivery&) { return verdict; });
  }
};

TEST_F(HandlingFailureTest, ParksARetryUntilItIsDue) {
  auto handling = failing(Verdict::retry_after(7s));
  EXPECT_EQ(handle(handling, fresh()), Result::kFailed);
  const auto retry = settlement();
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->kind, Settlement::Kind::kPark);
  EXPECT_EQ(retry->due, parts_.clock.now() + 7s);
  EXPECT_EQ(retry->attempts, 1U);
  EXPECT_EQ(due_, (std::vector<TimePoint>{parts_.clock.now()})) << "somebody is to park it now";
  EXPECT_EQ(parts_.counters.failed, 1U);
  EXPECT_EQ(parts_.counters.retried, 1U);
  EXPECT_EQ(parts_.counters.succeeded, 0U);
}

TEST_F(HandlingFailureTest, HasARetryOfALaneRestInItsPlace) {
  auto handling = failing(Verdict::retry_after(7s));
  EXPECT_EQ(handle(handling, in_lane(work_of({1, 0}, parts_.clock.now()))), Result::kFailed);
  EXPECT_TRUE(settlements().empty());
  EXPECT_EQ(parts_.ledger.next_retry(parts_.clock.now()), parts_.clock.now() + 7s);
  EXPECT_EQ(parts_.counters.retried, 1U);
}

TEST_F(HandlingFailureTest, DoublesThePauseWithEachAttemptUpToMinIdleWithJitter) {
  parts_.config.letters.enabled = false;
  auto handling = failing();
  std::uint64_t id = 1;
  for (const auto& [attempt, longest] :
       {std::pair{1U, 1'000ms}, std::pair{2U, 2'000ms}, std::pair{5U, 16'000ms},
        std::pair{6U, 30'000ms}, std::pair{40U, 30'000ms}, std::pair{4'000U, 30'000ms}}) {
    Milliseconds least = Milliseconds::max();
    Milliseconds most{0};
    for (int i = 0; i < 50; ++i) {
      handle(handling, taken_over(attempt - 1, {id++, 0}));
      const auto pause =
          std::chrono::duration_cast<Milliseconds>(settlement().value().due - parts_.clock.now());
      least = std::min(least, pause);
      most = std::max(most, pause);
    }
    EXPECT_GE(least, longest / 2) << attempt;
    EXPECT_LE(most, longest) << attempt;
    EXPECT_LT(least, most) << "not all at the same time";
  }
}

TEST_F(HandlingFailureTest, BuriesAnEntryAtItsLastFailure) {
  auto handling = failing();
  handle(handling, taken_over(3, {1, 0}));
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kPark) << "the fourth of five";
  handle(handling, taken_over(4, {2, 0}));
  const auto burial = settlement();
  ASSERT_TRUE(burial.has_value());
  EXPECT_EQ(burial->kind, Settlement::Kind::kBury);
  EXPECT_EQ(burial->attempts, 5U);
  EXPECT_EQ(burial->reason, "its handler failed 5 times");
  EXPECT_EQ(burial->work.deliveries, 5U) << "the count that the server has";
  EXPECT_EQ(parts_.counters.retried, 1U);
  EXPECT_EQ(parts_.counters.failed, 2U);
}

TEST_F(HandlingFailureTest, BuriesAnEntryOfALaneToo) {
  auto handling = failing();
  handle(handling, in_lane(detail::taken_over({1, 0}, 4, parts_.clock.now())));
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kBury);
}

TEST_F(HandlingFailureTest, NamesTheLastExceptionInTheReason) {
  auto handling =
      this->handling([](const Delivery&) -> Verdict { throw std::runtime_error{"no such card"}; });
  handle(handling, taken_over(4));
  EXPECT_EQ(settlement().value().reason, "its handler failed 5 times: no such card");
}

TEST_F(HandlingFailureTest, BuriesWithoutAStartWhatWasStartedTooOften) {
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(5)), Result::kFailed);
  EXPECT_TRUE(attempts_.empty());
  EXPECT_TRUE(eval_.args.empty()) << "there is no start to count";
  const auto burial = settlement();
  ASSERT_TRUE(burial.has_value());
  EXPECT_EQ(burial->kind, Settlement::Kind::kBury);
  EXPECT_EQ(burial->attempts, 5U);
  EXPECT_EQ(burial->reason, "its handler was started 5 times and did not succeed");
  EXPECT_EQ(parts_.counters.failed, 0U) << "no call failed";
}

TEST_F(HandlingFailureTest, StartsADeliveryThatIsNewWhateverItsCount) {
  parts_.config.max_deliveries = 1;
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, fresh()), Result::kSucceeded);
}

TEST_F(HandlingFailureTest, BuriesAtOnceWhatCanNeverSucceed) {
  auto handling = failing(Verdict::dead_letter("no such customer"));
  handle(handling, fresh());
  const auto burial = settlement();
  ASSERT_TRUE(burial.has_value());
  EXPECT_EQ(burial->kind, Settlement::Kind::kBury);
  EXPECT_EQ(burial->attempts, 1U);
  EXPECT_EQ(burial->reason, "no such customer");
  EXPECT_EQ(parts_.counters.failed, 1U);
  EXPECT_EQ(parts_.counters.retried, 0U);
}

TEST_F(HandlingFailureTest, TakesAPermanentErrorForTheSame) {
  auto handling = this->handling([](const Delivery& delivery) -> Verdict {
    if (delivery.entry.id() == StreamId{1, 0}) throw PermanentError{"no such customer"};
    throw PermanentError{""};
  });
  handle(handling, fresh({1, 0}));
  EXPECT_EQ(settlement().value().reason, "no such customer");
  handle(handling, fresh({2, 0}));
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kBury);
  EXPECT_EQ(parts_.observer->exceptions(),
            (std::vector<std::string>{"no such customer", "a PermanentError without a text"}));
}

TEST_F(HandlingFailureTest, RetriesForEverWhereThereAreNoDeadLetters) {
  parts_.config.letters.enabled = false;
  auto handling = failing(Verdict::dead_letter("never"));
  EXPECT_EQ(handle(handling, taken_over(900)), Result::kFailed);
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{901}));
  EXPECT_EQ(settlement().value().kind, Settlement::Kind::kPark);
  EXPECT_EQ(parts_.counters.retried, 1U);
}

TEST_F(HandlingFailureTest, DoesNothingAboutAnEntryThatWasLostWhileItsHandlerRan) {
  auto handling = this->handling([&](const Delivery& delivery) {
    parts_.ledger.lost({.id = delivery.entry.id()}, 1);
    EXPECT_TRUE(delivery.stop.stop_requested());
    return Verdict::retry();
  });
  handle(handling, fresh());
  EXPECT_TRUE(settlements().empty());
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(HandlingFailureTest, EndsTheTimeOfACallWhenItIsOver) {
  parts_.config.max_handler_time = 5s;
  auto handling = this->handling([&](const Delivery& delivery) {
    EXPECT_EQ(parts_.ledger.next_expiry(), parts_.clock.now() + 5s);
    parts_.clock.advance(4s);
    EXPECT_TRUE(delivery.extend(3s));
    EXPECT_EQ(parts_.ledger.next_expiry(), parts_.clock.now() + 3s);
    parts_.clock.advance(3s);
    parts_.ledger.expire(parts_.clock.now());
    EXPECT_TRUE(delivery.stop.stop_requested());
    EXPECT_FALSE(delivery.extend(1s));
    return Verdict::ack();
  });
  EXPECT_EQ(handle(handling, fresh()), Result::kSucceeded);
}

/// A thread that is inside the company of handler calls until it is told to leave.
class Neighbour {
 public:
  explicit Neighbour(Company& company)
      : thread_{[this, &company] {
          id_ = gettid();
          const Company::Pass pass{company, Company::Pass::Wish::kAny};
          is_inside_ = true;
          static_cast<void>(test::wait_until([this] { return may_leave_.load(); }));
        }} {}
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() {
    may_leave_ = true;
    thread_.join();
  }
  bool is_inside() {
    return test::wait_until([this] { return is_inside_.load(); });
  }
  bool waits() {
    return test::wait_until([this] { return id_ != 0 && test::sleeps(id_); }) && !is_inside_;
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> is_inside_{false};
  std::atomic<bool> may_leave_{false};
  std::thread thread_;
};

TEST_F(HandlingFailureTest, MakesTheLastStartOfAnEntryAlone) {
  std::optional<Neighbour> neighbour;
  auto handling = this->handling([&](const Delivery&) {
    neighbour.emplace(parts_.company);
    EXPECT_TRUE(neighbour->waits());
    return Verdict::ack();
  });
  EXPECT_EQ(handle(handling, taken_over(4)), Result::kSucceeded);
  EXPECT_TRUE(neighbour->is_inside());
}

TEST_F(HandlingFailureTest, LetsNobodyInBeforeALastStartIsAcknowledged) {
  std::optional<Neighbour> neighbour;
  auto handling = this->handling([&](const Delivery&) {
    neighbour.emplace(parts_.company);
    EXPECT_TRUE(neighbour->waits());
    return Verdict::ack();
  });
  std::thread keeper{[&] {
    ASSERT_TRUE(test::wait_until([&] { return parts_.ledger.acks_due_at().has_value(); }));
    EXPECT_TRUE(neighbour->waits());
    parts_.ledger.acknowledged(parts_.ledger.take_acks(1), 10);
  }};
  EXPECT_EQ(handle(handling, taken_over(4)), Result::kSucceeded);
  EXPECT_TRUE(neighbour->is_inside());
  keeper.join();
}

TEST_F(HandlingFailureTest, HasItsNeighboursAcknowledgedBeforeALastStart) {
  auto handling = this->handling([&](const Delivery& delivery) {
    if (delivery.attempt == 5) {
      EXPECT_FALSE(parts_.ledger.holds({2, 0})) << "if this call ends the process, it was in vain";
    }
    return Verdict::ack();
  });
  handle(handling, fresh({2, 0}));
  std::thread keeper{[&] {
    ASSERT_TRUE(test::wait_until([&] { return parts_.ledger.acks_due_at().has_value(); }));
    parts_.ledger.not_acknowledged(parts_.ledger.take_acks(1));
    ASSERT_TRUE(test::wait_until([&] { return parts_.ledger.acks_due_at().has_value(); }));
    parts_.ledger.acknowledged(parts_.ledger.take_acks(1), 1);
    ASSERT_TRUE(test::wait_until([&] { return parts_.ledger.acks_due_at().has_value(); }));
    parts_.ledger.acknowledged(parts_.ledger.take_acks(1), 10);
  }};
  EXPECT_EQ(handle(handling, taken_over(4)), Result::kSucceeded);
  keeper.join();
}

TEST_F(HandlingFailureTest, HasWhoAcknowledgesItselfDoSoBeforeAndAfterALastStart) {
  auto handling = this->handling();
  AckBatch done;
  std::vector<Ids> sent;
  const auto send = [&] {
    sent.push_back(done.ids);
    parts_.ledger.acknowledged(std::exchange(done, {}), 10);
  };
  Handling::Acks acks{done, send};
  handle(handling, taken_over(3, {2, 0}), &acks);
  EXPECT_TRUE(sent.empty()) << "it was not the last one";
  handle(handling, taken_over(4, {1, 0}), &acks);
  EXPECT_EQ(sent, (std::vector<Ids>{{{2, 0}}, {{1, 0}}}));
}

TEST_F(HandlingFailureTest, KeepsTheResultOfALastStartThatCannotBeAcknowledged) {
  auto handling = this->handling();
  AckBatch done;
  const auto send = [&] {
    if (!done.ids.empty()) throw IoError{"the connection is lost"};
  };
  Handling::Acks acks{done, send};
  const std::vector<Work> works{taken_over(4, {1, 0}), fresh({2, 0})};
  EXPECT_THROW(handling.handle(works, eval_, &acks), IoError);
  EXPECT_TRUE(parts_.ledger.holds({1, 0})) << "it has succeeded";
  EXPECT_FALSE(parts_.ledger.holds({2, 0})) << "it was not started";
}

TEST_F(HandlingFailureTest, MakesOtherStartsInCompany) {
  Neighbour neighbour{parts_.company};
  ASSERT_TRUE(neighbour.is_inside());
  auto handling = this->handling();
  EXPECT_EQ(handle(handling, taken_over(3)), Result::kSucceeded);
  parts_.config.letters.enabled = false;
  EXPECT_EQ(handle(handling, taken_over(4, {2, 0})), Result::kSucceeded) << "none is the last";
}

TEST_F(HandlingFailureTest, PutsOffALastStartThatCannotBeMadeAlone) {
  Company company{Milliseconds{1}};
  const Shared shared = parts_.with(company);
  int calls = 0;
  Handling handling{shared, Handler{[&](const Delivery&) { ++calls; }}, [](TimePoint) {}};
  {
    Neighbour neighbour{company};
    ASSERT_TRUE(neighbour.is_inside());
    EXPECT_EQ(handle(handling, taken_over(4, {1, 0})), Result::kNotStarted);
    EXPECT_EQ(handle(handling, in_lane(detail::taken_over({2, 0}, 4, parts_.clock.now()))),
              Result::kNotStarted);
  }
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(eval_.args.empty()) << "no start is counted";
  const auto put_off = settlement();
  ASSERT_TRUE(put_off.has_value()) << "one without a lane is parked";
  EXPECT_EQ(put_off->work.ticket.id, (StreamId{1, 0}));
  EXPECT_EQ(put_off->kind, Settlement::Kind::kPark);
  EXPECT_EQ(put_off->due, parts_.clock.now() + 1s);
  EXPECT_EQ(parts_.ledger.next_retry(parts_.clock.now()), parts_.clock.now() + 1s)
      << "one of a lane keeps its place";
  EXPECT_EQ(parts_.counters.failed, 0U);
}

}  // namespace
}  // namespace millrace::detail

#include "support/wait_until.hpp"
#include "unit/worker/handling_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
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
using Strings = std::vector<std::string>;

/// Now, as an entry's id has it.
std::uint64_t milliseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::floor<Milliseconds>(now).count());
}

class HandlingTimes : public HandlingTest {
 protected:
  /// A handler that takes so long.
  Handling taking(Milliseconds time, const Verdict& verdict = Verdict::ack()) {
    return this->handling([this, time, verdict](const Delivery&) {
      parts_.clock.advance(time);
      return verdict;
    });
  }
  WorkerStats stats() { return parts_.counters.snapshot(0, 0); }
  /// The bound below which the only time is.
  static double bound_of_the_only_one(const Histogram& histogram) {
    EXPECT_EQ(histogram.count, 1U);
    const auto one = std::find(histogram.counts.begin(), histogram.counts.end(), 1U);
    EXPECT_NE(one, histogram.counts.end());
    return histogram.bounds[static_cast<std::size_t>(one - histogram.counts.begin())].count();
  }
};

TEST_F(HandlingTimes, AreThoseOfEachCallWhateverItsVerdict) {
  auto slow = taking(150ms);
  handle(slow, fresh());
  EXPECT_EQ(bound_of_the_only_one(stats().handler_time), 0.2048);
  EXPECT_EQ(stats().handler_time.sum, 150ms);
  auto failing = taking(50ms, Verdict::dead_letter("no"));
  handle(failing, fresh({2, 0}));
  EXPECT_EQ(stats().handler_time.count, 2U);
  EXPECT_EQ(stats().handler_time.sum, 200ms);
}

TEST_F(HandlingTimes, HaveABatchCountAsOneCall) {
  auto handling = handling_of_batches([this](std::span<const Delivery> batch) {
    parts_.clock.advance(1s);
    return std::vector<Verdict>(batch.size(), Verdict::ack());
  });
  handling.handle(std::vector{fresh({1, 0}), fresh({2, 0})}, eval_);
  EXPECT_EQ(stats().handler_time.count, 1U);
  EXPECT_EQ(stats().handler_time.sum, 1s);
  EXPECT_EQ(stats().age.count, 2U) << "but each entry has its age";
}

TEST_F(HandlingTimes, HaveNothingOfWhatAnObserverTakes) {
  struct Slow : Observer {
    explicit Slow(test::ManualClock& its_clock) : clock{its_clock} {}
    void around_call(std::span<const Delivery>, Call& call) override {
      clock.advance(1h);
      call();
      clock.advance(1h);
    }
    void on_delivery(const Delivery&) override { clock.advance(1h); }
    void on_verdict(const Delivery&, const Verdict&) override { clock.advance(1h); }
    test::ManualClock& clock;
  };
  const Events events{std::make_shared<Slow>(parts_.clock)};
  const Shared shared = parts_.with(events);
  Handling handling{shared, Handler{[&](const Delivery&) { parts_.clock.advance(3ms); }},
                    [](TimePoint) {}};
  handle(handling, fresh());
  EXPECT_EQ(stats().handler_time.sum, 3ms);
}

TEST_F(HandlingTimes, HaveTheAgeOfAnEntryFromItsIdToItsAck) {
  auto handling = this->handling();
  const std::uint64_t id = milliseconds_now() - 3'600'000;
  handle(handling, fresh({id, 0}));
  EXPECT_EQ(bound_of_the_only_one(stats().age), 4'194.304) << "an hour, or a little more";
  EXPECT_GE(stats().age.sum, 1h);
  EXPECT_LT(stats().age.sum, 2h);
}

TEST_F(HandlingTimes, HaveAnAgeOfNothingForWhatIsYetToCome) {
  auto handling = this->handling();
  handle(handling, fresh({milliseconds_now() + 3'600'000, 0}));
  handle(handling, fresh(StreamId::max()));
  EXPECT_EQ(stats().age.counts.front(), 2U);
  EXPECT_EQ(stats().age.sum, 0s);
}

TEST_F(HandlingTimes, HaveNoAgeForWhatIsNotDone) {
  auto handling = taking(1ms, Verdict::retry());
  handle(handling, fresh());
  EXPECT_EQ(stats().age.count, 0U);
}

TEST_F(HandlingTimes, HaveTheLastCompletionOfAnyKind) {
  EXPECT_EQ(stats().last_completion, std::nullopt);
  for (const Verdict& verdict : {Verdict::ack(), Verdict::retry(), Verdict::leave_pending()}) {
    parts_.counters.last_completion.store({});
    const auto before = std::chrono::system_clock::now();
    auto handling = taking(1ms, verdict);
    handle(handling, fresh());
    ASSERT_TRUE(stats().last_completion.has_value());
    EXPECT_GE(*stats().last_completion, before);
    EXPECT_LE(*stats().last_completion, std::chrono::system_clock::now());
    parts_.ledger.start_over();
  }
}

TEST_F(HandlingTimes, CompleteADeferredCallWhenItIsFinished) {
  Completion completion;
  auto handling = this->handling([&](const Delivery& delivery) {
    parts_.clock.advance(2s);
    completion = delivery.defer();
    return Verdict::ack();
  });
  handle(handling, fresh({milliseconds_now(), 0}));
  EXPECT_EQ(stats().handler_time.sum, 2s);
  EXPECT_EQ(stats().last_completion, std::nullopt);
  EXPECT_EQ(stats().age.count, 0U);
  parts_.clock.advance(1h);
  completion.ack();
  EXPECT_EQ(stats().handler_time.count, 1U);
  EXPECT_TRUE(stats().last_completion.has_value());
  EXPECT_EQ(stats().age.count, 1U);
  EXPECT_EQ(parts_.counters.progress.load(), parts_.clock.now());
}

TEST_F(HandlingTimes, AreNotMeasuredWithoutMetrics) {
  parts_.config.metrics = false;
  auto handling = taking(150ms);
  handle(handling, fresh());
  EXPECT_EQ(stats().handler_time.count, 0U);
  EXPECT_EQ(stats().age.count, 0U);
  EXPECT_EQ(stats().last_completion, std::nullopt);
  EXPECT_EQ(stats().succeeded, 1U) << "counters are kept";
  EXPECT_EQ(parts_.counters.progress.load(), parts_.clock.now()) << "and liveness goes by this";
}

TEST_F(HandlingTimes, ShowProgressAtTheStartOfACallAsWell) {
  TimePoint at_start{};
  auto handling = this->handling([&](const Delivery&) {
    at_start = parts_.counters.progress.load();
    return Verdict::ack();
  });
  handle(handling, fresh());
  EXPECT_EQ(at_start, parts_.clock.now());
}

/// An observer whose hook around calls does what a test says, and that writes down what it hears.
class Hooked : public Observer {
 public:
  using Hook = std::function<void(std::span<const Delivery>, Call&)>;

  explicit Hooked(Hook hook) : hook_{std::move(hook)} {}

  void around_call(std::span<const Delivery> deliveries, Call& call) override {
    heard.emplace_back("in");
    hook_(deliveries, call);
    heard.emplace_back("out");
  }
  void on_delivery(const Delivery& /*delivery*/) override { heard.emplace_back("delivery"); }
  void on_handler_exception(const Delivery& /*delivery*/, std::string_view what) override {
    heard.emplace_back(what);
  }
  void on_verdict(const Delivery& /*delivery*/, const Verdict& /*verdict*/) override {
    heard.emplace_back("verdict");
  }

  Strings heard;

 private:
  Hook hook_;
};

class HandlingHook : public HandlingTest {
 protected:
  /// What comes of an entry whose call goes through this hook.
  Result handle_through(
      Hooked::Hook hook, Then then = [](const Delivery&) { return Verdict::ack(); }) {
    observer_ = std::make_shared<Hooked>(std::move(hook));
    const Events events{observer_};
    const Shared shared = parts_.with(events);
    Handling handling{shared, Handler{[&](const Delivery& delivery) {
                        ++calls_;
                        thread_ = std::this_thread::get_id();
                        observer_->heard.emplace_back("handler");
                        return then(delivery);
                      }},
                      [](TimePoint) {}};
    return handle(handling, fresh());
  }
  const Strings& heard() const { return observer_->heard; }

  std::shared_ptr<Hooked> observer_;
  int calls_ = 0;
  std::thread::id thread_;
};

TEST_F(HandlingHook, IsAroundTheHandlerOnItsThread) {
  std::thread::id hook;
  StreamId seen;
  EXPECT_EQ(handle_through([&](std::span<const Delivery> deliveries, Observer::Call& call) {
              hook = std::this_thread::get_id();
              seen = deliveries.front().entry.id();
              call();
            }),
            Result::kSucceeded);
  EXPECT_EQ(heard(), (Strings{"in", "delivery", "handler", "verdict", "out"}));
  EXPECT_EQ(thread_, hook);
  EXPECT_EQ(seen, (StreamId{1, 0}));
}

TEST_F(HandlingHook, ComesToItsEndWhereTheHandlerThrows) {
  EXPECT_EQ(handle_through([](auto, Observer::Call& call) { call(); },
                           [](const Delivery&) -> Verdict { throw std::runtime_error{"no card"}; }),
            Result::kFailed);
  EXPECT_EQ(heard(), (Strings{"in", "delivery", "handler", "no card", "verdict", "out"}));
}

TEST_F(HandlingHook, IsOneForABatch) {
  std::size_t size = 0;
  observer_ = std::make_shared<Hooked>([&](std::span<const Delivery> deliveries, auto& call) {
    size = deliveries.size();
    call();
  });
  const Events events{observer_};
  const Shared shared = parts_.with(events);
  Handling handling{shared, BatchHandler{[](std::span<const Delivery>) { return Verdict::ack(); }},
                    [](TimePoint) {}};
  handling.handle(std::vector{fresh({1, 0}), fresh({2, 0})}, eval_);
  EXPECT_EQ(size, 2U);
  EXPECT_EQ(heard(), (Strings{"in", "delivery", "delivery", "verdict", "verdict", "out"}));
}

TEST_F(HandlingHook, ThatThrowsBeforeTheCallLosesNoCall) {
  EXPECT_EQ(handle_through([](auto, auto&) { throw std::runtime_error{"no tracer"}; }),
            Result::kSucceeded);
  EXPECT_EQ(calls_, 1);
}

TEST_F(HandlingHook, ThatThrowsNoStdExceptionLosesNoCall) {
  EXPECT_EQ(handle_through([](auto, auto&) { throw 42; }), Result::kSucceeded);
  EXPECT_EQ(calls_, 1);
}

TEST_F(HandlingHook, ThatThrowsAfterTheCallChangesNothing) {
  const auto throwing = [](auto, Observer::Call& call) {
    call();
    throw std::runtime_error{"no exporter"};
  };
  EXPECT_EQ(handle_through(throwing), Result::kSucceeded);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(parts_.counters.succeeded, 1U);
}

TEST_F(HandlingHook, ThatForgetsTheCallLosesNoCall) {
  EXPECT_EQ(handle_through([](auto, auto&) {}), Result::kSucceeded);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(heard(), (Strings{"in", "out", "delivery", "handler", "verdict"}));
}

TEST_F(HandlingHook, ThatCallsTwiceCallsOnce) {
  EXPECT_EQ(handle_through([](auto, Observer::Call& call) {
              call();
              call();
            }),
            Result::kSucceeded);
  EXPECT_EQ(calls_, 1);
}

TEST_F(HandlingHook, ThatCallsFromElsewhereHasTheCallMadeOnItsOwnThread) {
  const auto elsewhere = [](auto, Observer::Call& call) { std::thread{[&] { call(); }}.join(); };
  EXPECT_EQ(handle_through(elsewhere), Result::kSucceeded);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(thread_, std::this_thread::get_id());
}

TEST_F(HandlingHook, HearsTheVerdictOfADeferredCallWhenThatIsFinished) {
  Completion completion;
  observer_ = std::make_shared<Hooked>([](auto, Observer::Call& call) { call(); });
  const Events events{observer_};
  const Shared shared = parts_.with(events);
  Handling handling{shared, Handler{[&](const Delivery& delivery) {
                      completion = delivery.defer();
                      return Verdict::ack();
                    }},
                    [](TimePoint) {}};
  EXPECT_EQ(handle(handling, fresh()), Result::kDeferred);
  EXPECT_EQ(heard(), (Strings{"in", "delivery", "out"}));
  completion.ack();
  EXPECT_EQ(heard(), (Strings{"in", "delivery", "out", "verdict"}));
}

}  // namespace
}  // namespace millrace::detail

#include <millrace/consumer_worker.hpp>

#include "support/entries.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace {
namespace {

Verdict leave(const Delivery&) { return Verdict::leave_pending(); }

TEST(Handler, TakesWhatReturnsNothingForASuccess) {
  int calls = 0;
  Handler handler = [&](const Delivery&) { ++calls; };
  EXPECT_EQ(handler({}), Verdict::ack());
  EXPECT_EQ(calls, 1);
}

TEST(Handler, PassesAVerdictOn) {
  Handler retry = [](const Delivery&) { return Verdict::retry(); };
  Handler function = leave;
  Handler pointer = &leave;
  EXPECT_EQ(retry({}), Verdict::retry());
  EXPECT_EQ(function({}), Verdict::leave_pending());
  EXPECT_EQ(pointer({}), Verdict::leave_pending());
}

TEST(Handler, OwnsWhatCanOnlyBeMoved) {
  Handler handler = [owned = std::make_unique<int>(0)](const Delivery&) { ++*owned; };
  Handler moved = std::move(handler);
  EXPECT_EQ(moved({}), Verdict::ack());
  static_assert(!std::is_copy_constructible_v<Handler>);
  static_assert(std::is_nothrow_move_constructible_v<Handler>);
}

TEST(Handler, KeepsTheStateOfWhatItCalls) {
  Handler handler = [calls = 0](const Delivery&) mutable {
    return ++calls < 3 ? Verdict::retry() : Verdict::ack();
  };
  EXPECT_EQ(handler({}), Verdict::retry());
  EXPECT_EQ(handler({}), Verdict::retry());
  EXPECT_EQ(handler({}), Verdict::ack());
}

TEST(Handler, GivesTheDeliveryItself) {
  std::uint64_t attempt = 0;
  Handler handler = [&](const Delivery& delivery) { attempt = delivery.attempt; };
  static_cast<void>(handler({.attempt = 7}));
  EXPECT_EQ(attempt, 7U);
}

TEST(Handler, LetsExceptionsThrough) {
  Handler handler = [](const Delivery&) { throw 42; };
  EXPECT_THROW(static_cast<void>(handler({})), int);
}

TEST(Handler, RefusesAnEmptyFunction) {
  const auto make = [](auto callable) { return Handler{std::move(callable)}; };
  EXPECT_THROW(make(std::function<void(const Delivery&)>{}), InvalidArgument);
  EXPECT_THROW(make(std::function<Verdict(const Delivery&)>{nullptr}), InvalidArgument);
  EXPECT_THROW(make(static_cast<Verdict (*)(const Delivery&)>(nullptr)), InvalidArgument);
  EXPECT_NO_THROW(make(std::function<void(const Delivery&)>{[](const Delivery&) {}}));
}

template <typename F>
constexpr bool kFits = std::is_constructible_v<Handler, F>;

TEST(Handler, FitsNothingThatCouldPassForASuccessByMistake) {
  static_assert(kFits<void (*)(const Delivery&)>);
  static_assert(kFits<Verdict (*)(const Delivery&)>);
  static_assert(kFits<Verdict (*)(Delivery)>, "a copy is as good");
  static_assert(!kFits<bool (*)(const Delivery&)>);
  static_assert(!kFits<int (*)(const Delivery&)>);
  static_assert(!kFits<const Verdict& (*)(const Delivery&)>);
  static_assert(!kFits<std::unique_ptr<Verdict> (*)(const Delivery&)>);
  static_assert(!kFits<void (*)(Delivery&)>, "a handler cannot change its delivery");
  static_assert(!kFits<void (*)()>);
  static_assert(!kFits<void (*)(const Entry&)>);
  static_assert(!kFits<Verdict>);
}

TEST(Delivery, CanBeExtendedAndDeferredInATestOfAHandlerWhereNobodyListens) {
  const Delivery delivery{};
  EXPECT_FALSE(delivery.extend(std::chrono::seconds{1}));
  Completion completion = delivery.defer();
  completion.ack();
  completion.retry();
  Completion{}.dead_letter("nobody reads it");
}

TEST(BatchHandler, GivesOneVerdictForAllOrOneForEach) {
  BatchHandler all = [](std::span<const Delivery>) { return Verdict::retry(); };
  const std::vector<Delivery> three(3);
  EXPECT_EQ(all(three), std::vector<Verdict>(3, Verdict::retry()));
  BatchHandler each = [](std::span<const Delivery>) {
    return std::vector{Verdict::ack(), Verdict::retry()};
  };
  EXPECT_EQ(each(three).size(), 2U);
}

TEST(BatchHandler, RefusesAnEmptyFunction) {
  using Function = std::function<Verdict(std::span<const Delivery>)>;
  EXPECT_THROW(BatchHandler{Function{}}, InvalidArgument);
}

TEST(BatchHandler, FitsNothingThatSaysTooLittle) {
  static_assert(!std::is_constructible_v<BatchHandler, void (*)(std::span<const Delivery>)>);
  static_assert(!std::is_constructible_v<BatchHandler, bool (*)(std::span<const Delivery>)>);
  static_assert(!std::is_constructible_v<BatchHandler, Verdict (*)(const Delivery&)>);
}

TEST(Verdict, KeepsItsDelayAndItsReason) {
  EXPECT_EQ(Verdict::retry_after(std::chrono::seconds{2}).delay(), std::chrono::seconds{2});
  EXPECT_EQ(Verdict::dead_letter("no").reason(), "no");
  EXPECT_NE(Verdict::dead_letter("no"), Verdict::dead_letter("yes"));
  EXPECT_THROW(static_cast<void>(Verdict::retry_after(std::chrono::milliseconds{-1})),
               InvalidArgument);
  EXPECT_NO_THROW(static_cast<void>(Verdict::retry_after(std::chrono::milliseconds{0})));
}

TEST(Verdict, IsWhatItWasMadeAs) {
  EXPECT_EQ(Verdict::ack().kind(), Verdict::Kind::kAck);
  EXPECT_EQ(Verdict::retry().kind(), Verdict::Kind::kRetry);
  EXPECT_EQ(Verdict::leave_pending().kind(), Verdict::Kind::kLeavePending);
  EXPECT_NE(Verdict::ack(), Verdict::retry());
  EXPECT_NE(Verdict::retry(), Verdict::leave_pending());
}

}  // namespace
}  // namespace millrace

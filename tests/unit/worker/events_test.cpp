#include "worker/events.hpp"

#include "support/recording_observer.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace millrace::detail {
namespace {

class Throwing : public Observer {
 public:
  void on_log(LogLevel, std::string_view line) override {
    ++calls;
    if (line == "std") throw std::runtime_error{"an observer's own fault"};
    throw 42;
  }
  int calls = 0;
};

TEST(WorkerEvents, ReachTheObserver) {
  const auto observer = std::make_shared<test::RecordingObserver>();
  const Events events{observer};
  events.log(Observer::LogLevel::kError, "it burns");
  events.tell([](Observer& to) { to.on_lease_lost({1, 0}); });
  ASSERT_EQ(observer->lines().size(), 1U);
  EXPECT_EQ(observer->lines()[0].level, Observer::LogLevel::kError);
  EXPECT_EQ(observer->lines()[0].text, "it burns");
  EXPECT_EQ(observer->leases_lost(), (std::vector<StreamId>{{1, 0}}));
}

TEST(WorkerEvents, AreHarmedByNoObserverThatThrows) {
  const auto observer = std::make_shared<Throwing>();
  const Events events{observer};
  events.log(Observer::LogLevel::kInfo, "std");
  events.log(Observer::LogLevel::kInfo, "something else");
  EXPECT_EQ(observer->calls, 2);
}

TEST(WorkerEvents, NeedNoObserver) {
  const Events events{nullptr};
  bool told = false;
  events.tell([&](Observer&) { told = true; });
  events.log(Observer::LogLevel::kInfo, "to nobody");
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace millrace::detail

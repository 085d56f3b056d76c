#include "worker/events.hpp"

#include <millrace/dead_letters.hpp>

#include "support/recording_observer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace millrace::detail {
namespace {

/// Throws from everything: what a std::exception is, or is not.
class Throwing : public Observer {
 public:
  explicit Throwing(bool an_exception) : an_exception_{an_exception} {}

  void on_log(LogLevel, std::string_view) override { fail(); }
  void on_state(WorkerState, WorkerState) override { fail(); }
  void on_connected(std::string_view) override { fail(); }
  void on_connection_lost(const Error&) override { fail(); }
  void around_call(std::span<const Delivery>, Call&) override { fail(); }
  void on_delivery(const Delivery&) override { fail(); }
  void on_verdict(const Delivery&, const Verdict&) override { fail(); }
  void on_handler_exception(const Delivery&, std::string_view) override { fail(); }
  void on_acknowledged(std::span<const StreamId>, std::size_t) override { fail(); }
  void on_reclaimed(std::span<const StreamId>, std::span<const StreamId>) override { fail(); }
  void on_dead_letter(const DeadLetter&) override { fail(); }
  void on_lease_lost(StreamId) override { fail(); }
  void on_group_lost(const Error&) override { fail(); }
  void on_group_recreated(StreamId) override { fail(); }

  int calls = 0;

 private:
  void fail() {
    ++calls;
    if (an_exception_) throw std::runtime_error{"an observer's own fault"};
    throw 42;
  }
  const bool an_exception_;
};

struct Callback {
  const char* name;
  void (*tell)(const Events&);
};

class WorkerEventsThatThrow
    : public ::testing::TestWithParam<std::tuple<Callback, bool /*a std::exception*/>> {};

TEST_P(WorkerEventsThatThrow, HarmNothing) {
  const auto& [callback, an_exception] = GetParam();
  const auto observer = std::make_shared<Throwing>(an_exception);
  const Events events{observer};
  EXPECT_NO_THROW(callback.tell(events));
  EXPECT_EQ(observer->calls, 1);
}

template <auto kCallback, typename... Args>
void tell_of(const Events& events, Args... args) {
  events.tell([&](Observer& observer) { (observer.*kCallback)(args...); });
}

const Callback kCallbacks[] = {
    {"Log", [](const Events& to) { to.log(Observer::LogLevel::kError, "it burns"); }},
    {"State",
     [](const Events& to) {
       tell_of<&Observer::on_state>(to, WorkerState::kCreated, WorkerState::kStarting);
     }},
    {"Connected", [](const Events& to) { tell_of<&Observer::on_connected>(to, "host:1"); }},
    {"ConnectionLost",
     [](const Events& to) { tell_of<&Observer::on_connection_lost>(to, IoError{"gone"}); }},
    {"AroundCall",
     [](const Events& to) {
       bool called = false;
       to.around({}, [&] { called = true; });
       EXPECT_TRUE(called);
     }},
    {"Delivery", [](const Events& to) { tell_of<&Observer::on_delivery>(to, Delivery{}); }},
    {"Verdict",
     [](const Events& to) { tell_of<&Observer::on_verdict>(to, Delivery{}, Verdict::ack()); }},
    {"HandlerException",
     [](const Events& to) { tell_of<&Observer::on_handler_exception>(to, Delivery{}, "no card"); }},
    {"Acknowledged",
     [](const Events& to) {
       tell_of<&Observer::on_acknowledged>(to, std::span<const StreamId>{}, std::size_t{0});
     }},
    {"Reclaimed",
     [](const Events& to) {
       tell_of<&Observer::on_reclaimed>(to, std::span<const StreamId>{},
                                        std::span<const StreamId>{});
     }},
    {"DeadLetter", [](const Events& to) { tell_of<&Observer::on_dead_letter>(to, DeadLetter{}); }},
    {"LeaseLost",
     [](const Events& to) {
       tell_of<&Observer::on_lease_lost>(to, StreamId{1, 0});
     }},
    {"GroupLost", [](const Events& to) { tell_of<&Observer::on_group_lost>(to, IoError{"gone"}); }},
    {"GroupRecreated",
     [](const Events& to) {
       tell_of<&Observer::on_group_recreated>(to, StreamId{1, 0});
     }},
};

std::string name_of(const ::testing::TestParamInfo<std::tuple<Callback, bool>>& info) {
  return std::string{std::get<0>(info.param).name} +
         (std::get<1>(info.param) ? "AnException" : "SomethingElse");
}

INSTANTIATE_TEST_SUITE_P(, WorkerEventsThatThrow,
                         ::testing::Combine(::testing::ValuesIn(kCallbacks), ::testing::Bool()),
                         name_of);

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

TEST(WorkerEvents, PassOnWhatTheCallItselfThrowsWhateverTheObserverMakesOfIt) {
  struct Swallowing : Observer {
    void around_call(std::span<const Delivery>, Call& call) override { EXPECT_NO_THROW(call()); }
  };
  const Events events{std::make_shared<Swallowing>()};
  EXPECT_THROW(events.around({}, [] { throw std::bad_alloc{}; }), std::bad_alloc);
  EXPECT_THROW(Events{nullptr}.around({}, [] { throw std::bad_alloc{}; }), std::bad_alloc);
}

TEST(WorkerEvents, NeedNoObserver) {
  const Events events{nullptr};
  bool told = false;
  events.tell([&](Observer&) { told = true; });
  events.log(Observer::LogLevel::kInfo, "to nobody");
  EXPECT_FALSE(told);
  events.around({}, [&] { told = true; });
  EXPECT_TRUE(told) << "a call is made all the same";
}

}  // namespace
}  // namespace millrace::detail

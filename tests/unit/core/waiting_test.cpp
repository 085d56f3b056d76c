#include "core/waiting.hpp"

#include "support/manual_clock.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

/// A thread that waits for an hour, by a clock that the test moves.
template <typename Changed>
class WaitByClock : public ::testing::Test {
 protected:
  ~WaitByClock() override {
    set_done();
    if (waiter_.joinable()) waiter_.join();
  }

  void wait(TimePoint deadline) {
    waiter_ = std::thread{[this, deadline] {
      std::unique_lock lock{mutex_};
      const auto is_done = [this] {
        waits_ = true;
        return done_;
      };
      if constexpr (std::is_same_v<Changed, std::condition_variable>) {
        result_ = wait_by_clock(changed_, lock, deadline, clock_, is_done);
      } else {
        result_ = wait_by_clock(changed_, lock, stop_.get_token(), deadline, clock_, is_done);
      }
      has_result_ = true;
    }};
    ASSERT_TRUE(test::wait_until([&] { return waits_.load(); }));
  }
  void set_done() {
    std::lock_guard lock{mutex_};
    done_ = true;
    changed_.notify_all();
  }
  std::optional<bool> result() {
    if (!test::wait_until([&] { return has_result_.load(); })) return std::nullopt;
    return result_.load();
  }

  test::ManualClock clock_;
  std::stop_source stop_;

 private:
  std::mutex mutex_;
  Changed changed_;
  bool done_ = false;
  std::atomic<bool> waits_{false}, result_{false}, has_result_{false};
  std::thread waiter_;
};

using Kinds = ::testing::Types<std::condition_variable, std::condition_variable_any>;
TYPED_TEST_SUITE(WaitByClock, Kinds);

TYPED_TEST(WaitByClock, SeesThatTheClockHasJumpedAlthoughNobodySaysSo) {
  this->wait(this->clock_.now() + 1h);
  this->clock_.advance(1h);
  EXPECT_EQ(this->result(), false);
}

TYPED_TEST(WaitByClock, EndsWhenItIsDone) {
  this->wait(TimePoint::max());
  this->set_done();
  EXPECT_EQ(this->result(), true);
}

TYPED_TEST(WaitByClock, DoesNotBeginAfterTheDeadline) {
  this->wait(TimePoint::min());
  EXPECT_EQ(this->result(), false);
}

class WaitByClockWithAStop : public WaitByClock<std::condition_variable_any> {};

TEST_F(WaitByClockWithAStop, EndsAtTheStop) {
  wait(TimePoint::max());
  stop_.request_stop();
  EXPECT_EQ(result(), false);
}

}  // namespace
}  // namespace millrace::detail

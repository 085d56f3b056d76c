#pragma once

#include "core/clock.hpp"

#include <atomic>

namespace millrace::test {

/// A clock that stands still until a test moves it. From any thread.
class ManualClock final : public detail::Clock {
 public:
  detail::TimePoint now() const noexcept override {
    return detail::TimePoint{detail::TimePoint::duration{ticks_.load()}};
  }

  void advance(detail::TimePoint::duration by) noexcept { ticks_ += by.count(); }
  void advance_to(detail::TimePoint time) noexcept {
    if (time > now()) ticks_ = time.time_since_epoch().count();
  }

 private:
  // Not at zero, so that a time before the start can be said.
  std::atomic<detail::TimePoint::rep> ticks_{
      std::chrono::nanoseconds{std::chrono::hours{1}}.count()};
};

}  // namespace millrace::test

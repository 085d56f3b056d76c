#pragma once

#include "core/clock.hpp"

#include <algorithm>

namespace millrace::detail {

/// `span` after `from`, or the end or beginning of time where that is beyond what a TimePoint can
/// say.
constexpr TimePoint after(TimePoint from, Milliseconds span) noexcept {
  if (span < Milliseconds{0}) {
    const auto before = std::min(from.time_since_epoch(), TimePoint::duration{0});
    const auto room = std::chrono::floor<Milliseconds>(TimePoint::duration::max() + before);
    return span < -room ? TimePoint::min() : from + span;
  }
  const auto room = std::chrono::floor<Milliseconds>(TimePoint::max() - from);
  return span < room ? from + span : TimePoint::max();
}

/// The sum, or the longest there is.
constexpr Milliseconds sum(Milliseconds left, Milliseconds right) noexcept {
  return right < Milliseconds::max() - left ? left + right : Milliseconds::max();
}

/// What is left until `deadline`, rounded up so that nothing fires early; 0 if it has passed.
constexpr Milliseconds left_until(TimePoint deadline, TimePoint now) noexcept {
  if (deadline <= now) return Milliseconds{0};
  // TimePoint::max() cannot be rounded up.
  return std::chrono::floor<Milliseconds>(deadline - now - std::chrono::nanoseconds{1}) +
         Milliseconds{1};
}

}  // namespace millrace::detail

#pragma once

#include "core/clock.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace millrace::detail {

/// A wait looks at the clock at least so often. The wait itself stands still while the machine is
/// suspended, and the clock does not: so what has come due meanwhile is seen so long after the
/// machine goes on, at the latest.
inline constexpr std::chrono::nanoseconds kLongestNap{std::chrono::seconds{1}};

/// Waits until `is_done()`, which is called with the lock held, or the deadline. False if it is not
/// by then.
template <typename Done>
bool wait_by_clock(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                   TimePoint deadline, const Clock& clock, Done&& is_done) {
  while (!is_done()) {
    const TimePoint now = clock.now();
    if (now >= deadline) return false;
    changed.wait_for(lock, std::min(deadline - now, kLongestNap));
  }
  return true;
}

/// The same; a stop ends it as well.
template <typename Done>
bool wait_by_clock(std::condition_variable_any& changed, std::unique_lock<std::mutex>& lock,
                   const std::stop_token& stop, TimePoint deadline, const Clock& clock,
                   Done&& is_done) {
  while (!is_done()) {
    const TimePoint now = clock.now();
    if (now >= deadline || stop.stop_requested()) return false;
    changed.wait_for(lock, stop, std::min(deadline - now, kLongestNap), is_done);
  }
  return true;
}

/// For one that has no use for a stop.
template <typename Done>
bool wait_by_clock(std::condition_variable_any& changed, std::unique_lock<std::mutex>& lock,
                   TimePoint deadline, const Clock& clock, Done&& is_done) {
  return wait_by_clock(changed, lock, std::stop_token{}, deadline, clock, is_done);
}

}  // namespace millrace::detail

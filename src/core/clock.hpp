#pragma once

#include <chrono>

namespace millrace::detail {

using Milliseconds = std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// What an option can ask for at most: longer than anybody waits, and not so long that reckoning
/// with it overflows.
inline constexpr Milliseconds kLongestTime = std::chrono::hours{24 * 3'653};

/// Where time comes from. An input, so that tests need not sleep.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual TimePoint now() const noexcept = 0;

  /// The machine's monotonic clock.
  static const Clock& system() noexcept;
};

}  // namespace millrace::detail

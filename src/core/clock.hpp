#pragma once

#include <chrono>

namespace millrace::detail {

using Milliseconds = std::chrono::milliseconds;

/// What a TimePoint counts: time since the machine was started, with that in which it was
/// suspended, since leases on a server run out meanwhile.
///
/// It has no now(), so that no condition variable takes a TimePoint: those of the standard library
/// wait by a clock that stands still while the machine is suspended. See wait_by_clock().
struct BootTime {
  // NOLINTBEGIN(readability-identifier-naming): names of the standard library
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootTime>;
  static constexpr bool is_steady = true;
  // NOLINTEND(readability-identifier-naming)
};

using TimePoint = BootTime::time_point;

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

  /// The machine's: never set back, and it goes on while the machine is suspended.
  static const Clock& system() noexcept;
};

}  // namespace millrace::detail

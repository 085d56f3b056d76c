#pragma once

#include "core/clock.hpp"

#include <atomic>
#include <chrono>

namespace millrace::test {

/// The machine's clock, which a test has jump as it does when the machine was suspended: waits
/// have stood still meanwhile.
class JumpingClock final : public detail::Clock {
 public:
  detail::TimePoint now() const noexcept override { return system().now() + jumped_.load(); }
  void jump(std::chrono::nanoseconds by) { jumped_ = jumped_.load() + by; }

 private:
  std::atomic<std::chrono::nanoseconds> jumped_{std::chrono::nanoseconds{0}};
};

}  // namespace millrace::test

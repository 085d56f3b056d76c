#include "core/clock.hpp"

#include <ctime>

namespace millrace::detail {
namespace {

/// The clock that goes on while the machine is suspended. One for the whole life of the process:
/// times of two clocks cannot be compared.
clockid_t boot_clock() noexcept {
#ifdef CLOCK_BOOTTIME
  timespec resolution{};
  if (clock_getres(CLOCK_BOOTTIME, &resolution) == 0) return CLOCK_BOOTTIME;
#endif
  return CLOCK_MONOTONIC;  // where there is no other (macOS), this one goes on
}

class SystemClock final : public Clock {
 public:
  TimePoint now() const noexcept override {
    timespec time{};
    clock_gettime(clock_, &time);
    return TimePoint{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
  }

 private:
  const clockid_t clock_ = boot_clock();
};

}  // namespace

const Clock& Clock::system() noexcept {
  static const SystemClock clock;
  return clock;
}

}  // namespace millrace::detail

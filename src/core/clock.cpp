#include "core/clock.hpp"

namespace millrace::detail {
namespace {

class SystemClock final : public Clock {
 public:
  TimePoint now() const noexcept override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& Clock::system() noexcept {
  static const SystemClock clock;
  return clock;
}

}  // namespace millrace::detail

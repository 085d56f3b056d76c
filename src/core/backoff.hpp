#pragma once

#include "core/clock.hpp"

#include <cstdint>
#include <random>

namespace millrace::detail {

/// Pauses between attempts: each drawn from nothing to a bound that doubles (full jitter), so that
/// a thousand clients of a server that comes back do not all come at once.
class Backoff {
 public:
  Backoff(Milliseconds first, Milliseconds most, std::uint64_t seed = std::random_device{}())
      : first_{first}, most_{most}, bound_{first}, random_{seed} {}

  Milliseconds next();

  /// The last attempt succeeded.
  void reset() noexcept { bound_ = first_; }

 private:
  Milliseconds first_;
  Milliseconds most_;
  Milliseconds bound_;
  std::mt19937_64 random_;
};

}  // namespace millrace::detail

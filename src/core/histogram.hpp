#pragma once

#include <millrace/histogram.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace millrace::detail {

/// A Histogram as it is counted: from any thread, without a lock. Its bounds are `First` of
/// Duration, doubled until there are `Bounds` of them. No order between its numbers: a time may be
/// in the counts and not yet in the sum.
template <typename Duration, std::uint64_t First, std::size_t Bounds>
class TimeHistogram {
 public:
  /// What is less than nothing counts as nothing.
  void add(Duration time) noexcept {
    const auto ticks = static_cast<std::uint64_t>(std::max(time, Duration{0}).count());
    counts_[place_of(ticks)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(ticks, std::memory_order_relaxed);
  }

  Histogram snapshot() const {
    Histogram now;
    for (std::size_t i = 0; i < Bounds; ++i) {
      now.bounds.emplace_back(seconds(First << i));
    }
    for (const auto& count : counts_) {
      now.counts.push_back(count.load(std::memory_order_relaxed));
      now.count += now.counts.back();
    }
    now.sum = seconds(sum_.load(std::memory_order_relaxed));
    return now;
  }

 private:
  static std::size_t place_of(std::uint64_t ticks) noexcept {
    if (ticks == 0) return 0;
    // An int in later editions of C++20, the argument's type in earlier ones.
    const auto doublings = static_cast<std::size_t>(std::bit_width((ticks - 1) / First));
    return std::min(doublings, Bounds);
  }
  static Histogram::Seconds seconds(std::uint64_t ticks) {
    // Divided, since 0.001 is no exact number: 3 ms are to be 0.003.
    return Histogram::Seconds{static_cast<double>(ticks) * Duration::period::num /
                              Duration::period::den};
  }

  std::array<std::atomic<std::uint64_t>, Bounds + 1> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

/// Bounds from 100 us to 105 s.
using HandlerTimes = TimeHistogram<std::chrono::nanoseconds, 100'000, 21>;
/// Bounds from 1 ms to 4.7 hours.
using Ages = TimeHistogram<std::chrono::milliseconds, 1, 25>;

}  // namespace millrace::detail

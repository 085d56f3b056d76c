#pragma once

#include <millrace/worker_stats.hpp>

#include "core/clock.hpp"
#include "core/histogram.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace millrace::detail {

/// WorkerStats as they are counted, from any thread. Each stands alone: no order between them.
struct Counters {
  std::atomic<std::uint64_t> delivered{0};
  std::atomic<std::uint64_t> succeeded{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> retried{0};
  std::atomic<std::uint64_t> dead_lettered{0};
  std::atomic<std::uint64_t> reclaimed{0};
  std::atomic<std::uint64_t> released{0};
  std::atomic<std::uint64_t> leases_lost{0};
  std::atomic<std::uint64_t> trimmed{0};
  std::atomic<std::uint64_t> connections{0};

  HandlerTimes handler_time;
  Ages age;
  /// The epoch: none yet.
  std::atomic<std::chrono::system_clock::time_point> last_completion{};
  /// When a handler call last started or ended; for whether the worker is alive, with or without
  /// metrics.
  std::atomic<TimePoint> progress{};

  WorkerStats snapshot(std::size_t in_flight, std::size_t queued_bytes) const;
};

/// Adds without asking for an order.
inline void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace millrace::detail

#include "worker/stats.hpp"

#include <algorithm>
#include <optional>

namespace millrace::detail {

WorkerStats Counters::snapshot(std::size_t in_flight, std::size_t queued_bytes) const {
  const auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  const auto completion = last_completion.load(std::memory_order_relaxed);
  const bool has_completed = completion != std::chrono::system_clock::time_point{};
  return {.delivered = read(delivered),
          .succeeded = read(succeeded),
          .failed = read(failed),
          .retried = read(retried),
          .dead_lettered = read(dead_lettered),
          .reclaimed = read(reclaimed),
          .released = read(released),
          .leases_lost = read(leases_lost),
          .trimmed = read(trimmed),
          .reconnects = std::max<std::uint64_t>(read(connections), 1) - 1,
          .in_flight = in_flight,
          .queued_bytes = queued_bytes,
          .last_completion = has_completed ? std::optional{completion} : std::nullopt,
          .handler_time = handler_time.snapshot(),
          .age = age.snapshot()};
}

}  // namespace millrace::detail

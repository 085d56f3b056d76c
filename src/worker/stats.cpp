#include "worker/stats.hpp"

#include <algorithm>

namespace millrace::detail {

WorkerStats Counters::snapshot(std::size_t in_flight) const {
  const auto read = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {.delivered = read(delivered),
          .succeeded = read(succeeded),
          .failed = read(failed),
          .reclaimed = read(reclaimed),
          .released = read(released),
          .leases_lost = read(leases_lost),
          .trimmed = read(trimmed),
          .reconnects = std::max<std::uint64_t>(read(connections), 1) - 1,
          .in_flight = in_flight};
}

}  // namespace millrace::detail

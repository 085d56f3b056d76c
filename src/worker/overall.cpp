#include "worker/overall.hpp"

#include <algorithm>

namespace millrace::detail {

WorkerState overall_state(std::span<const WorkerState> states) {
  const auto any = [&](WorkerState state) {
    return std::find(states.begin(), states.end(), state) != states.end();
  };
  const auto all = [&](auto&& is) { return std::all_of(states.begin(), states.end(), is); };
  using enum WorkerState;
  if (all(has_ended)) return any(kFailed) ? kFailed : kStopped;
  if (any(kDraining) || any(kStopped)) return kDraining;
  if (any(kDegraded) || any(kFailed)) return kDegraded;
  if (all([](WorkerState state) { return state == kCreated; })) return kCreated;
  if (any(kStarting) || any(kCreated)) return kStarting;
  return any(kPaused) ? kPaused : kRunning;
}

void add(WorkerStats& sum, const WorkerStats& one) {
  // By name, so that a number that is new does not compile before it is added here.
  auto& [delivered, succeeded, failed, retried, dead_lettered, reclaimed, released, leases_lost,
         trimmed, reconnects, in_flight, queued_bytes] = sum;
  delivered += one.delivered;
  succeeded += one.succeeded;
  failed += one.failed;
  retried += one.retried;
  dead_lettered += one.dead_lettered;
  reclaimed += one.reclaimed;
  released += one.released;
  leases_lost += one.leases_lost;
  trimmed += one.trimmed;
  reconnects += one.reconnects;
  in_flight += one.in_flight;
  queued_bytes += one.queued_bytes;
}

}  // namespace millrace::detail

#include "worker/overall.hpp"

#include <algorithm>

namespace millrace::detail {
namespace {

/// All of the same bounds, or empty.
void add(Histogram& sum, const Histogram& one) {
  if (sum.counts.empty()) {
    sum = one;
    return;
  }
  for (std::size_t i = 0; i < one.counts.size(); ++i) sum.counts[i] += one.counts[i];
  sum.sum += one.sum;
  sum.count += one.count;
}

}  // namespace

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
         trimmed, reconnects, in_flight, queued_bytes, last_completion, handler_time, age, state,
         stream, group, consumer] = sum;
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
  last_completion = std::max(last_completion, one.last_completion);
  add(handler_time, one.handler_time);
  add(age, one.age);
  stream = one.stream;
  group = one.group;
}

}  // namespace millrace::detail

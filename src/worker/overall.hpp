#pragma once

#include <millrace/consumer_worker.hpp>

#include <span>

namespace millrace::detail {

/// True for the states that nothing follows.
constexpr bool has_ended(WorkerState state) noexcept {
  return state == WorkerState::kStopped || state == WorkerState::kFailed;
}

/// What a group of workers in these states is in: see WorkerGroup::state(). Of none, kStopped.
WorkerState overall_state(std::span<const WorkerState> states);

/// Adds the numbers of one worker. The sum has its stream and group, and no state and consumer.
void add(WorkerStats& sum, const WorkerStats& one);

}  // namespace millrace::detail

#pragma once

#include <millrace/error.hpp>
#include <millrace/observer.hpp>

#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "worker/events.hpp"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace millrace::detail {

/// Where a worker is in its life. Safe from any thread.
///
/// Invariant: kCreated -> kStarting -> {kRunning, kPaused, kDegraded} in any order -> kDraining ->
/// kStopped or kFailed, forwards only; kFailed from anywhere but kStopped. The observer is told of
/// each change in their order, by one of the threads that make them.
class Status {
 public:
  explicit Status(const Events& events) : events_{events} {}

  WorkerState state() const;
  std::optional<Error> failure() const;

  /// False, and nothing changes, where the invariant does not allow it.
  bool move_to(WorkerState next) { return change(next, nullptr); }

  /// What a worker does beside reading.
  enum class Part : std::uint8_t { kKeeping, kReaping };
  /// While this is refused, a worker that runs is shown as degraded, although it reads.
  void set_hampered(Part part, bool hampered);

  /// To kFailed, for this reason.
  bool fail(const Error& error) { return change(WorkerState::kFailed, &error); }

  /// Waits until the state is one of which `wanted` is true; false if that took too long.
  bool wait_for(FunctionRef<bool(WorkerState)> wanted, TimePoint deadline,
                const Clock& clock) const;

 private:
  struct Change {
    WorkerState from{};
    WorkerState to{};
  };

  bool change(WorkerState next, const Error* failure);
  WorkerState shown(WorkerState reader) const;  // with mutex_ held, as the next
  void go_to(WorkerState next);
  void tell();

  const Events& events_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  WorkerState state_ = WorkerState::kCreated;
  WorkerState reader_ = WorkerState::kCreated;  // What it was last moved to, hampered or not.
  std::array<bool, 2> hampered_{};              // Of each part.
  std::optional<Error> failure_{};
  std::deque<Change> untold_;
  bool telling_ = false;
};

}  // namespace millrace::detail

#include "worker/status.hpp"

namespace millrace::detail {
namespace {

int stage(WorkerState state) {
  switch (state) {
    case WorkerState::kCreated:
      return 0;
    case WorkerState::kStarting:
      return 1;
    case WorkerState::kRunning:
    case WorkerState::kPaused:
    case WorkerState::kDegraded:
      return 2;
    case WorkerState::kDraining:
      return 3;
    case WorkerState::kStopped:
    case WorkerState::kFailed:
      break;
  }
  return 4;
}

bool allowed(WorkerState from, WorkerState to) {
  if (from == to) return false;
  return stage(from) < stage(to) || (stage(from) == 2 && stage(to) == 2);
}

}  // namespace

WorkerState Status::state() const {
  std::lock_guard lock{mutex_};
  return state_;
}

std::optional<Error> Status::failure() const {
  std::lock_guard lock{mutex_};
  return failure_;
}

bool Status::change(WorkerState next, const Error* failure) {
  WorkerState from;
  {
    std::lock_guard lock{mutex_};
    if (!allowed(state_, next)) return false;
    from = state_;
    state_ = next;
    if (failure != nullptr) failure_ = *failure;
    changed_.notify_all();
  }
  events_.tell([&](Observer& observer) { observer.on_state(from, next); });
  return true;
}

bool Status::wait_for(FunctionRef<bool(WorkerState)> wanted, TimePoint deadline) const {
  std::unique_lock lock{mutex_};
  return changed_.wait_until(lock, deadline, [&] { return wanted(state_); });
}

}  // namespace millrace::detail

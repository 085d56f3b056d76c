#include "worker/status.hpp"

#include "core/waiting.hpp"

#include <utility>

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
  {
    std::lock_guard lock{mutex_};
    if (stage(state_) <= stage(next)) reader_ = next;
    next = shown(next);
    if (!allowed(state_, next)) return false;
    if (failure != nullptr) failure_ = *failure;
    go_to(next);
  }
  tell();
  return true;
}

void Status::set_hampered(Part part, bool hampered) {
  {
    std::lock_guard lock{mutex_};
    hampered_.at(static_cast<std::size_t>(part)) = hampered;
    const WorkerState next = shown(reader_);
    if (stage(state_) != 2 || !allowed(state_, next)) return;
    go_to(next);
  }
  tell();
}

WorkerState Status::shown(WorkerState reader) const {
  const bool is_hampered = hampered_[0] || hampered_[1];
  return reader == WorkerState::kRunning && is_hampered ? WorkerState::kDegraded : reader;
}

void Status::go_to(WorkerState next) {
  untold_.push_back({.from = state_, .to = next});
  state_ = next;
  changed_.notify_all();
}

void Status::tell() {
  // One thread at a time, or two changes could be told the wrong way round.
  for (bool telling = false;; telling = true) {
    Change change;
    {
      std::lock_guard lock{mutex_};
      if (!telling && std::exchange(telling_, true)) return;
      if (untold_.empty()) {
        telling_ = false;
        return;
      }
      change = untold_.front();
      untold_.pop_front();
    }
    events_.tell([&](Observer& observer) { observer.on_state(change.from, change.to); });
  }
}

bool Status::wait_for(FunctionRef<bool(WorkerState)> wanted, TimePoint deadline,
                      const Clock& clock) const {
  std::unique_lock lock{mutex_};
  return wait_by_clock(changed_, lock, deadline, clock, [&] { return wanted(state_); });
}

}  // namespace millrace::detail

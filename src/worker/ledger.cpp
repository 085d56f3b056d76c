#include "worker/ledger.hpp"

#include <algorithm>

namespace millrace::detail {

std::optional<Ticket> Ledger::take(StreamId id) {
  std::lock_guard lock{mutex_};
  if (!held_.try_emplace(id, State::kQueued).second) return std::nullopt;
  return Ticket{id, making_};
}

bool Ledger::start(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (ticket.making != making_) return false;
  const auto found = held_.find(ticket.id);
  if (found == held_.end() || found->second != State::kQueued) return false;
  found->second = State::kRunning;
  return true;
}

std::optional<TimePoint> Ledger::finish(const Ticket& ticket, TimePoint now) {
  std::lock_guard lock{mutex_};
  if (ticket.making != making_) return std::nullopt;
  const auto found = held_.find(ticket.id);
  if (found == held_.end() || found->second != State::kRunning) return std::nullopt;
  found->second = State::kDone;
  waiting_.push_back({ticket.id, now});
  if (waiting_.size() == 1) return now + kAckDelay;
  if (waiting_.size() == kAckBatch) return now;
  return std::nullopt;
}

void Ledger::finish_into(AckBatch& acks, const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (ticket.making != making_) return;
  const auto found = held_.find(ticket.id);
  if (found == held_.end() || found->second != State::kRunning) return;
  found->second = State::kAcking;
  if (acks.making != making_) acks = {.making = making_};
  acks.ids.push_back(ticket.id);
}

void Ledger::give_up(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (ticket.making != making_) return;
  const auto found = held_.find(ticket.id);
  if (found == held_.end()) return;
  if (found->second == State::kDone) {
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.id == ticket.id; });
  }
  held_.erase(found);
}

AckBatch Ledger::take_acks(std::size_t limit) {
  std::lock_guard lock{mutex_};
  AckBatch acks{.making = making_};
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, waiting_.size()));
  acks.ids.reserve(std::min(limit, waiting_.size()));
  for (auto at = waiting_.begin(); at != end; ++at) {
    held_[at->id] = State::kAcking;
    acks.ids.push_back(at->id);
  }
  waiting_.erase(waiting_.begin(), end);
  return acks;
}

void Ledger::settle(const AckBatch& acks, bool acknowledged) {
  if (acks.ids.empty()) return;
  std::lock_guard lock{mutex_};
  if (acks.making != making_) return;
  acks_failing_ = !acknowledged;
  std::vector<Waiting> again;
  for (const StreamId id : acks.ids) {
    const auto found = held_.find(id);
    if (found == held_.end() || found->second != State::kAcking) continue;
    if (acknowledged) {
      held_.erase(found);
    } else {
      found->second = State::kDone;
      again.push_back({id, TimePoint::min()});  // it has waited long enough already
    }
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
}

std::optional<TimePoint> Ledger::acks_due_at() const {
  std::lock_guard lock{mutex_};
  if (waiting_.empty()) return std::nullopt;
  if (waiting_.size() >= kAckBatch) return TimePoint::min();
  return waiting_.front().since + kAckDelay;
}

bool Ledger::acks_failing() const {
  std::lock_guard lock{mutex_};
  return acks_failing_;
}

void Ledger::start_over() {
  std::lock_guard lock{mutex_};
  ++making_;
  held_.clear();
  waiting_.clear();
  acks_failing_ = false;
}

std::vector<StreamId> Ledger::running() const {
  std::lock_guard lock{mutex_};
  std::vector<StreamId> ids;
  for (const auto& [id, state] : held_) {
    if (state == State::kRunning) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::size_t Ledger::size() const {
  std::lock_guard lock{mutex_};
  return held_.size();
}

}  // namespace millrace::detail

#include "worker/ledger.hpp"

#include <algorithm>

namespace millrace::detail {

std::optional<Ticket> Ledger::hold(StreamId id) {
  if (!held_.try_emplace(id).second) return std::nullopt;
  return Ticket{id, making_};
}

Ledger::Held* Ledger::find(const Ticket& ticket, State state) {
  if (ticket.making != making_) return nullptr;
  const auto found = held_.find(ticket.id);
  return found != held_.end() && found->second.state == state ? &found->second : nullptr;
}

std::optional<Ticket> Ledger::take(StreamId id) {
  std::lock_guard lock{mutex_};
  return hold(id);
}

std::optional<Ticket> Ledger::take_orphan(StreamId id, TimePoint now) {
  std::lock_guard lock{mutex_};
  forget_left(now);
  if (left_.contains(id)) return std::nullopt;
  return hold(id);
}

bool Ledger::start(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kQueued);
  if (held == nullptr) return false;
  held->state = State::kRunning;
  return true;
}

std::optional<TimePoint> Ledger::finish(const Ticket& ticket, TimePoint now) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return std::nullopt;
  held->state = State::kDone;
  waiting_.push_back({ticket.id, now});
  if (waiting_.size() == 1) return now + kAckDelay;
  if (waiting_.size() == kAckBatch) return now;
  return std::nullopt;
}

void Ledger::finish_into(AckBatch& acks, const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  if (acks.making != making_) acks = {.making = making_};
  start_acking(acks, ticket.id, *held);
}

void Ledger::start_acking(AckBatch& acks, StreamId id, Held& held) {
  held.state = State::kAcking;
  acks.ids.push_back(id);
  if (held.maybe_gone) ++acks.maybe_gone;
}

void Ledger::give_up(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (ticket.making != making_) return;
  const auto found = held_.find(ticket.id);
  if (found == held_.end()) return;
  if (found->second.state == State::kDone) {
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.id == ticket.id; });
  }
  held_.erase(found);
}

void Ledger::leave(const Ticket& ticket, TimePoint now, Milliseconds min_idle) {
  std::lock_guard lock{mutex_};
  if (find(ticket, State::kRunning) == nullptr) return;
  held_.erase(ticket.id);
  forget_left(now);
  left_.insert_or_assign(ticket.id, now + min_idle);
  left_in_order_.push_back({ticket.id, now + min_idle});
}

void Ledger::forget_left(TimePoint now) {
  for (; !left_in_order_.empty() && left_in_order_.front().until <= now;
       left_in_order_.pop_front()) {
    const auto left = left_.find(left_in_order_.front().id);
    if (left != left_.end() && left->second <= now) left_.erase(left);
  }
}

void Ledger::note_trimmed(std::span<const StreamId> ids) {
  std::lock_guard lock{mutex_};
  for (const StreamId id : ids) {
    if (const auto found = held_.find(id); found != held_.end()) found->second.maybe_gone = true;
  }
}

AckBatch Ledger::take_acks(std::size_t limit) {
  std::lock_guard lock{mutex_};
  AckBatch acks{.making = making_};
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, waiting_.size()));
  acks.ids.reserve(std::min(limit, waiting_.size()));
  for (auto at = waiting_.begin(); at != end; ++at) {
    start_acking(acks, at->id, held_[at->id]);
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
    if (found == held_.end() || found->second.state != State::kAcking) continue;
    if (acknowledged) {
      held_.erase(found);
    } else {
      found->second = {.state = State::kDone, .maybe_gone = true};
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
  left_.clear();
  left_in_order_.clear();
  acks_failing_ = false;
}

std::vector<StreamId> Ledger::running() const {
  std::lock_guard lock{mutex_};
  std::vector<StreamId> ids;
  for (const auto& [id, held] : held_) {
    if (held.state == State::kRunning) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::size_t Ledger::size() const {
  std::lock_guard lock{mutex_};
  return held_.size();
}

}  // namespace millrace::detail

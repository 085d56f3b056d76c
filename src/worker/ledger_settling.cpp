#include "worker/ledger.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {

std::vector<Settlement> Ledger::take_settlements(std::size_t limit) {
  std::lock_guard lock{mutex_};
  std::vector<Settlement> some;
  while (!settlements_.empty() && some.size() < limit) {
    some.push_back(std::move(settlements_.front()));
    settlements_.pop_front();
    if (const Held* held = find(some.back().work.ticket, State::kSettling)) {
      some.back().work = held->work;  // its count, and its lease
    }
  }
  return some;
}

void Ledger::settled(const Settlement& settlement, bool ours) {
  std::lock_guard lock{mutex_};
  const Ticket& ticket = settlement.work.ticket;
  if (settlement.trimmed) trimmed_.erase(ticket.id);
  const Held* const held = find(ticket, State::kSettling);
  if (held == nullptr) return;
  // It was asked for with the count of before a read brought it again.
  if (!ours && resets_.contains(ticket.id)) return settlements_.push_back(settlement);
  if (ours && settlement.kind == Settlement::Kind::kPark) {
    parked_[ticket.id] = {.deliveries = held->work.deliveries,
                          .due = settlement.due,
                          .first_failed = held->work.first_failed};
    parked_by_due_.insert({settlement.due, ticket.id});
  }
  erase(held_.find(ticket.id));
}

void Ledger::unsettled(Settlement&& settlement) {
  std::lock_guard lock{mutex_};
  if (settlement.work.ticket.making != making_) return;
  if (!settlement.trimmed && find(settlement.work.ticket, State::kSettling) == nullptr) return;
  settlements_.push_back(std::move(settlement));
}

std::size_t Ledger::settlements() const {
  std::lock_guard lock{mutex_};
  return settlements_.size();
}

void Ledger::rest_in_memory(const Settlement& settlement) {
  std::lock_guard lock{mutex_};
  Held* const held = find(settlement.work.ticket, State::kSettling);
  if (held == nullptr) return;
  held->state = State::kResting;
  held->maybe_gone = true;
  held->work.reclaimed = true;
  held->until = settlement.due;
  resting_.insert({settlement.due, settlement.work.ticket.id});
  if (held->work.lane) lanes_[*held->work.lane].entries.insert(settlement.work.ticket.id);
  changed_.notify_all();
}

bool Ledger::add_settlement(Settlement&& settlement) {
  std::lock_guard lock{mutex_};
  if (!trimmed_.insert(settlement.work.ticket.id).second) return false;
  settlement.work.ticket.making = making_;
  settlements_.push_back(std::move(settlement));
  return true;
}

// --------------------------------------------------------------------- brought again by a read

bool Ledger::waits_parked(const Work& work) const {
  const auto parked = parked_.find(work.ticket.id);
  if (parked == parked_.end()) return false;
  if (!work.reclaimed) return true;  // it is taken by its id, when its count is right again
  // With another count it has been a peer's.
  return work.deliveries == parked->second.deliveries && parked->second.due > work.waits_since;
}

void Ledger::note_reset(StreamId id, const Held* held) {
  // What is done may have been acknowledged, and this is another delivery.
  if (held != nullptr && held->state >= State::kDone) return;
  const std::uint64_t deliveries =
      held == nullptr ? parked_.at(id).deliveries : held->work.deliveries;
  if (held == nullptr || deliveries > 1) resets_[id] = deliveries;
}

std::vector<std::pair<Pending, TimePoint>> Ledger::resets(std::size_t limit) const {
  std::lock_guard lock{mutex_};
  std::vector<std::pair<Pending, TimePoint>> resets;
  for (const auto& [id, deliveries] : resets_) {
    if (resets.size() == limit) break;
    const auto held = held_.find(id);
    const bool is_held = held != held_.end();
    if (is_held && held->second.starting) continue;  // its count is what comes of that
    const auto parked = parked_.find(id);
    resets.push_back({{id, is_held ? held->second.work.deliveries : deliveries},
                      parked == parked_.end() ? TimePoint::max() : parked->second.due});
  }
  return resets;
}

void Ledger::reset_undone(StreamId id, bool ours) {
  std::lock_guard lock{mutex_};
  resets_.erase(id);
  if (!ours) forget_parked_locked(id);
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

std::size_t Ledger::acknowledged(const AckBatch& acks, std::size_t count) {
  if (acks.ids.empty()) return 0;
  std::lock_guard lock{mutex_};
  const std::size_t missed = acks.ids.size() - std::min(count, acks.ids.size());
  if (acks.making != making_) return missed;
  acks_failing_ = false;
  std::size_t is_no_news = 0;
  for (const StreamId id : acks.ids) {
    const auto found = held_.find(id);
    if (found == held_.end() || found->second.state != State::kAcking) continue;
    const Held& held = found->second;
    if (held.maybe_gone || held.lost || held.expired || held.overdue) ++is_no_news;
    erase(found);
  }
  changed_.notify_all();
  return missed - std::min(missed, is_no_news);
}

void Ledger::not_acknowledged(const AckBatch& acks) {
  if (acks.ids.empty()) return;
  std::lock_guard lock{mutex_};
  if (acks.making != making_) return;
  acks_failing_ = true;
  std::vector<Waiting> again;
  for (const StreamId id : acks.ids) {
    const auto found = held_.find(id);
    if (found == held_.end() || found->second.state != State::kAcking) continue;
    found->second.state = State::kDone;
    found->second.maybe_gone = true;
    again.push_back({id, TimePoint::min()});  // it has waited long enough already
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
  changed_.notify_all();
}

void Ledger::wait_while_running(const Ticket& ticket, Milliseconds patience) const {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, patience, [&] {
    const auto held = held_.find(ticket.id);
    return ticket.making != making_ || held == held_.end() || held->second.state != State::kRunning;
  });
}

void Ledger::wait_until_acknowledged(Milliseconds patience) const {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, patience, [this] {
    return std::none_of(held_.begin(), held_.end(), [](const auto& held) {
      return held.second.state == State::kDone || held.second.state == State::kAcking;
    });
  });
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

void Ledger::note_trimmed(std::span<const StreamId> ids) {
  std::lock_guard lock{mutex_};
  for (const StreamId id : ids) {
    if (const auto found = held_.find(id); found != held_.end()) found->second.maybe_gone = true;
    forget_parked_locked(id);
  }
}

}  // namespace millrace::detail

#include "worker/ledger.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {

template <typename IsOver>
void Ledger::stop_awaiting_if(IsOver&& is_over, std::vector<StreamId>& ids) {
  for (auto at = awaited_.begin(); at != awaited_.end();) {
    if (!is_over(at->second)) {
      ++at;
      continue;
    }
    const auto [id, awaited] = *at;
    at = awaited_.erase(at);
    ids.push_back(id);
    leave_lane(awaited.lane, id);
  }
}

std::vector<Ticket> Ledger::leases() const {
  std::lock_guard lock{mutex_};
  std::vector<Ticket> tickets;
  tickets.reserve(held_.size());
  for (const auto& [id, held] : held_) {
    if (!held.lost && !held.overdue) tickets.push_back({id, making_});
  }
  return tickets;
}

std::vector<std::pair<Ticket, std::uint64_t>> Ledger::counts_of(
    std::span<const Ticket> tickets) const {
  std::lock_guard lock{mutex_};
  std::vector<std::pair<Ticket, std::uint64_t>> counts;
  for (const Ticket& ticket : tickets) {
    const auto held = held_.find(ticket.id);
    if (ticket.making != making_ || held == held_.end()) continue;
    counts.emplace_back(ticket, held->second.work.deliveries);
  }
  return counts;
}

void Ledger::renewed(const Ticket& ticket, TimePoint sent_at) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket);
  if (held == nullptr) return;
  held->work.leased_at = std::max(held->work.leased_at, sent_at);
  held->expired = false;
}

bool Ledger::lost(const Ticket& ticket, std::uint64_t deliveries) {
  std::optional<std::stop_source> call;
  bool is_news = true;
  {
    std::lock_guard lock{mutex_};
    Held* const held = find(ticket);
    if (held == nullptr || held->lost) return false;
    // It was asked about with the count of before its start, or of before a read brought it again.
    if (held->starting || held->work.deliveries != deliveries) return false;
    if (resets_.contains(ticket.id)) return false;
    // What was acknowledged in the meantime is not lost.
    if (held->state == State::kDone || held->state == State::kAcking) return false;
    is_news = !held->expired && !held->overdue;
    if (held->state != State::kRunning) {
      erase(held_.find(ticket.id));
      return is_news;
    }
    held->lost = true;
    call = held->call;
  }
  if (call) call->request_stop();  // what it sets off must not find the lock held
  return is_news;
}

bool Ledger::lost_if_expired(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket);
  if (held == nullptr || !held->expired) return false;
  if (held->state == State::kDone || held->state == State::kAcking) return false;
  if (held->state == State::kRunning) {
    held->lost = true;
  } else {
    erase(held_.find(ticket.id));
  }
  return true;
}

std::vector<StreamId> Ledger::expire(TimePoint now) {
  std::vector<StreamId> expired;
  std::vector<std::stop_source> calls;
  {
    std::lock_guard lock{mutex_};
    std::vector<StreamId> dropped;
    for (auto& [id, held] : held_) {
      const bool has_no_lease = held.work.leased_at + limits_.min_idle <= now;
      const bool takes_too_long = held.state == State::kRunning && held.until <= now;
      if (held.expired || held.overdue || held.lost) continue;
      if (!has_no_lease && !takes_too_long) continue;
      // What has left the stream is nowhere but here.
      if (held.state == State::kQueued && !held.maybe_gone) dropped.push_back(id);
      if (held.state == State::kRunning) {
        (takes_too_long ? held.overdue : held.expired) = true;
        if (held.call) calls.push_back(*held.call);
        expired.push_back(id);
      }
    }
    for (const StreamId id : dropped) erase(held_.find(id));
    stop_awaiting_if([now](const Awaited& awaited) { return awaited.until <= now; }, expired);
    expired.insert(expired.end(), dropped.begin(), dropped.end());
  }
  for (std::stop_source& call : calls) call.request_stop();
  return expired;
}

TimePoint Ledger::next_expiry() const {
  std::lock_guard lock{mutex_};
  TimePoint next = TimePoint::max();
  for (const auto& [id, held] : held_) {
    if (held.expired || held.overdue || held.lost) continue;
    const bool is_queued = held.state == State::kQueued && !held.maybe_gone;
    if (!is_queued && held.state != State::kRunning) continue;
    next = std::min(next, held.work.leased_at + limits_.min_idle);
    if (held.state == State::kRunning) next = std::min(next, held.until);
  }
  for (const auto& [id, awaited] : awaited_) next = std::min(next, awaited.until);
  return next;
}

// ------------------------------------------------------------------------------------- awaited

void Ledger::await_recovery(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  // What was never started is counted once already, and so is its first start.
  if (!held->work.reclaimed) doubt_start(ticket.id, held->work.deliveries);
  if (held->work.lane && !held->lost) {
    lanes_.at(*held->work.lane).busy = false;
    held->state = State::kSettling;  // or it would leave its lane
    awaited_[ticket.id] = {.lane = *held->work.lane,
                           .recovery = recovery_,
                           .until = held->work.leased_at + limits_.min_idle};
  }
  erase(held_.find(ticket.id));
}

std::uint64_t Ledger::begin_recovery() {
  std::lock_guard lock{mutex_};
  return ++recovery_;
}

std::vector<StreamId> Ledger::end_recovery(std::uint64_t recovery) {
  std::lock_guard lock{mutex_};
  std::vector<StreamId> ids;
  stop_awaiting_if([&](const Awaited& awaited) { return awaited.recovery < recovery; }, ids);
  return ids;
}

void Ledger::stop_calls() {
  std::vector<std::stop_source> calls;
  {
    std::lock_guard lock{mutex_};
    calls_stopped_ = true;
    for (const auto& [id, held] : held_) {
      if (held.call) calls.push_back(*held.call);
    }
  }
  for (std::stop_source& call : calls) call.request_stop();
}

// ------------------------------------------------------------------------------ parked and left

std::vector<Pending> Ledger::due_retries(TimePoint now, std::size_t limit) {
  std::lock_guard lock{mutex_};
  std::vector<Pending> due;
  for (const auto& [when, id] : parked_by_due_) {
    if (when > now || due.size() == limit) break;
    due.push_back({id, parked_.at(id).deliveries});
  }
  return due;
}

std::vector<std::pair<Pending, TimePoint>> Ledger::parked() const {
  std::lock_guard lock{mutex_};
  std::vector<std::pair<Pending, TimePoint>> parked;
  for (const auto& [id, entry] : parked_) {
    if (resets_.contains(id)) continue;
    parked.push_back({{id, entry.deliveries}, entry.due});
  }
  return parked;
}

void Ledger::forget_parked(const Pending& entry) {
  std::lock_guard lock{mutex_};
  const auto parked = parked_.find(entry.id);
  const bool is_the_same = parked != parked_.end() && parked->second.deliveries == entry.deliveries;
  if (is_the_same) forget_parked_locked(entry.id);
}

void Ledger::forget_parked_locked(StreamId id) {
  const auto parked = parked_.find(id);
  if (parked == parked_.end()) return;
  parked_by_due_.erase({parked->second.due, id});
  parked_.erase(parked);
}

TimePoint Ledger::next_retry(TimePoint now) {
  {
    std::lock_guard lock{mutex_};
    if (!resting_.empty() && resting_.begin()->first <= now) {
      wake_rested(now);
      changed_.notify_all();
    }
  }
  return retry_due_at();
}

TimePoint Ledger::retry_due_at() const {
  std::lock_guard lock{mutex_};
  TimePoint next = TimePoint::max();
  if (!parked_by_due_.empty()) next = parked_by_due_.begin()->first;
  if (!resting_.empty()) next = std::min(next, resting_.begin()->first);
  return next;
}

void Ledger::park_resting() {
  std::lock_guard lock{mutex_};
  for (const auto& [due, id] : std::exchange(resting_, {})) {
    Held& held = held_.at(id);
    if (held.maybe_gone) {  // there is nothing in the stream to wait in
      resting_.insert({due, id});
      continue;
    }
    held.state = State::kSettling;
    leave_lane(held);
    settlements_.push_back({.kind = Settlement::Kind::kPark,
                            .work = held.work,
                            .due = due,
                            .attempts = held.work.deliveries,
                            .failed = held.work.first_failed});
  }
}

std::size_t Ledger::known_pending(TimePoint now) {
  std::lock_guard lock{mutex_};
  forget_left(now);
  // What a peer has is pending under the peer's name, until its handler returns here.
  const auto ours =
      std::count_if(held_.begin(), held_.end(), [](const auto& held) { return !held.second.lost; });
  return static_cast<std::size_t>(ours) + parked_.size() + left_.size();
}

// -------------------------------------------------------------------------------------- ending

std::vector<Work> Ledger::close() {
  std::lock_guard lock{mutex_};
  closed_ = true;
  std::vector<Work> unstarted;
  for (const auto& [id, held] : held_) {
    if (held.state == State::kQueued || held.state == State::kResting) {
      unstarted.push_back(held.work);
    }
  }
  for (const Work& work : unstarted) erase(held_.find(work.ticket.id));
  std::sort(unstarted.begin(), unstarted.end(),
            [](const Work& left, const Work& right) { return left.ticket.id < right.ticket.id; });
  changed_.notify_all();
  return unstarted;
}

std::vector<Work> Ledger::withdraw(std::span<const Ticket> tickets) {
  std::lock_guard lock{mutex_};
  std::vector<Work> unstarted;
  for (const Ticket& ticket : tickets) {
    const Held* const held = find(ticket, State::kQueued);
    if (held != nullptr && held->reserved) unstarted.push_back(held->work);
  }
  for (const Work& work : unstarted) erase(held_.find(work.ticket.id));
  return unstarted;
}

void Ledger::start_over() {
  std::vector<std::stop_source> calls;
  {
    std::lock_guard lock{mutex_};
    ++making_;
    for (const auto& [id, held] : held_) {
      if (held.call) calls.push_back(*held.call);
    }
    held_.clear();
    ready_.clear();
    lanes_.clear();
    resting_.clear();
    queued_ = 0;
    shed_ = 0;
    bytes_ = 0;
    waiting_.clear();
    settlements_.clear();
    trimmed_.clear();
    parked_.clear();
    parked_by_due_.clear();
    starts_in_doubt_.clear();
    resets_.clear();
    awaited_.clear();
    left_.clear();
    left_in_order_.clear();
    acks_failing_ = false;
    changed_.notify_all();
  }
  for (std::stop_source& call : calls) call.request_stop();
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

bool Ledger::holds(StreamId id) const {
  std::lock_guard lock{mutex_};
  return held_.contains(id);
}

std::size_t Ledger::size() const {
  std::lock_guard lock{mutex_};
  return held_.size();
}

std::size_t Ledger::queued_bytes() const {
  std::lock_guard lock{mutex_};
  return bytes_;
}

bool Ledger::is_idle() const {
  std::lock_guard lock{mutex_};
  return std::none_of(held_.begin(), held_.end(), [](const auto& held) {
    return held.second.state == State::kQueued || held.second.state == State::kRunning ||
           held.second.state == State::kSettling;
  });
}

Ledger::Unfinished Ledger::unfinished() const {
  std::lock_guard lock{mutex_};
  Unfinished since;
  const auto note = [](std::optional<TimePoint>& oldest, TimePoint one) {
    oldest = std::min(oldest.value_or(one), one);
  };
  for (const auto& [id, held] : held_) {
    if (held.state == State::kRunning) note(since.running, held.work.waits_since);
    if (can_start(held)) note(since.startable, held.work.waits_since);
  }
  return since;
}

}  // namespace millrace::detail

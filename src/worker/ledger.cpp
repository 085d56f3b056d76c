#include "worker/ledger.hpp"

#include <algorithm>

namespace millrace::detail {
namespace {

std::size_t bytes_of(const Entry& entry) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : entry) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

// ------------------------------------------------------------------------------------ arriving

bool Ledger::hold(Work& work, bool queue) {
  std::lock_guard lock{mutex_};
  work.ticket = {work.entry.id(), making_};
  const auto [at, is_new] = held_.try_emplace(work.ticket.id);
  if (!is_new) return false;
  if (const auto parked = parked_.find(work.ticket.id); parked != parked_.end()) {
    work.first_failed = parked->second.first_failed;
    forget_parked_locked(work.ticket.id);
  }
  left_.erase(work.ticket.id);

  Held& held = at->second;
  held.work = work;
  held.reserved = !queue;
  held.bytes = bytes_of(work.entry);
  ++queued_;
  bytes_ += held.bytes;
  if (work.lane) lanes_[*work.lane].entries.insert(work.ticket.id);
  if (queue) ready_.push_back(work.ticket.id);
  changed_.notify_all();
  return true;
}

std::vector<Pending> Ledger::orphans(std::span<const Pending> pending, TimePoint now) {
  std::lock_guard lock{mutex_};
  forget_left(now);
  std::vector<Pending> orphans;
  for (const Pending& entry : pending) {
    const bool known =
        held_.contains(entry.id) || parked_.contains(entry.id) || left_.contains(entry.id);
    if (!known) orphans.push_back(entry);
  }
  return orphans;
}

std::size_t Ledger::room_locked() const {
  if (acks_failing_ || closed_ || bytes_ >= limits_.prefetch_bytes) return 0;
  if (held_.size() >= (kMostWaiting + 1) * limits_.prefetch) return 0;
  std::size_t behind = 0;
  for (const auto& [due, id] : resting_) {
    const Work& work = held_.at(id).work;
    if (!work.lane) continue;
    const auto& entries = lanes_.at(*work.lane).entries;
    if (*entries.begin() == id) behind += entries.size() - 1;
  }
  const std::size_t taken = queued_ - std::min(behind, queued_);
  return limits_.prefetch - std::min(taken, limits_.prefetch);
}

std::size_t Ledger::room() const {
  std::lock_guard lock{mutex_};
  return room_locked();
}

void Ledger::wait_for_room(const std::stop_token& stop, TimePoint until) const {
  std::unique_lock lock{mutex_};
  changed_.wait_until(lock, stop, until, [this] { return room_locked() > 0; });
}

// ------------------------------------------------------------------------------------- running

Ledger::Held* Ledger::find(const Ticket& ticket) {
  if (ticket.making != making_) return nullptr;
  const auto found = held_.find(ticket.id);
  return found == held_.end() ? nullptr : &found->second;
}

Ledger::Held* Ledger::find(const Ticket& ticket, State state) {
  Held* const held = find(ticket);
  return held != nullptr && held->state == state ? held : nullptr;
}

bool Ledger::can_start(const Held& held) const {
  if (held.state != State::kQueued) return false;
  if (!held.work.lane) return true;
  const Lane& lane = lanes_.at(*held.work.lane);
  return !lane.busy && *lane.entries.begin() == held.work.ticket.id;
}

Work Ledger::run(Held& held) {
  held.state = State::kRunning;
  held.until = TimePoint::max();
  --queued_;
  if (held.work.lane) lanes_[*held.work.lane].busy = true;
  return held.work;
}

std::optional<Work> Ledger::pop(TimePoint now) {
  if (closed_) return std::nullopt;
  wake_rested(now);
  while (!ready_.empty()) {
    const auto found = held_.find(ready_.front());
    ready_.pop_front();
    if (found == held_.end() || found->second.reserved) continue;
    if (can_start(found->second)) return run(found->second);
    // Another one of its lane may have come before it.
    if (!found->second.work.lane) continue;
    const Lane& lane = lanes_[*found->second.work.lane];
    if (lane.busy || lane.entries.empty()) continue;
    Held& head = held_.at(*lane.entries.begin());
    if (head.reserved || !can_start(head)) continue;
    ready_.push_front(found->first);
    return run(head);
  }
  return std::nullopt;
}

std::optional<Work> Ledger::next(TimePoint now) {
  std::lock_guard lock{mutex_};
  return pop(now);
}

std::optional<Work> Ledger::wait_for_next(const std::stop_token& stop, const Clock& clock) {
  std::unique_lock lock{mutex_};
  for (;;) {
    if (auto work = pop(clock.now())) return work;
    if (closed_ || stop.stop_requested()) return std::nullopt;
    const TimePoint rested = resting_.empty() ? TimePoint::max() : resting_.begin()->first;
    const auto has_changed = [&] {
      const bool rests_for_less = !resting_.empty() && resting_.begin()->first < rested;
      return !ready_.empty() || closed_ || rests_for_less;
    };
    if (rested == TimePoint::max()) {
      changed_.wait(lock, stop, has_changed);
    } else {
      changed_.wait_until(lock, stop, rested, has_changed);
    }
  }
}

std::optional<Work> Ledger::start(const Ticket& ticket, const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  const auto is_settled = [&] {
    const Held* const held = find(ticket, State::kQueued);
    return held == nullptr || can_start(*held) || closed_;
  };
  changed_.wait(lock, stop, is_settled);
  Held* const held = find(ticket, State::kQueued);
  if (held == nullptr || closed_ || !can_start(*held)) return std::nullopt;
  return run(*held);
}

std::optional<std::stop_token> Ledger::begin_call(const Ticket& ticket, TimePoint until) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr || held->lost) return std::nullopt;
  held->until = until;
  return held->call.emplace().get_token();
}

void Ledger::starting(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (Held* const held = find(ticket, State::kRunning)) held->starting = true;
}

void Ledger::started(const Ticket& ticket, TimePoint sent_at, std::uint64_t deliveries) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  held->starting = false;
  held->work.leased_at = std::max(held->work.leased_at, sent_at);
  held->work.deliveries = deliveries;
}

bool Ledger::extend(const Ticket& ticket, TimePoint until) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr || held->lost || held->expired || held->overdue) return false;
  held->until = until;
  return true;
}

void Ledger::defer(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr || held->deferred) return;
  held->deferred = true;
  ++queued_;
}

void Ledger::put_back(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  end_run(*held, State::kQueued);
  ++queued_;
  if (!held->reserved) ready_.push_back(ticket.id);
  changed_.notify_all();
}

void Ledger::end_run(Held& held, State next) {
  held.state = next;
  held.call.reset();
  if (std::exchange(held.deferred, false)) --queued_;
  if (!held.work.lane) return;
  const auto lane = lanes_.find(*held.work.lane);
  lane->second.busy = false;
  if (next != State::kQueued && next != State::kResting) leave_lane(held);
}

void Ledger::leave_lane(const Held& held) {
  if (!held.work.lane) return;
  const auto lane = lanes_.find(*held.work.lane);
  if (lane == lanes_.end()) return;
  lane->second.entries.erase(held.work.ticket.id);
  if (lane->second.entries.empty()) {
    lanes_.erase(lane);
  } else {
    offer_head(*held.work.lane);
  }
}

void Ledger::offer_head(std::size_t lane) {
  const auto head = held_.find(*lanes_.at(lane).entries.begin());
  if (!head->second.reserved && can_start(head->second)) ready_.push_front(head->first);
  changed_.notify_all();
}

void Ledger::wake_rested(TimePoint now) {
  while (!resting_.empty() && resting_.begin()->first <= now) {
    const StreamId id = resting_.begin()->second;
    resting_.erase(resting_.begin());
    Held& held = held_.at(id);
    held.state = State::kQueued;
    held.reserved = false;  // whoever reserved it has gone
    ++queued_;
    if (held.work.lane) {
      offer_head(*held.work.lane);
    } else {
      ready_.push_back(id);
    }
  }
}

void Ledger::erase(HeldMap::iterator held) {
  Held& gone = held->second;
  if (gone.state == State::kQueued || gone.deferred) --queued_;
  if (gone.state == State::kResting) resting_.erase({gone.until, held->first});
  if (gone.state == State::kDone) {
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.id == held->first; });
  }
  if (gone.work.lane && gone.state <= State::kResting) {
    if (gone.state == State::kRunning) lanes_.at(*gone.work.lane).busy = false;
    gone.state = State::kSettling;  // or it would be offered itself
    leave_lane(gone);
  }
  bytes_ -= gone.bytes;
  held_.erase(held);
  changed_.notify_all();
}

std::optional<TimePoint> Ledger::finish(const Ticket& ticket, TimePoint now) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return std::nullopt;
  end_run(*held, State::kDone);
  held->work.batch.reset();
  bytes_ -= std::exchange(held->bytes, 0);
  waiting_.push_back({ticket.id, now});
  changed_.notify_all();
  if (waiting_.size() == 1) return now + kAckDelay;
  if (waiting_.size() == kAckBatch) return now;
  return std::nullopt;
}

void Ledger::finish_into(AckBatch& acks, const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  end_run(*held, State::kDone);
  if (acks.making != making_) acks = {.making = making_};
  start_acking(acks, ticket.id, *held);
  changed_.notify_all();
}

void Ledger::start_acking(AckBatch& acks, StreamId id, Held& held) {
  held.state = State::kAcking;
  acks.ids.push_back(id);
  if (held.maybe_gone || held.lost) ++acks.maybe_gone;
}

void Ledger::rest(const Ticket& ticket, TimePoint due, WallTime failed) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  if (held->lost) return erase(held_.find(ticket.id));
  end_run(*held, State::kResting);
  if (!held->work.first_failed) held->work.first_failed = failed;
  held->work.reclaimed = true;  // its next start is to be counted
  held->until = due;
  resting_.insert({due, ticket.id});
  changed_.notify_all();
}

void Ledger::fail(Settlement&& settlement) {
  std::lock_guard lock{mutex_};
  Held* const held = find(settlement.work.ticket, State::kRunning);
  if (held == nullptr) return;
  if (held->lost) return erase(held_.find(settlement.work.ticket.id));
  end_run(*held, State::kSettling);
  if (!held->work.first_failed) held->work.first_failed = settlement.failed;
  settlement.work = held->work;
  settlements_.push_back(std::move(settlement));
  changed_.notify_all();
}

void Ledger::leave(const Ticket& ticket, TimePoint now) {
  std::lock_guard lock{mutex_};
  if (find(ticket, State::kRunning) == nullptr) return;
  erase(held_.find(ticket.id));
  forget_left(now);
  left_.insert_or_assign(ticket.id, now + limits_.min_idle);
  left_in_order_.push_back({ticket.id, now + limits_.min_idle});
}

void Ledger::forget_left(TimePoint now) {
  for (; !left_in_order_.empty() && left_in_order_.front().until <= now;
       left_in_order_.pop_front()) {
    const auto left = left_.find(left_in_order_.front().id);
    if (left != left_.end() && left->second <= now) left_.erase(left);
  }
}

bool Ledger::drop(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (find(ticket) == nullptr) return false;
  erase(held_.find(ticket.id));
  return true;
}

// ------------------------------------------------------------------------------------ settling

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
  const Held* const held = find(ticket, State::kSettling);
  if (held == nullptr) return;
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
  changed_.notify_all();
}

void Ledger::add_settlement(Settlement&& settlement) {
  std::lock_guard lock{mutex_};
  settlement.work.ticket.making = making_;
  settlements_.push_back(std::move(settlement));
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
      erase(found);
    } else {
      found->second.state = State::kDone;
      found->second.maybe_gone = true;
      again.push_back({id, TimePoint::min()});  // it has waited long enough already
    }
  }
  waiting_.insert(waiting_.begin(), again.begin(), again.end());
  changed_.notify_all();
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

// -------------------------------------------------------------------------------------- leases

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
  std::stop_source call{std::nostopstate};
  bool is_news = true;
  {
    std::lock_guard lock{mutex_};
    Held* const held = find(ticket);
    if (held == nullptr || held->lost) return false;
    // It was asked about with the count of before its start.
    if (held->starting || held->work.deliveries != deliveries) return false;
    // What was acknowledged in the meantime is not lost.
    if (held->state == State::kDone || held->state == State::kAcking) return false;
    if (held->state != State::kRunning) {
      erase(held_.find(ticket.id));
      return true;
    }
    held->lost = true;
    is_news = !held->expired && !held->overdue;
    if (held->call) call = *held->call;
  }
  call.request_stop();  // what it sets off must not find the lock held
  return is_news;
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
      if (held.state == State::kQueued) dropped.push_back(id);
      if (held.state == State::kRunning) {
        (takes_too_long ? held.overdue : held.expired) = true;
        if (held.call) calls.push_back(*held.call);
        expired.push_back(id);
      }
    }
    for (const StreamId id : dropped) erase(held_.find(id));
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
    if (held.state != State::kQueued && held.state != State::kRunning) continue;
    next = std::min(next, held.work.leased_at + limits_.min_idle);
    if (held.state == State::kRunning) next = std::min(next, held.until);
  }
  return next;
}

void Ledger::stop_calls() {
  std::vector<std::stop_source> calls;
  {
    std::lock_guard lock{mutex_};
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
    parked.push_back({{id, entry.deliveries}, entry.due});
  }
  return parked;
}

void Ledger::forget_parked(StreamId id) {
  std::lock_guard lock{mutex_};
  forget_parked_locked(id);
}

void Ledger::forget_parked_locked(StreamId id) {
  const auto parked = parked_.find(id);
  if (parked == parked_.end()) return;
  parked_by_due_.erase({parked->second.due, id});
  parked_.erase(parked);
}

TimePoint Ledger::next_retry() const {
  std::lock_guard lock{mutex_};
  TimePoint next = TimePoint::max();
  if (!parked_by_due_.empty()) next = parked_by_due_.begin()->first;
  if (!resting_.empty()) next = std::min(next, resting_.begin()->first);
  return next;
}

std::size_t Ledger::known_pending(TimePoint now) {
  std::lock_guard lock{mutex_};
  forget_left(now);
  return held_.size() + parked_.size() + left_.size();
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
    bytes_ = 0;
    waiting_.clear();
    settlements_.clear();
    parked_.clear();
    parked_by_due_.clear();
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

std::vector<StreamId> Ledger::held_ids() const {
  std::lock_guard lock{mutex_};
  std::vector<StreamId> ids;
  ids.reserve(held_.size());
  for (const auto& [id, held] : held_) ids.push_back(id);
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
    return held.second.state == State::kQueued || held.second.state == State::kRunning;
  });
}

}  // namespace millrace::detail

#include "worker/ledger.hpp"

#include "core/waiting.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {

std::size_t Ledger::bytes_of(const Entry& entry) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : entry) bytes += name.size() + value.size();
  return bytes;
}

// ------------------------------------------------------------------------------------ arriving

bool Ledger::hold(Work& work, bool queue) {
  std::lock_guard lock{mutex_};
  work.ticket = {work.entry.id(), making_};
  const auto [at, is_new] = held_.try_emplace(work.ticket.id);
  if (!is_new || waits_parked(work)) {
    if (!work.reclaimed) note_reset(work.ticket.id, is_new ? nullptr : &at->second);
    if (is_new) held_.erase(at);
    return false;
  }
  if (const auto parked = parked_.find(work.ticket.id); parked != parked_.end()) {
    work.first_failed = parked->second.first_failed;
    forget_parked_locked(work.ticket.id);
  }
  left_.erase(work.ticket.id);
  awaited_.erase(work.ticket.id);
  if (const auto doubt = starts_in_doubt_.find(work.ticket.id); doubt != starts_in_doubt_.end()) {
    work.start_counted = work.reclaimed && doubt->second == work.deliveries;
    starts_in_doubt_.erase(doubt);
  }

  Held& held = at->second;
  held.work = work;
  held.reserved = !queue;
  held.bytes = bytes_of(work.entry);
  ++queued_;
  bytes_ += held.bytes;
  if (work.lane) {
    const Lane& lane = lanes_[*work.lane];
    lanes_[*work.lane].entries.insert(work.ticket.id);
    if (rests(lane)) shed(held);
  }
  if (queue) ready_.push_back(work.ticket.id);
  changed_.notify_all();
  return true;
}

std::vector<Pending> Ledger::orphans(std::span<const Pending> pending, TimePoint now) {
  std::lock_guard lock{mutex_};
  forget_left(now);
  std::vector<Pending> orphans;
  for (const Pending& entry : pending) {
    const auto held = held_.find(entry.id);
    const bool is_held = held != held_.end();
    const bool is_parked = parked_.contains(entry.id);
    if (!is_held && !is_parked && !left_.contains(entry.id)) orphans.push_back(entry);
    // Brought again by a read whose reply was lost.
    if (entry.deliveries == 1 && (is_held || is_parked)) {
      note_reset(entry.id, is_held ? &held->second : nullptr);
    }
  }
  return orphans;
}

std::size_t Ledger::room_locked() const {
  if (acks_failing_ || closed_) return 0;
  // Those that are awaited need a place even if all that there are stand behind them.
  if (bytes_ >= limits_.prefetch_bytes) return awaited_.size();
  if (held_.size() >= (kMostWaiting + 1) * limits_.prefetch) return awaited_.size();
  const std::size_t taken = std::min(queued_ - shed_, limits_.prefetch);
  return std::max(limits_.prefetch - taken, awaited_.size());
}

std::size_t Ledger::room() const {
  std::lock_guard lock{mutex_};
  return room_locked();
}

void Ledger::wait_for_room(const std::stop_token& stop, TimePoint until, const Clock& clock) const {
  std::unique_lock lock{mutex_};
  wait_by_clock(changed_, lock, stop, until, clock, [this] { return room_locked() > 0; });
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
  held.overdue = false;
  --queued_;
  if (held.work.shed) --shed_;
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
    const auto head = held_.find(*lane.entries.begin());
    if (head == held_.end() || head->second.reserved || !can_start(head->second)) continue;
    ready_.push_front(found->first);
    return run(head->second);
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
    if (closed_ || stop.stop_requested()) return std::nullopt;
    if (auto work = pop(clock.now())) return work;
    const TimePoint rested = resting_.empty() ? TimePoint::max() : resting_.begin()->first;
    const auto has_changed = [&] {
      const bool rests_for_less = !resting_.empty() && resting_.begin()->first < rested;
      return !ready_.empty() || closed_ || rests_for_less;
    };
    if (rested == TimePoint::max()) {
      changed_.wait(lock, stop, has_changed);
    } else {
      wait_by_clock(changed_, lock, stop, rested, clock, has_changed);
    }
  }
}

std::optional<Work> Ledger::start(const Ticket& ticket, const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  const auto is_settled = [&] {
    const Held* const held = find(ticket, State::kQueued);
    return held == nullptr || can_start(*held) || is_behind_a_resting_one(*held) || closed_;
  };
  changed_.wait(lock, stop, is_settled);
  Held* const held = find(ticket, State::kQueued);
  if (held == nullptr || closed_ || !can_start(*held)) return std::nullopt;
  return run(*held);
}

std::optional<Work> Ledger::try_start(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kQueued);
  if (held == nullptr || closed_ || !can_start(*held)) return std::nullopt;
  return run(*held);
}

std::optional<std::stop_token> Ledger::begin_call(const Ticket& ticket, TimePoint until) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr || held->lost) return std::nullopt;
  held->until = until;
  held->call.emplace();
  if (calls_stopped_) held->call->request_stop();  // nobody has the token yet
  return held->call->get_token();
}

void Ledger::starting(const Ticket& ticket, std::uint64_t deliveries) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  held->starting = true;
  if (deliveries != held->work.deliveries) doubt_start(ticket.id, deliveries);
}

void Ledger::doubt_start(StreamId id, std::uint64_t deliveries) {
  // Those that peers took are never asked about again. Without a doubt a start may count twice.
  if (starts_in_doubt_.size() >= kMostDoubts) starts_in_doubt_.clear();
  starts_in_doubt_[id] = deliveries;
}

void Ledger::start_put_off(const Ticket& ticket, TimePoint due) {
  {
    std::lock_guard lock{mutex_};
    Held* const held = find(ticket, State::kRunning);
    if (held == nullptr) return;
    held->starting = false;
    starts_in_doubt_.erase(ticket.id);
  }
  rest(ticket, due, std::nullopt);
}

bool Ledger::start_refused(const Ticket& ticket) {
  std::lock_guard lock{mutex_};
  if (find(ticket) == nullptr) return false;
  starts_in_doubt_.erase(ticket.id);
  erase(held_.find(ticket.id));
  return true;
}

void Ledger::started(const Ticket& ticket, TimePoint sent_at, std::uint64_t deliveries) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  held->starting = false;
  held->expired = false;
  held->work.start_counted = false;
  starts_in_doubt_.erase(ticket.id);
  held->work.leased_at = std::max(held->work.leased_at, sent_at);
  held->work.deliveries = deliveries;
}

bool Ledger::extend(const Ticket& ticket, TimePoint until) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr || held->lost || held->expired || held->overdue) return false;
  held->until = std::max(held->until, until);
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
  if (held->work.shed) ++shed_;
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

void Ledger::erase(HeldMap::iterator held) {
  Held& gone = held->second;
  if (gone.state == State::kQueued || gone.deferred) --queued_;
  if (gone.state == State::kQueued && gone.work.shed) --shed_;
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
}

void Ledger::fail(Settlement&& settlement) {
  std::lock_guard lock{mutex_};
  Held* const held = find(settlement.work.ticket, State::kRunning);
  if (held == nullptr) return;
  if (held->lost) return erase(held_.find(settlement.work.ticket.id));
  // It has not been started: the start that is counted already is still to come.
  if (held->work.start_counted) doubt_start(settlement.work.ticket.id, held->work.deliveries);
  end_run(*held, State::kSettling);
  if (!held->work.first_failed) held->work.first_failed = settlement.failed;
  settlement.work = held->work;
  settlement.had_no_lease = held->expired;
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

}  // namespace millrace::detail

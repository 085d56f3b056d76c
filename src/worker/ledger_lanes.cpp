#include "worker/ledger.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {

bool Ledger::is_behind_a_resting_one(const Held& held) const {
  if (!held.work.lane) return false;
  const auto head = held_.find(*lanes_.at(*held.work.lane).entries.begin());
  return head == held_.end() || head->second.state == State::kResting;
}

void Ledger::leave_lane(const Held& held) {
  if (held.work.lane) leave_lane(*held.work.lane, held.work.ticket.id);
}

void Ledger::leave_lane(std::size_t number, StreamId id) {
  const auto lane = lanes_.find(number);
  if (lane == lanes_.end()) return;
  lane->second.entries.erase(id);
  if (lane->second.entries.empty()) {
    lanes_.erase(lane);
  } else {
    offer_head(number);
  }
}

void Ledger::offer_head(std::size_t lane) {
  const auto head = held_.find(*lanes_.at(lane).entries.begin());
  const bool may_start = head != held_.end() && !head->second.reserved && can_start(head->second);
  if (may_start) ready_.push_front(head->first);
  changed_.notify_all();
}

void Ledger::wake_rested(TimePoint now) {
  while (!resting_.empty() && resting_.begin()->first <= now) {
    const StreamId id = resting_.begin()->second;
    resting_.erase(resting_.begin());
    Held& held = held_.at(id);
    held.state = State::kQueued;
    held.reserved = false;  // whoever reserved it has gone
    held.work.waits_since = now;
    ++queued_;
    if (held.work.lane) {
      offer_head(*held.work.lane);
    } else {
      ready_.push_back(id);
    }
  }
}

void Ledger::rest(const Ticket& ticket, TimePoint due, std::optional<WallTime> failed,
                  std::shared_ptr<const EntryBatch> alone) {
  std::lock_guard lock{mutex_};
  Held* const held = find(ticket, State::kRunning);
  if (held == nullptr) return;
  if (held->lost) return erase(held_.find(ticket.id));
  end_run(*held, State::kResting);
  if (!held->work.first_failed) held->work.first_failed = failed;
  held->work.reclaimed = true;  // its next start is to be counted
  if (alone) {
    held->work.batch = std::move(alone);
    held->work.entry = held->work.batch->front();
  }
  held->until = due;
  resting_.insert({due, ticket.id});
  if (held->work.lane) shed_behind(ticket.id, lanes_.at(*held->work.lane));
  changed_.notify_all();
}

// ---------------------------------------------------------------------------------- payloads

bool Ledger::rests(const Lane& lane) const {
  const auto head = held_.find(*lane.entries.begin());
  return head != held_.end() && head->second.state == State::kResting;
}

void Ledger::shed_behind(StreamId head, const Lane& lane) {
  for (auto at = lane.entries.upper_bound(head); at != lane.entries.end(); ++at) {
    if (const auto held = held_.find(*at); held != held_.end()) shed(held->second);
  }
}

void Ledger::shed(Held& held) {
  if (held.state != State::kQueued || held.reserved || held.work.shed) return;
  if (held.maybe_gone) return;  // it is nowhere but here
  held.work.entry = Entry{held.work.ticket.id, {}, true};
  held.work.batch.reset();
  held.work.shed = true;
  bytes_ -= std::exchange(held.bytes, 0);
  ++shed_;
}

void Ledger::fetched(const Work& work) {
  std::lock_guard lock{mutex_};
  Held* const held = find(work.ticket, State::kRunning);
  if (held == nullptr || !held->work.shed) return;
  held->work.entry = work.entry;
  held->work.batch = work.batch;
  held->work.shed = false;
  held->work.leased_at = std::max(held->work.leased_at, work.leased_at);
  held->expired = false;
  held->bytes = bytes_of(work.entry);
  bytes_ += held->bytes;
}

void Ledger::forget_shed(std::span<const StreamId> ids) {
  std::lock_guard lock{mutex_};
  for (const StreamId id : ids) {
    const auto held = held_.find(id);
    if (held == held_.end()) continue;
    if (held->second.state == State::kQueued && held->second.work.shed) erase(held);
  }
}

}  // namespace millrace::detail

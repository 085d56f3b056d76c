#include "worker/intake.hpp"

namespace millrace::detail {

std::vector<Work> hold_new(const Shared& shared, const EntryBatch& entries, TimePoint sent_at) {
  std::vector<Work> batch;
  batch.reserve(entries.size());
  for (const Entry& entry : entries) {
    shared.group.seen(entry.id());
    const auto ticket = shared.ledger.take(entry.id());
    if (ticket) batch.push_back({.ticket = *ticket, .entry = entry, .leased_at = sent_at});
  }
  count(shared.counters.delivered, batch.size());
  return batch;
}

std::vector<Work> hold_taken(const Shared& shared, const scripts::Taken& taken, TimePoint sent_at) {
  std::vector<Work> batch;
  std::vector<StreamId> ids;
  for (std::size_t i = 0; i < taken.entries.size(); ++i) {
    const Entry& entry = taken.entries[i];
    const auto ticket = shared.ledger.take(entry.id());
    if (!ticket) continue;
    ids.push_back(entry.id());
    batch.push_back({.ticket = *ticket,
                     .entry = entry,
                     .deliveries = taken.deliveries[i],
                     .reclaimed = true,
                     .leased_at = sent_at});
  }
  count(shared.counters.delivered, ids.size());
  count(shared.counters.reclaimed, ids.size());
  count(shared.counters.trimmed, taken.deleted_ids.size());
  if (!ids.empty() || !taken.deleted_ids.empty()) {
    shared.events.tell([&](Observer& observer) { observer.on_reclaimed(ids, taken.deleted_ids); });
  }
  return batch;
}

std::vector<scripts::Hold> let_go(const Shared& shared, std::span<const Work> unstarted) {
  std::vector<scripts::Hold> holds;
  for (const Work& work : unstarted) {
    shared.ledger.give_up(work.ticket);
    // What was delivered for the first time and never started has had no start.
    holds.push_back({.id = work.ticket.id,
                     .expected = work.deliveries,
                     .next = work.reclaimed ? work.deliveries : 0});
  }
  return holds;
}

}  // namespace millrace::detail

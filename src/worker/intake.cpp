#include "worker/intake.hpp"

#include <optional>
#include <utility>

namespace millrace::detail {
namespace {

void add_taken(std::vector<Work>& batch, const scripts::Taken& taken, std::size_t index,
               std::optional<Ticket> ticket, TimePoint leased_at) {
  if (!ticket) return;
  batch.push_back({.ticket = *ticket,
                   .entry = taken.entries[index],
                   .deliveries = taken.deliveries[index],
                   .reclaimed = true,
                   .leased_at = leased_at});
}

/// Without what a peer took, or somebody acknowledged, since it was listed.
void keep_ours(const Shared& shared, std::vector<Work>& batch,
               const std::vector<scripts::Holding>& found) {
  std::vector<Work> kept;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (found[i] != scripts::Holding::kNotOurs) {
      kept.push_back(batch[i]);
    } else {
      shared.ledger.give_up(batch[i].ticket);
    }
  }
  batch = std::move(kept);
}

void tell_of_taken(const Shared& shared, const std::vector<Work>& batch,
                   const scripts::Taken& taken) {
  shared.ledger.note_trimmed(taken.deleted_ids);
  count(shared.counters.delivered, batch.size());
  count(shared.counters.reclaimed, batch.size());
  count(shared.counters.trimmed, taken.deleted_ids.size());
  if (batch.empty() && taken.deleted_ids.empty()) return;
  std::vector<StreamId> ids;
  ids.reserve(batch.size());
  for (const Work& work : batch) ids.push_back(work.ticket.id);
  shared.events.tell([&](Observer& observer) { observer.on_reclaimed(ids, taken.deleted_ids); });
}

}  // namespace

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
  for (std::size_t i = 0; i < taken.entries.size(); ++i) {
    add_taken(batch, taken, i, shared.ledger.take(taken.entries[i].id()), sent_at);
  }
  tell_of_taken(shared, batch, taken);
  return batch;
}

std::vector<Work> hold_orphans(const Shared& shared, scripts::Eval eval,
                               const scripts::Consumer& consumer, const scripts::Taken& own) {
  const TimePoint now = shared.clock.now();
  std::vector<Work> batch;
  std::vector<scripts::Hold> holds;
  for (std::size_t i = 0; i < own.entries.size(); ++i) {
    const StreamId id = own.entries[i].id();
    add_taken(batch, own, i, shared.ledger.take_orphan(id, now), now);
    if (batch.size() > holds.size()) {
      holds.push_back({.id = id, .expected = own.deliveries[i], .next = own.deliveries[i]});
    }
  }
  if (!holds.empty()) {
    // They wait here: no peer is to find them idle meanwhile.
    try {
      keep_ours(shared, batch, scripts::hold(eval, consumer, Milliseconds{0}, holds));
    } catch (...) {
      let_go(shared, batch);
      throw;
    }
  }
  tell_of_taken(shared, batch, own);
  return batch;
}

std::vector<scripts::Hold> let_go(const Shared& shared, std::span<const Work> unstarted) {
  std::vector<scripts::Hold> holds;
  holds.reserve(unstarted.size());
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

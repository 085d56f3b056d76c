#include "worker/intake.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace millrace::detail {
namespace {

/// What orders an entry among others; a user's function, which may throw.
std::optional<std::size_t> lane_of(const Shared& shared, const Entry& entry) {
  if (!shared.config.lane) return std::nullopt;
  try {
    return std::hash<std::string>{}(shared.config.lane(entry));
  } catch (...) {
    return std::nullopt;
  }
}

/// Their dead letters are to be written yet, by whoever settles.
void add_unwritten(const Shared& shared, std::span<const StreamId> ids) {
  for (const StreamId id : ids) {
    Settlement letter;
    letter.kind = Settlement::Kind::kBury;
    letter.work.ticket.id = id;
    letter.work.entry = Entry{id, {}, true};
    letter.reason = "trimmed: deleted from the stream while it was pending";
    letter.failed = std::chrono::system_clock::now();
    letter.trimmed = true;
    shared.ledger.add_settlement(std::move(letter));
  }
}

}  // namespace

std::size_t hold_new(const Shared& shared, EntryBatch&& entries, TimePoint sent_at) {
  const auto batch = std::make_shared<const EntryBatch>(std::move(entries));
  const TimePoint now = shared.clock.now();
  std::size_t held = 0;
  for (const Entry& entry : *batch) {
    shared.group.seen(entry.id());
    Work work{.entry = entry,
              .batch = batch,
              .leased_at = sent_at,
              .waits_since = now,
              .lane = lane_of(shared, entry)};
    if (shared.ledger.hold(work)) ++held;
  }
  count(shared.counters.delivered, held);
  return held;
}

std::vector<Ticket> hold_taken(const Shared& shared, scripts::Taken&& taken, TimePoint sent_at,
                               std::span<const StreamId> held_before, Starter starter) {
  const auto batch = std::make_shared<const EntryBatch>(std::move(taken.entries));
  const TimePoint now = shared.clock.now();
  std::vector<Ticket> held;
  std::vector<StreamId> ids;
  for (std::size_t i = 0; i < batch->size(); ++i) {
    const Entry& entry = (*batch)[i];
    Work work{.entry = entry,
              .batch = batch,
              .deliveries = taken.deliveries[i],
              .reclaimed = true,
              .leased_at = sent_at,
              .waits_since = now,
              .lane = lane_of(shared, entry)};
    const bool is_new =
        starter == Starter::kCaller ? shared.ledger.reserve(work) : shared.ledger.hold(work);
    if (!is_new) continue;
    held.push_back(work.ticket);
    ids.push_back(work.ticket.id);
  }
  shared.ledger.note_trimmed(taken.deleted_ids);
  if (shared.config.letters.enabled) {
    // A sink takes all of them but what is held; a stream has those that the script could write.
    std::vector<StreamId> unheld = taken.deleted_ids;
    std::erase_if(unheld, [&](StreamId id) {
      return std::find(held_before.begin(), held_before.end(), id) != held_before.end();
    });
    const bool has_sink = !shared.config.letters.to_stream();
    add_unwritten(shared, has_sink ? unheld : taken.unwritten);
    if (!has_sink) count(shared.counters.dead_lettered, unheld.size() - taken.unwritten.size());
  }
  count(shared.counters.delivered, ids.size());
  count(shared.counters.reclaimed, ids.size());
  count(shared.counters.trimmed, taken.deleted_ids.size());
  if (!ids.empty() || !taken.deleted_ids.empty()) {
    shared.events.tell([&](Observer& observer) { observer.on_reclaimed(ids, taken.deleted_ids); });
  }
  return held;
}

std::vector<scripts::Hold> giving_back(const WorkerConfig& config, const std::vector<Work>& works) {
  std::vector<scripts::Hold> holds;
  holds.reserve(works.size());
  for (const Work& work : works) {
    // What was delivered for the first time and never started has had no start.
    const std::uint64_t starts =
        work.reclaimed ? work.deliveries - (work.start_counted ? 1 : 0) : 0;
    holds.push_back({.id = work.ticket.id,
                     .expected = work.deliveries,
                     .next = starts,
                     .idle = config.min_idle});
  }
  return holds;
}

}  // namespace millrace::detail

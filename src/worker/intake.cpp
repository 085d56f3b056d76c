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

/// A dead letter that is to be written yet, by whoever settles.
Settlement letter_of_trimmed(StreamId id) {
  Settlement letter;
  letter.kind = Settlement::Kind::kBury;
  letter.work.ticket.id = id;
  letter.work.entry = Entry{id, {}, true};
  letter.reason = "trimmed: deleted from the stream while it was pending";
  letter.failed = std::chrono::system_clock::now();
  letter.trimmed = true;
  return letter;
}

/// One that is pending still. False: it is being seen to already.
bool bury_trimmed(const Shared& shared, const scripts::Trimmed& trimmed, TimePoint sent_at) {
  Settlement letter = letter_of_trimmed(trimmed.id);
  letter.attempts = trimmed.deliveries;
  letter.work.deliveries = trimmed.deliveries;
  if (trimmed.owner != shared.config.consumer) {
    letter.owner = trimmed.owner;
    return shared.ledger.add_settlement(std::move(letter));
  }
  // What is pending for us is held, or recovery would find it again.
  letter.trimmed = false;
  letter.work.leased_at = sent_at;
  if (!shared.ledger.reserve(letter.work)) return false;
  if (shared.ledger.try_start(letter.work.ticket)) shared.ledger.fail(std::move(letter));
  return true;
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
    // What is held is handled from memory.
    const auto unheld =
        std::count_if(taken.deleted_ids.begin(), taken.deleted_ids.end(), [&](StreamId id) {
          return std::find(held_before.begin(), held_before.end(), id) == held_before.end();
        });
    for (const StreamId id : taken.unwritten) {
      shared.ledger.add_settlement(letter_of_trimmed(id));
    }
    count(shared.counters.dead_lettered, static_cast<std::size_t>(unheld) - taken.unwritten.size());
  }
  for (const scripts::Trimmed& trimmed : taken.trimmed) {
    if (bury_trimmed(shared, trimmed, sent_at)) taken.deleted_ids.push_back(trimmed.id);
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

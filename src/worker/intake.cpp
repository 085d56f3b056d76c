#include "worker/intake.hpp"

#include "net/deadline.hpp"
#include "worker/settling.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
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

/// What a page has dropped, since it is no longer in the stream.
void note_deleted(const Shared& shared, const scripts::Taken& taken) {
  shared.ledger.note_trimmed(taken.deleted_ids);
  shared.ledger.forget_shed(taken.deleted_ids);
  count(shared.counters.trimmed, taken.deleted_ids.size());
  if (shared.config.letters.enabled) {
    count(shared.counters.dead_lettered, taken.deleted_ids.size());
  }
}

/// They run, have no payload here, and were not fetched: they have left the stream, or are a
/// peer's.
void give_up_unfetched(const Shared& shared, scripts::Eval eval, std::span<Work* const> works) {
  std::vector<scripts::Hold> holds;
  for (const Work* work : works) {
    holds.push_back({work->ticket.id, work->deliveries, work->deliveries});
  }
  const auto found = scripts::hold(eval, shared.config, holds);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Work& work = *works[i];
    if (found[i] == scripts::Holding::kNotOurs) {
      if (shared.ledger.drop(work.ticket)) tell_of_lost_lease(shared, work.ticket.id);
    } else if (found[i] == scripts::Holding::kOurs) {
      shared.ledger.put_back(work.ticket);  // its count was put right only now
    } else if (found[i] == scripts::Holding::kCountedAnew) {
      shared.ledger.start_put_off(work.ticket, after(shared.clock.now(), scripts::kAskAgain));
    } else if (!shared.config.letters.enabled) {
      shared.ledger.drop(work.ticket);
    } else {
      count(shared.counters.trimmed, 1);
      shared.ledger.fail({.kind = Settlement::Kind::kBury,
                          .work = work,
                          .attempts = work.reclaimed ? work.deliveries : 0,
                          .reason = "trimmed: deleted from the stream while it was held",
                          .failed = std::chrono::system_clock::now()});
    }
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
                               Starter starter) {
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
  note_deleted(shared, taken);
  for (const scripts::Trimmed& trimmed : taken.trimmed) {
    if (!bury_trimmed(shared, trimmed, sent_at)) continue;
    taken.deleted_ids.push_back(trimmed.id);
    count(shared.counters.trimmed, 1);
  }
  count(shared.counters.delivered, ids.size());
  count(shared.counters.reclaimed, ids.size());
  if (!ids.empty() || !taken.deleted_ids.empty()) {
    shared.events.tell([&](Observer& observer) { observer.on_reclaimed(ids, taken.deleted_ids); });
  }
  return held;
}

void fetch_again(const Shared& shared, scripts::Eval eval, std::span<Work* const> works) {
  for (; !works.empty(); works = works.subspan(std::min(works.size(), scripts::kMostIds))) {
    const auto page = works.first(std::min(works.size(), scripts::kMostIds));
    std::vector<Pending> asked;
    for (const Work* work : page) asked.push_back({work->ticket.id, work->deliveries});
    const TimePoint sent_at = shared.clock.now();
    scripts::Taken taken = scripts::retake(eval, shared.config, asked);
    note_deleted(shared, taken);
    const auto batch = std::make_shared<const EntryBatch>(std::move(taken.entries));
    std::vector<Work*> missing;
    std::size_t next = 0;
    for (Work* work : page) {
      if (next < batch->size() && (*batch)[next].id() == work->ticket.id) {
        work->entry = (*batch)[next++];
        work->batch = batch;
        work->shed = false;
        work->leased_at = std::max(work->leased_at, sent_at);
        shared.ledger.fetched(*work);
      } else if (const auto& gone = taken.deleted_ids;
                 std::find(gone.begin(), gone.end(), work->ticket.id) != gone.end()) {
        shared.ledger.drop(work->ticket);  // it has been put aside
      } else {
        missing.push_back(work);
      }
    }
    if (!missing.empty()) give_up_unfetched(shared, eval, missing);
  }
}

void undo_resets(const Shared& shared, scripts::Eval eval) {
  for (auto some = shared.ledger.resets(scripts::kMostIds / 2); !some.empty();
       some = shared.ledger.resets(scripts::kMostIds / 2)) {
    const TimePoint now = shared.clock.now();
    std::vector<scripts::Hold> holds;
    for (const auto& [entry, due] : some) {
      const Milliseconds idle = idle_until(due, now, shared.config.min_idle);
      // A second time it has that count already.
      for (const std::uint64_t count : {std::uint64_t{1}, entry.deliveries}) {
        holds.push_back({entry.id, count, entry.deliveries, idle});
      }
    }
    const auto found = scripts::hold(eval, shared.config, holds);
    for (std::size_t i = 0; i < some.size(); ++i) {
      shared.ledger.reset_undone(some[i].first.id, found[2 * i + 1] != scripts::Holding::kNotOurs);
    }
  }
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

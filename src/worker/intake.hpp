#pragma once

#include "worker/ledger.hpp"
#include "worker/scripts.hpp"
#include "worker/shared.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace millrace::detail {

/// Holds and queues entries that were delivered for the first time. Those that are held already are
/// left out: a group that is made again delivers them once more. Returns how many were.
std::size_t hold_new(const Shared& shared, EntryBatch&& entries, TimePoint sent_at);

/// Who starts what was taken over.
enum class Starter : bool {
  kAnybody,
  kCaller,  ///< Ledger::start() alone.
};

/// Holds the entries of a page that was taken over, and tells of them. Those that are held already
/// are left out: they come back wherever they are listed, and are being seen to. Dead letters that
/// could not be written are settled later. Returns what is held now.
std::vector<Ticket> hold_taken(const Shared& shared, scripts::Taken&& taken, TimePoint sent_at,
                               Starter starter = Starter::kAnybody);

/// Fetches the payloads of entries that run and had given them up, and renews their leases. Those
/// that stay shed do not start: they are not held any more, are to be put aside since they have
/// left the stream, or are queued again. Throws what `eval` throws.
void fetch_again(const Shared& shared, scripts::Eval eval, std::span<Work* const> works);

/// A `>` read that brings what is held or parked resets its count and its idle time on the server:
/// puts both right again.
void undo_resets(const Shared& shared, scripts::Eval eval);

/// How to give back what was not started: with the count of its starts.
std::vector<scripts::Hold> giving_back(const WorkerConfig& config, const std::vector<Work>& works);

}  // namespace millrace::detail

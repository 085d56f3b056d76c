#pragma once

#include "worker/handling.hpp"
#include "worker/scripts.hpp"
#include "worker/shared.hpp"

#include <vector>

namespace millrace::detail {

/// Holds entries that were delivered for the first time. Those that are held already are left out:
/// a group that is made again delivers them once more. `entries` must outlive the result.
std::vector<Work> hold_new(const Shared& shared, const EntryBatch& entries, TimePoint sent_at);

/// Holds the entries of a page that was taken over, and tells of them. Those that are held already
/// are left out: they come back wherever they are listed, and are being seen to. `taken` must
/// outlive the result.
std::vector<Work> hold_taken(const Shared& shared, const scripts::Taken& taken, TimePoint sent_at);

/// The same for a page of our own pending entries that nobody here holds, keeping them from peers.
/// Those that were left are not due yet. Throws what `eval` throws; then nothing of it is held.
std::vector<Work> hold_orphans(const Shared& shared, scripts::Eval eval,
                               const scripts::Consumer& consumer, const scripts::Taken& own);

/// Lets go of what was not started, and says how to give it back: with the count of its starts.
std::vector<scripts::Hold> let_go(const Shared& shared, std::span<const Work> unstarted);

}  // namespace millrace::detail

#pragma once

#include <millrace/stream_info.hpp>

#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "net/connection.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// The worker's server-side scripts as functions. All that changes the pending list, besides
/// XREADGROUP and XACK, is here.
namespace millrace::detail::scripts {

/// Runs a script somewhere: on a Connection, or on one that a Pool lends.
using Eval = FunctionRef<Reply(const CallSpec&, const Script&, std::span<const std::string_view>,
                               std::span<const std::string_view>)>;

/// Whose entries.
struct Consumer {
  std::string_view key;
  std::string_view group;
  std::string_view name;
};

/// A page of entries that are ours now, with how often each had been delivered.
struct Taken {
  EntryBatch entries{};
  std::vector<std::uint64_t> deliveries{};
  std::vector<StreamId> deleted_ids{};
  StreamId next_cursor{};  ///< 0-0: that was the end.
};

/// Most ids of one call, so that no script keeps the server busy for long.
inline constexpr std::size_t kMostIds = 64;

/// Takes over what has been idle for `min_idle`, from `cursor` on. Counts are kept. Of the ids that
/// are left out, those that are idle become ours as well, and their entries are not sent.
Taken take(Eval eval, const Consumer& consumer, Milliseconds min_idle, StreamId cursor,
           std::size_t count, std::span<const StreamId> left_out = {});

/// Our own pending entries after `after`. Counts and idle times are kept: hold() what is taken.
Taken recover(Eval eval, const Consumer& consumer, StreamId after, std::size_t count,
              std::span<const StreamId> left_out = {});

/// One entry that we think is ours, `expected` times delivered: from now on `next` times.
struct Hold {
  StreamId id{};
  std::uint64_t expected = 0;
  std::uint64_t next = 0;
};

/// What hold() found for one entry.
enum class Holding : std::uint8_t {
  kNotOurs,  ///< A peer's, or acknowledged, or its count is another one.
  kOurs,
  kTrimmed,  ///< Ours, but no longer in the stream: changed in nothing, and not lost to a peer.
};

/// Sets count and idle time of those that are still ours with the count that is expected. At most
/// kMostIds.
std::vector<Holding> hold(Eval eval, const Consumer& consumer, Milliseconds idle,
                          std::span<const Hold> holds);

/// Gives entries back: idle for `min_idle`, so that a peer takes them over at once. Returns the ids
/// of those that were still ours.
std::vector<StreamId> release(Eval eval, const Consumer& consumer, Milliseconds min_idle,
                              std::span<const Hold> holds);

}  // namespace millrace::detail::scripts

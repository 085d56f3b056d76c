#pragma once

#include <millrace/stream_info.hpp>

#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "net/connection.hpp"
#include "worker/config.hpp"
#include "worker/ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The worker's server-side scripts as functions. All that a worker changes in the pending list,
/// besides XREADGROUP and XACK, is here. Each is a compare-and-set: it names the owner, the owner's
/// token and the delivery count that it expects, and changes nothing where they differ.
namespace millrace::detail::scripts {

/// Runs a script somewhere: on a Connection, or on one that a Pool lends.
using Eval = FunctionRef<Reply(const CallSpec&, const Script&, std::span<const std::string_view>,
                               std::span<const std::string_view>)>;

/// One that is no longer in the stream, and stays pending until its dead letter is written, or
/// until whoever holds it has done with it.
struct Trimmed {
  StreamId id{};
  std::string owner{};
  std::uint64_t deliveries = 0;
};

/// A page of entries that are ours now, with how often each had been delivered.
struct Taken {
  EntryBatch entries{};
  std::vector<std::uint64_t> deliveries{};
  std::vector<StreamId> deleted_ids{};
  StreamId next_cursor{};          ///< 0-0: that was the end.
  std::vector<Trimmed> trimmed{};  ///< Not among the deleted ones.
};

/// Most ids of one call, so that no script keeps the server busy for long.
inline constexpr std::size_t kMostIds = 64;

/// Takes over what has been idle for `min_idle`, from `cursor` on. Counts are kept.
Taken take(Eval eval, const WorkerConfig& config, StreamId cursor, std::size_t count);

/// Our own pending entries after `after`. One read, nothing is changed.
std::vector<PendingEntry> list_pending(Connection& connection, const WorkerConfig& config,
                                       StreamId after, std::size_t count, const CallSpec& spec);

/// The same, with counts as the scripts have them.
std::vector<Pending> list_own(Connection& connection, const WorkerConfig& config, StreamId after,
                              std::size_t count, const CallSpec& spec);

/// Takes these in hand again; counts are kept. What is not ours any more is left out. At most
/// kMostIds.
Taken retake(Eval eval, const WorkerConfig& config, std::span<const Pending> pending);

/// One entry that we think is ours, `expected` times delivered: from now on `next` times, and idle
/// for so long.
struct Hold {
  StreamId id{};
  std::uint64_t expected = 0;
  std::uint64_t next = 0;
  Milliseconds idle{0};
};

/// What hold() found for one entry, by the numbers of hold.lua.
enum class Holding : std::uint8_t {
  kNotOurs,  ///< A peer's, or acknowledged, or its count is another one.
  kOurs,
  kTrimmed,      ///< Ours, and no longer in the stream. It stays pending until it is acknowledged.
  kCountedAnew,  ///< Ours, and not changed: a read has brought it again, whose reply is on the way.
  kGone,         ///< Neither pending nor in the stream: acknowledged, or dropped by an XAUTOCLAIM.
};

/// When to ask again about what is counted anew.
inline constexpr Milliseconds kAskAgain{20};

/// Sets counts and idle times of those that are still ours. Any number, kMostIds a call.
std::vector<Holding> hold(Eval eval, const WorkerConfig& config, std::span<const Hold> holds);

/// What renew() learned.
struct Renewal {
  std::vector<Holding> found{};
  std::size_t pending = 0;         ///< How many the server has under our name.
  std::optional<StreamId> mark{};  ///< Up to here the whole group is done. None: it did not say.
  std::optional<std::uint64_t> entries_added{};  ///< Ever, to the stream. None: it did not say.
};

/// A low-water mark as the record has it: an id, or `(id` for what is just before it.
std::optional<StreamId> decode_mark(std::string_view mark);

/// hold(), and renews the worker's place in the group's record. At most kMostIds.
Renewal renew(Eval eval, const WorkerConfig& config, std::span<const Hold> holds);

/// What to put aside, and where its payload is.
struct Burial {
  const Settlement& settlement;
  enum class Payload : std::uint8_t { kGiven, kInStream, kWritten } payload = Payload::kGiven;
};

enum class Buried : std::uint8_t { kBuried, kNotOurs, kCountedAnew };

/// Thrown where a dead letter, and nothing else, is refused. Not an Error: what waits is the
/// letter.
struct LetterRefused {
  Error why;
};

/// Writes the dead letter and acknowledges. Throws LetterRefused as well.
Buried bury(Eval eval, const WorkerConfig& config, const Burial& burial);

/// The names of the fields that stand before the original ones in a dead letter, in their order.
std::span<const std::string_view> letter_names();

/// These fields, name and value in turn.
std::vector<std::string> letter_head(const WorkerConfig& config, const Settlement& settlement);

/// Most fields that a script can pass on.
inline constexpr std::size_t kMostFields = 3'900;

/// What open() found or made.
struct Opened {
  bool made = false;  ///< Or set back.
  std::string making{};
  StreamId position{};
  bool name_was_free = true;
  std::optional<std::uint64_t> entries_added{};  ///< As in Renewal.
};

/// A group that was missing, to be made again.
struct Remaking {
  std::string making{};  ///< The one we knew.
  StreamId position{};
};

/// Makes the group where it is missing, and takes the consumer's name.
Opened open(Eval eval, const WorkerConfig& config, const std::optional<Remaking>& again);

/// Gives the name free, and removes the consumer if nothing is pending for it.
void leave(Eval eval, const WorkerConfig& config);

}  // namespace millrace::detail::scripts

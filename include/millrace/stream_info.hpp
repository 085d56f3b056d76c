#pragma once

#include <millrace/entry.hpp>
#include <millrace/error.hpp>
#include <millrace/stream_id.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

// Optional members are empty where the server does not have the field, or says that it is unknown.

/// One page of a sweep over idle pending entries.
struct AutoclaimPage {
  EntryBatch claimed{};
  /// Pending entries whose payload was no longer in the stream. The server has dropped them from
  /// the pending list, whatever their idle time, and reports each only this once.
  std::vector<StreamId> deleted_ids{};
  /// Where the next page starts; 0-0: the sweep is complete. An empty page before that is normal.
  StreamId next_cursor{};
};

/// What a sweep did, also where it could not go on.
struct AutoclaimResult {
  EntryBatch claimed{};                 ///< Of all pages.
  std::vector<StreamId> deleted_ids{};  ///< As in AutoclaimPage.
  StreamId next_cursor{};               ///< 0-0: complete; else where to go on.
  std::optional<Error> error{};         ///< Why it ended early. What came before it is here.

  /// True if the sweep reached the end of the pending list.
  bool complete() const { return !error && next_cursor == StreamId{}; }
};

/// What a claim by id did.
struct ClaimResult {
  EntryBatch claimed{};
  /// Asked for, not returned: not pending, not idle for long enough, or no longer in the stream (in
  /// that case the server has dropped it from the pending list without a word).
  std::vector<StreamId> missing{};
};

/// What a hand-over did, also where it could not go on.
struct HandoverResult {
  std::size_t moved = 0;
  std::vector<StreamId> deleted_ids{};  ///< Dropped: their payload is no longer in the stream.
  std::optional<Error> error{};         ///< Why it ended early. What came before it is here.
};

/// Whether a consumer was removed.
struct RemoveResult {
  bool removed = false;  ///< False: it still owns `pending` entries, or there is none.
  std::uint64_t pending = 0;
};

struct ConsumerPending {
  std::string name{};
  std::uint64_t count = 0;
};

/// The pending entries of a group, summed up.
struct PendingSummary {
  std::uint64_t count = 0;
  std::optional<StreamId> lowest{}, highest{};
  std::vector<ConsumerPending> consumers{};  ///< Those that own any.
};

/// One pending entry.
struct PendingEntry {
  StreamId id{};
  std::string consumer{};  ///< Empty where an entry was given back to nobody (Redis 8.8, XNACK).
  std::optional<std::chrono::milliseconds> idle{};  ///< Since its last delivery. None: given back.
  std::int64_t deliveries = 0;
};

/// XINFO STREAM. `length` 0, `groups` 0 and nothing else for a missing stream.
struct StreamInfo {
  std::uint64_t length = 0, groups = 0;
  StreamId last_generated_id{};
  std::optional<OwnedEntry> first_entry{}, last_entry{};
  std::optional<std::uint64_t> entries_added{};
  std::optional<StreamId> max_deleted_id{};
  std::optional<StreamId> recorded_first_id{};
  std::optional<std::uint64_t> radix_tree_keys{}, radix_tree_nodes{};
  std::optional<std::chrono::seconds> idmp_duration{};  ///< Redis 8.6 and newer, as the rest.
  std::optional<std::uint64_t> idmp_maxsize{};
  std::optional<std::uint64_t> pids_tracked{}, iids_tracked{}, iids_added{}, iids_duplicates{};
};

/// XINFO GROUPS, one group.
struct GroupInfo {
  std::string name{};
  std::uint64_t consumers = 0, pending = 0;
  StreamId last_delivered_id{};
  std::optional<std::uint64_t> entries_read{};
  /// Entries not yet delivered, as the server reckons it. Advisory: unknown after deletions in the
  /// middle, too high after trimming before Redis 8.0, and it can be negative.
  std::optional<std::int64_t> lag{};
};

/// XINFO CONSUMERS, one consumer.
struct ConsumerInfo {
  std::string name{};
  std::uint64_t pending = 0;
  std::chrono::milliseconds idle{0};  ///< Since its last attempt to read or claim.
  /// Since it last got anything. None: never, or before Redis 7.2, which does not say.
  std::optional<std::chrono::milliseconds> inactive{};
};

/// XINFO STREAM FULL. Empty for a missing stream.
struct FullStreamInfo {
  struct Pending {
    StreamId id{};
    std::string consumer{};
    /// When it was last delivered, by the server's clock. None: given back to nobody.
    std::optional<std::chrono::system_clock::time_point> delivered_at{};
    std::int64_t deliveries = 0;
  };
  struct Consumer {
    std::string name{};
    std::optional<std::chrono::system_clock::time_point> seen_at{};    ///< Last attempt.
    std::optional<std::chrono::system_clock::time_point> active_at{};  ///< Last success.
    std::uint64_t pending_count = 0;
    std::vector<Pending> pending{};  ///< The first `count`; `consumer` is this one.
  };
  struct Group {
    std::string name{};
    StreamId last_delivered_id{};
    std::optional<std::uint64_t> entries_read{};
    std::optional<std::int64_t> lag{};
    std::uint64_t pending_count = 0;
    std::vector<Pending> pending{};  ///< The first `count`.
    std::vector<Consumer> consumers{};
    std::optional<std::uint64_t> nacked_count{};  ///< Redis 8.8 and newer.
  };

  std::uint64_t length = 0;
  StreamId last_generated_id{};
  std::vector<OwnedEntry> entries{};  ///< The first `count`.
  std::vector<Group> groups{};
  std::optional<std::uint64_t> entries_added{};
  std::optional<StreamId> max_deleted_id{};
  std::optional<StreamId> recorded_first_id{};
  std::optional<std::uint64_t> radix_tree_keys{}, radix_tree_nodes{};
  std::optional<std::chrono::seconds> idmp_duration{};  ///< Redis 8.6 and newer, as the rest.
  std::optional<std::uint64_t> idmp_maxsize{};
  std::optional<std::uint64_t> pids_tracked{}, iids_tracked{}, iids_added{}, iids_duplicates{};
};

}  // namespace millrace

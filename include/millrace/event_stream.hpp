#pragma once

#include <millrace/connection.hpp>
#include <millrace/entry.hpp>
#include <millrace/export.hpp>
#include <millrace/health.hpp>
#include <millrace/stream_info.hpp>
#include <millrace/stream_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class Follower;
class ReplayRange;

namespace detail {
struct StreamCore;
}

/// One Redis Stream: append, read by groups, acknowledge, claim, replay, trim, inspect.
///
/// A cheap, copyable handle. Every call is const and safe from any thread; each borrows a
/// connection of the pool for one round trip unless its comment says otherwise.
///
/// Errors. Any call may throw what its connection meets (ConnectError, IoError, TimeoutError,
/// PoolTimeout, ProtocolError), what the server says (ServerError and below), and InvalidArgument
/// before anything is sent. `outcome()` of an error says whether the call may have been applied. A
/// call is repeated by itself only if nothing was sent or if repeating it cannot change the result.
///
/// Reading. An empty read is an empty batch, never an error. A missing stream or group is empty
/// where that is a fact (length, info, groups, …); where a call needs the group, its absence is
/// NoGroupError, and a key of another type is always WrongTypeError.
///
/// Limits. A name or value of more than 512 MiB, or a command of more than 1,048,576 arguments (our
/// own limit: that is 524,000 fields in an entry), is refused before anything is sent.
class MILLRACE_EXPORT EventStream {
 public:
  /// Does no I/O. Throws InvalidArgument for an empty key or an option out of range.
  EventStream(const ConnectionPool& pool, std::string key, StreamOptions options = {});

  // Moving copies, so that no handle is ever empty.
  EventStream(const EventStream&) = default;
  EventStream& operator=(const EventStream&) = default;
  ~EventStream() = default;

  const std::string& key() const noexcept;
  const StreamOptions& options() const noexcept;
  const ConnectionPool& pool() const noexcept;

  // ------------------------------------------------------------------------------------- append

  /// Appends an event: `type` and `ts_ms` (this host's clock, milliseconds since the epoch) come
  /// first, then the payload. A payload with a field of one of these names is refused.
  StreamId produce(std::string_view type, Fields payload) const;

  /// The same for many in one round trip (one for each 10,000 of them, or 16 MiB), with a result
  /// for each, in order. Does not throw for the fate of an entry: see AddResult. An event that is
  /// refused has its error, and its neighbours are appended. After a lost connection, those without
  /// a reply have an error whose outcome() says whether they may have been appended.
  std::vector<AddResult> produce_batch(std::span<const Event> events) const;

  /// Appends an entry. nullopt: `create_stream` is false and there is no stream.
  ///
  /// An append whose reply was lost throws with Outcome::kUnknown and is not repeated, unless its
  /// id is exact: then it is sent once more, and where the server refuses it now, the stream is
  /// asked whether this very entry is there. An entry without fields is refused.
  std::optional<StreamId> add(Fields fields, const AddOptions& options = {}) const;

  /// Appends many in one round trip; see produce_batch. A trim is applied once, after the last one.
  /// An exact id is refused: it could name one entry only.
  std::vector<AddResult> add_batch(std::span<const OwnedFields> entries,
                                   const AddOptions& options = {}) const;

  // ------------------------------------------------------------------------------------- groups

  /// Makes the group, and the stream if it is missing. True: created; false: it was there, its
  /// position is unchanged.
  bool ensure_group(std::string_view group, GroupStart start) const;

  /// False: there was none. Its pending entries are forgotten, and its readers get NoGroupError.
  bool delete_group(std::string_view group) const;

  /// Moves where the group reads next. Backwards: entries are delivered again, taken from their
  /// owners, with their delivery count reset; a reader that is blocked notices at the next append.
  void set_group_position(std::string_view group, GroupStart start) const;

  /// False: there was one already.
  bool create_consumer(std::string_view group, std::string_view consumer) const;

  /// Reads new entries for `consumer`; they are pending until acknowledged. Waits up to
  /// `options.block` plus the command time-out, whatever that is.
  ///
  /// After an error with Outcome::kUnknown, entries may be pending for `consumer` that nobody saw:
  /// list them with pending_entries() and take them with claim().
  EntryBatch consume(std::string_view group, std::string_view consumer,
                     const ReadOptions& options = {}) const;

  /// Reads the consumer's own pending entries with ids above `after` again, never waiting. The
  /// server raises the delivery count of each and resets its idle time, so this is no way to look:
  /// use pending_entries(). Entries that are no longer in the stream come back as deleted().
  EntryBatch consume_own_pending(std::string_view group, std::string_view consumer,
                                 StreamId after = {}, std::size_t count = 100) const;

  /// Acknowledges: the entries leave the pending list. Returns how many were pending; fewer than
  /// given is no error (acknowledged before, or claimed and acknowledged by a peer, or no such
  /// group). Duplicates count once; no ids is 0 without a round trip.
  std::size_t ack(std::string_view group, std::span<const StreamId> ids) const;
  std::size_t ack(std::string_view group, std::initializer_list<StreamId> ids) const;
  std::size_t ack(std::string_view group, const EntryBatch& batch) const;

  // ----------------------------------------------------------------------------------- recovery

  /// Takes over one page of entries that were idle for `min_idle`, whoever owned them. Each counts
  /// as delivered once more. `options.max_pages` is not used.
  AutoclaimPage autoclaim_page(std::string_view group, std::string_view consumer,
                               const AutoclaimOptions& options = {}) const;

  /// Page after page, up to `max_pages`. An error on a later page is in the result, beside all that
  /// the earlier ones gave; one on the first page is thrown.
  AutoclaimResult autoclaim(std::string_view group, std::string_view consumer,
                            const AutoclaimOptions& options = {}) const;

  /// Takes over entries by id, those that were idle for `min_idle`.
  ClaimResult claim(std::string_view group, std::string_view consumer,
                    std::chrono::milliseconds min_idle, std::span<const StreamId> ids,
                    const ClaimOptions& options = {}) const;
  ClaimResult claim(std::string_view group, std::string_view consumer,
                    std::chrono::milliseconds min_idle, std::initializer_list<StreamId> ids,
                    const ClaimOptions& options = {}) const;
  ClaimResult claim(std::string_view group, std::string_view consumer,
                    std::chrono::milliseconds min_idle, const EntryBatch& batch,
                    const ClaimOptions& options = {}) const;

  /// As claim(), without payloads and without raising delivery counts (JUSTID). Returns the ids
  /// that were claimed.
  std::vector<StreamId> claim_ids(std::string_view group, std::string_view consumer,
                                  std::chrono::milliseconds min_idle, std::span<const StreamId> ids,
                                  const ClaimOptions& options = {}) const;
  std::vector<StreamId> claim_ids(std::string_view group, std::string_view consumer,
                                  std::chrono::milliseconds min_idle,
                                  std::initializer_list<StreamId> ids,
                                  const ClaimOptions& options = {}) const;
  std::vector<StreamId> claim_ids(std::string_view group, std::string_view consumer,
                                  std::chrono::milliseconds min_idle, const EntryBatch& batch,
                                  const ClaimOptions& options = {}) const;

  /// Gives all pending entries of `from` to `to`, in scripts that decide and act in one step; their
  /// delivery counts and idle times are kept. `from` and `to` must differ. Stop `from` first: what
  /// it reads meanwhile may or may not be moved. An error of a later script is in the result,
  /// beside all that the earlier ones did; one of the first is thrown.
  HandoverResult handover_pending(std::string_view group, std::string_view from,
                                  std::string_view to) const;

  /// Removes a consumer that owns no pending entries; refuses otherwise, since the server would
  /// forget them. One script, so nothing can be delivered in between.
  RemoveResult remove_consumer(std::string_view group, std::string_view consumer) const;

  // ------------------------------------------------------------------------------------ history

  /// Entries after `after`, without a group. Waits as consume() does.
  EntryBatch read(StreamId after, const ReadOptions& options = {}) const;

  /// Entries from `start` to `end`, oldest first, at most `count`; 0 is refused.
  EntryBatch replay(RangeStart start = {}, RangeEnd end = {}, std::size_t count = 100) const;

  /// The newest `count` entries, newest first; 0 is refused.
  EntryBatch tail(std::size_t count = 10) const;

  /// All entries from `start` to `end`, as a range that reads `page` entries a round trip and keeps
  /// one page in memory.
  ReplayRange replay_all(RangeStart start = {}, RangeEnd end = {}, std::size_t page = 1000) const;

  /// Reads the stream as it grows, without a group. One round trip if `start` is now().
  Follower follow(FollowStart start) const;

  // ---------------------------------------------------------------------------------- retention

  /// Removes old entries and returns how many. An approximate trim without a limit goes on until
  /// nothing more goes (one server call removes at most 100 nodes), within a bound.
  std::uint64_t trim(const Trim& trim) const;

  /// Removes what every group has read and acknowledged, never anything else. Without groups it
  /// trims nothing. A script does it, in rounds of about 10,000 entries so that no call holds the
  /// server for long; each round looks anew at what the groups still need.
  std::uint64_t trim_safely() const;

  /// Deletes entries by id and returns how many were there. Pending ones stay pending, as deleted.
  std::size_t erase(std::span<const StreamId> ids) const;
  std::size_t erase(std::initializer_list<StreamId> ids) const;
  std::size_t erase(const EntryBatch& batch) const;

  /// Deletes the stream with its groups. False: there was none. A key of another type is refused
  /// with WrongTypeError.
  bool delete_stream() const;

  /// Sets the stream's last id; automatic ids go on from there. It cannot go below the last entry.
  void set_last_id(StreamId id) const;

  // --------------------------------------------------------------------------------- inspection

  /// How many entries there are now; 0 without a stream.
  std::uint64_t length() const;

  /// What the server knows of the stream; all of it empty without one. A field that the server does
  /// not report is nullopt.
  StreamInfo info() const;

  /// With the first `count` entries, and pending entries of each group and consumer; 0: all.
  FullStreamInfo full_info(std::size_t count = 10) const;

  /// The groups; none without a stream.
  std::vector<GroupInfo> groups() const;

  /// The consumers of a group; none without the group.
  std::vector<ConsumerInfo> consumers(std::string_view group) const;

  /// How many entries are pending, from which id to which, and for whom; 0 without the group.
  PendingSummary pending(std::string_view group) const;

  /// Pending entries by id: whose each is, since when, and how often it was delivered. A look that
  /// changes nothing. At most `query.count`: for the next page, start after the last id. None
  /// without the group.
  std::vector<PendingEntry> pending_entries(std::string_view group,
                                            const PendingQuery& query = {}) const;

  /// How far the group has come: what waits, for how long, and with whom. One round trip; what
  /// happens on the server meanwhile can fall between two of the numbers. Not `exists` without the
  /// group.
  GroupHealth group_health(std::string_view group) const;

 private:
  std::shared_ptr<const detail::StreamCore> core_;
};

/// A stream's entries, page by page: a move-only input range of `const Entry&`. An entry is valid
/// until the iterator moves on. Iterate once. ++ and begin() may throw what EventStream's calls
/// throw. Not for two threads at once.
class MILLRACE_EXPORT ReplayRange {
 public:
  class iterator {  // NOLINT(readability-identifier-naming): the name that ranges have
   public:
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    const Entry& operator*() const noexcept { return *range_->position_; }
    const Entry* operator->() const noexcept { return range_->position_; }
    iterator& operator++() {
      range_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return range_->position_ == nullptr; }

   private:
    friend class ReplayRange;
    explicit iterator(ReplayRange* range) noexcept : range_{range} {}
    ReplayRange* range_;
  };

  ReplayRange(ReplayRange&&) noexcept = default;
  ReplayRange& operator=(ReplayRange&&) noexcept = default;
  ~ReplayRange() = default;

  iterator begin();
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class EventStream;
  ReplayRange(const EventStream& stream, RangeStart start, RangeEnd end, std::size_t page);
  void advance();
  void fetch();

  EventStream stream_;
  RangeStart next_;
  RangeEnd end_;
  std::size_t page_;
  EntryBatch batch_{};
  const Entry* position_ = nullptr;
  bool started_ = false;
  bool finished_ = false;
};

/// Reads a stream as it grows. Copyable; not for two threads at once.
class MILLRACE_EXPORT Follower {
 public:
  /// The next entries after position(), oldest first; empty if none came within `block` (0: do not
  /// wait) or `stop` was requested. On an error the position stays, so nothing is skipped.
  EntryBatch next(std::chrono::milliseconds block = std::chrono::milliseconds{500},
                  std::stop_token stop = {});

  /// The id of the last entry that next() returned, or where it starts.
  StreamId position() const noexcept { return position_; }

 private:
  friend class EventStream;
  Follower(const EventStream& stream, StreamId position) : stream_{stream}, position_{position} {}

  EventStream stream_;
  StreamId position_;
};

}  // namespace millrace

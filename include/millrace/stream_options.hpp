#pragma once

#include <millrace/error.hpp>
#include <millrace/export.hpp>
#include <millrace/fields.hpp>
#include <millrace/stream_id.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

namespace millrace {

namespace detail {

/// A count that cannot be negative by mistake: an unsigned variable, or a constant that is not
/// negative. Signed variables, negative constants and bool do not compile.
class Count {
 public:
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) constexpr Count(T value) noexcept
      : value_{value} {}  // NOLINT(google-explicit-constructor)

  template <std::signed_integral T>
  consteval Count(T value)  // NOLINT(google-explicit-constructor)
      : value_{value < 0 ? throw "a count cannot be negative" : static_cast<std::uint64_t>(value)} {
  }

  constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_;
};

}  // namespace detail

/// What to remove from the old end of a stream. Approximate unless exactly(): the server then
/// removes whole nodes only (100 entries by default), which is much cheaper and keeps a few more.
class [[nodiscard]] Trim {
 public:
  /// Keep the newest `count` entries.
  static Trim max_len(detail::Count count) { return Trim{MaxLen{count.value()}}; }

  /// Keep the entries from `id` on.
  static Trim min_id(StreamId id) { return Trim{MinId{id}}; }

  /// Keep what is younger than `age`, by this host's clock at the time of the call. Throws
  /// InvalidArgument if `age` is negative.
  MILLRACE_EXPORT static Trim max_age(std::chrono::milliseconds age);

  /// The same, to the entry.
  Trim exactly() const {
    Trim trim = *this;
    trim.exact_ = true;
    trim.limit_.reset();
    return trim;
  }

  /// Look at no more than about `entries` at once; 0: no bound. An approximate trim only, so this
  /// throws InvalidArgument after exactly().
  MILLRACE_EXPORT Trim limit(detail::Count entries) const;

  struct MaxLen {
    std::uint64_t count;
    friend bool operator==(const MaxLen&, const MaxLen&) = default;
  };
  struct MinId {
    StreamId id;
    friend bool operator==(const MinId&, const MinId&) = default;
  };
  struct MaxAge {
    std::chrono::milliseconds age;
    friend bool operator==(const MaxAge&, const MaxAge&) = default;
  };

  const std::variant<MaxLen, MinId, MaxAge>& threshold() const noexcept { return threshold_; }
  bool is_exact() const noexcept { return exact_; }
  std::optional<std::uint64_t> limit() const noexcept { return limit_; }

  friend bool operator==(const Trim&, const Trim&) = default;

 private:
  explicit Trim(std::variant<MaxLen, MinId, MaxAge> threshold) : threshold_{threshold} {}

  std::variant<MaxLen, MinId, MaxAge> threshold_;
  bool exact_ = false;
  std::optional<std::uint64_t> limit_{};
};

/// The id of an entry to be appended.
class AddId {
 public:
  /// `*`: the server's clock, never below the last id.
  static AddId automatic() noexcept { return AddId{Kind::kAutomatic, {}}; }

  /// This id. It must be above the stream's last one. With it an append whose reply was lost can be
  /// repeated: it cannot be appended twice.
  static AddId exactly(StreamId id) noexcept { return AddId{Kind::kExact, id}; }

  /// `ms-*`: this millisecond, with the next sequence number.
  static AddId at_ms(std::uint64_t ms) noexcept { return AddId{Kind::kAtMs, {ms, 0}}; }

  enum class Kind : std::uint8_t { kAutomatic, kExact, kAtMs };
  Kind kind() const noexcept { return kind_; }
  StreamId id() const noexcept { return id_; }  ///< Its `ms` alone counts for at_ms().

 private:
  AddId(Kind kind, StreamId id) noexcept : kind_{kind}, id_{id} {}

  Kind kind_;
  StreamId id_;
};

/// How to append.
struct AddOptions {
  AddId id = AddId::automatic();
  std::optional<Trim> trim{};  ///< Applied with this append. None: the stream's `retention`.
  bool create_stream = true;   ///< False: append nothing if there is no stream (NOMKSTREAM).
};

/// A typed event; see EventStream::produce.
struct Event {
  std::string type{};
  OwnedFields payload{};
};

/// What became of one append of a batch: an id, an error, or neither (`create_stream` was false and
/// there is no stream).
struct AddResult {
  std::optional<StreamId> id{};
  std::optional<Error> error{};
};

/// How one stream is used.
struct StreamOptions {
  /// Applied with each append. None: appends never trim. A cap can drop entries that a group has
  /// not read, so it is the user's choice.
  std::optional<Trim> retention{};
  /// How long a pending entry must have been idle before autoclaim() and workers take it over.
  /// More than 0, at most ten years, and the same in every process of a group.
  std::chrono::milliseconds claim_min_idle{30'000};
};

/// Where a consumer group starts to read.
class GroupStart {
 public:
  static GroupStart beginning() noexcept { return GroupStart{StreamId::min()}; }  ///< All entries.
  static GroupStart now() noexcept {
    return GroupStart{std::nullopt};
  }  ///< What comes from now on.
  static GroupStart after(StreamId id) noexcept { return GroupStart{id}; }

  /// nullopt: now().
  std::optional<StreamId> id() const noexcept { return id_; }

  friend bool operator==(const GroupStart&, const GroupStart&) = default;

 private:
  explicit GroupStart(std::optional<StreamId> id) noexcept : id_{id} {}
  std::optional<StreamId> id_;
};

/// The lower end of a range; `{}` is the beginning of the stream.
class RangeStart {
 public:
  RangeStart() = default;
  RangeStart(StreamId id) noexcept : id_{id} {}  // NOLINT(google-explicit-constructor): inclusive
  static RangeStart after(StreamId id) noexcept {
    RangeStart start{id};
    start.exclusive_ = true;
    return start;
  }

  StreamId id() const noexcept { return id_; }
  bool exclusive() const noexcept { return exclusive_; }

 private:
  StreamId id_{};
  bool exclusive_ = false;
};

/// The upper end of a range; `{}` is the end of the stream.
class RangeEnd {
 public:
  RangeEnd() = default;
  RangeEnd(StreamId id) noexcept : id_{id} {}  // NOLINT(google-explicit-constructor): inclusive
  static RangeEnd before(StreamId id) noexcept {
    RangeEnd end{id};
    end.exclusive_ = true;
    return end;
  }

  StreamId id() const noexcept { return id_; }
  bool exclusive() const noexcept { return exclusive_; }

 private:
  StreamId id_ = StreamId::max();
  bool exclusive_ = false;
};

/// Where a Follower starts to read.
class FollowStart {
 public:
  static FollowStart beginning() noexcept { return FollowStart{StreamId::min()}; }
  /// After the last entry there is. The Follower turns it into that entry's id at once, so nothing
  /// that is appended between two reads is missed.
  static FollowStart now() noexcept { return FollowStart{std::nullopt}; }
  static FollowStart after(StreamId id) noexcept { return FollowStart{id}; }

  /// nullopt: now().
  std::optional<StreamId> id() const noexcept { return id_; }

 private:
  explicit FollowStart(std::optional<StreamId> id) noexcept : id_{id} {}
  std::optional<StreamId> id_;
};

/// How to read new entries.
struct ReadOptions {
  std::size_t count = 10;  ///< At most so many entries; 0 is refused.
  /// How long to wait for the first; 0: do not wait. At most ten years.
  std::chrono::milliseconds block{500};
  /// Entries count as acknowledged on delivery, so a crash loses them: at most once.
  bool no_ack = false;
  /// Ends the wait at once; the read is then an empty batch. What a group read would have brought
  /// in that moment is pending all the same, or lost with `no_ack`.
  std::stop_token stop{};
};

/// How to take over idle pending entries.
struct AutoclaimOptions {
  /// None: the stream's `claim_min_idle`. At most ten years.
  std::optional<std::chrono::milliseconds> min_idle{};
  StreamId start{};            ///< Where the sweep starts: `{}`, or a page's `next_cursor`.
  std::size_t count = 100;     ///< Entries a page; 0 is refused.
  std::size_t max_pages = 10;  ///< Of one autoclaim() call; 0 is refused.
};

/// How to claim entries by id.
struct ClaimOptions {
  std::optional<std::chrono::milliseconds> idle{};  ///< Set the idle time to this. None: 0.
  std::optional<std::uint64_t> delivery_count{};    ///< Set the count to this. None: one more.
  bool force = false;                 ///< Also make pending what is in the stream but not pending.
  std::optional<StreamId> last_id{};  ///< Move the group's position forward to this.
  /// Set the time of the last delivery to this, by the server's clock; not together with `idle`.
  /// The epoch makes an entry claimable by everybody at once.
  std::optional<std::chrono::system_clock::time_point> time{};
};

/// Which pending entries to list.
struct PendingQuery {
  RangeStart start{};
  RangeEnd end{};
  std::size_t count = 100;                ///< At most so many; 0 is refused.
  std::optional<std::string> consumer{};  ///< Of this consumer alone.
  std::chrono::milliseconds min_idle{0};  ///< For so long at least; at most ten years.
};

}  // namespace millrace

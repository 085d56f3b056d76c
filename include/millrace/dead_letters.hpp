#pragma once

#include <millrace/event_stream.hpp>
#include <millrace/export.hpp>
#include <millrace/fields.hpp>
#include <millrace/stream_id.hpp>
#include <millrace/stream_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// An entry that could not be handled, with its whole story.
///
/// In a stream of dead letters it is an entry with eight fields before the original ones, which
/// follow unchanged: `dlq_stream`, `dlq_id`, `dlq_group`, `dlq_consumer`, `dlq_attempts`,
/// `dlq_failed_ms`, `dlq_first_failed_ms`, `dlq_reason`. One entry of one group can leave two
/// letters where the reply to the first was lost: `stream`, `group` and `entry_id` tell.
struct DeadLetter {
  StreamId id{};               ///< Of the letter in its stream; 0-0 where a sink takes it.
  std::string stream{};        ///< Where the entry was, ...
  StreamId entry_id{};         ///< ... its id there,
  std::string group{};         ///< and the group that could not handle it.
  std::string consumer{};      ///< Who handled it last; empty if it was trimmed while nobody did.
  std::uint64_t attempts = 0;  ///< Starts of the handler.
  std::optional<std::chrono::system_clock::time_point> failed_at{};  ///< The last failure.
  /// The first failure that the worker saw which put it aside.
  std::optional<std::chrono::system_clock::time_point> first_failed_at{};
  std::string reason{};
  OwnedFields fields{};  ///< The payload. None if it was trimmed before anybody had it.
};

/// What happens to entries that a worker gives up.
struct DeadLetterOptions {
  /// False: entries are retried for ever, and Verdict::dead_letter() means retry().
  bool enabled = true;
  /// The stream that letters go to. Empty: `<key>:dlq` if the key has a hash tag, else
  /// `{<key>}:dlq`, which lives in the same cluster slot. A key with a `}` but no tag needs a name.
  std::string stream{};
  /// Letters wait with their entries while there are so many. None: no limit, since dropping a dead
  /// letter loses an event.
  std::optional<std::uint64_t> max_length{};
  /// Takes letters in place of a stream: the entry is acknowledged when it returns, and tried again
  /// if it throws; it may be given one a second time. Called on the thread that renews leases, so
  /// it must be quick.
  std::function<void(const DeadLetter&)> sink{};
};

/// The dead letters of a stream: to look at, to bring back, and to throw away. A copyable handle,
/// safe from any thread; every call throws as those of EventStream do.
///
///     const DeadLetters letters{orders};
///     for (const DeadLetter& letter : letters.list()) std::cout << letter.reason << '\n';
///     letters.redrive_all();
class MILLRACE_EXPORT DeadLetters {
 public:
  /// Of `source`, in the stream that DeadLetterOptions::stream named; empty: its default.
  explicit DeadLetters(const EventStream& source, const std::string& stream = {});

  /// Up to `count` letters, the oldest first. What is in the stream and is no letter is left out.
  std::vector<DeadLetter> list(RangeStart start = {}, RangeEnd end = {},
                               std::size_t count = 100) const;
  std::uint64_t count() const;

  /// Appends the entry to its stream again, with a new id, for all groups; then the letter goes, in
  /// one script. False: there is no such letter of this stream, or it has no payload. A payload of
  /// more than 3,900 fields is appended first, and a lost connection can leave it there twice.
  bool redrive(StreamId letter) const;

  /// What became of an entry that was to be brought back for its group alone.
  enum class Redriven : std::uint8_t {
    kDone,      ///< It is pending again, as if it had never been started; a worker takes it soon.
    kNoLetter,  ///< There is no such letter.
    kTrimmed,   ///< The entry is no longer in the stream: redrive() can append it again.
  };
  /// Brings the entry back under its own id, for the group that could not handle it.
  Redriven redrive_to_group(StreamId letter) const;

  /// redrive() of all letters that there are when it is called. Returns how many. Where it throws,
  /// those before were brought back.
  std::size_t redrive_all() const;

  /// Deletes a letter. False: there was none.
  bool discard(StreamId letter) const;

  /// The stream that the letters are in, for whatever else is to be done with it.
  const EventStream& stream() const noexcept { return letters_; }

 private:
  std::optional<DeadLetter> find(StreamId letter) const;

  EventStream source_;
  EventStream letters_;
};

}  // namespace millrace

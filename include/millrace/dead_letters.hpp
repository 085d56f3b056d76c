#pragma once

#include <millrace/fields.hpp>
#include <millrace/stream_id.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

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
  /// if it throws. Called from the worker's own threads.
  std::function<void(const DeadLetter&)> sink{};
};

}  // namespace millrace

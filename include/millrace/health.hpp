#pragma once

#include <millrace/stream_id.hpp>
#include <millrace/stream_info.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// How far a group has come, as its server tells: see EventStream::group_health().
struct GroupHealth {
  std::string stream{}, group{};
  bool exists = false;       ///< False: there is no such group, or no such stream.
  std::uint64_t length = 0;  ///< Entries in the stream.
  /// As GroupInfo::lag: what the server reckons.
  std::optional<std::int64_t> lag{};
  /// Entries in the stream that were delivered to nobody yet. Where ids prove it, by them: none are
  /// left, or all are. Else `lag`, but never more than `length`: before Redis 8.0 it still counts
  /// what was trimmed. None: unknown, as after deletions in the middle, until the group has read to
  /// the end.
  std::optional<std::uint64_t> unread{};
  std::uint64_t pending = 0;                 ///< Entries delivered and not yet acknowledged.
  std::optional<StreamId> oldest_pending{};  ///< The lowest id of these.
  /// How long ago that entry was appended: from the milliseconds of its id to the server's clock,
  /// or this machine's if the user may not ask; never below 0. Not the idle time, which is short as
  /// long as somebody renews the lease. Says nothing if ids are no times.
  std::optional<std::chrono::milliseconds> oldest_pending_age{};
  StreamId last_delivered_id{};
  std::vector<ConsumerInfo> consumers{};

  /// What the group has yet to finish: unread and pending. None: `unread` is unknown.
  std::optional<std::uint64_t> backlog() const {
    if (!unread) return std::nullopt;
    return *unread + pending;
  }
};

}  // namespace millrace

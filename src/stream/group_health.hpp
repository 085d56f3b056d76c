#pragma once

#include <millrace/health.hpp>
#include <millrace/stream_info.hpp>

#include "core/clock.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace millrace::detail {

/// What a server says, each by a command of its own.
struct HealthReplies {
  StreamInfo stream{};
  std::vector<GroupInfo> groups{};
  std::vector<ConsumerInfo> consumers{};
  PendingSummary pending{};
  Milliseconds now{};  ///< Since the Unix epoch.
};

/// Fills in all but the names, of which `health.group` is given.
void tell_health(GroupHealth& health, HealthReplies replies);

/// Entries of the stream that the group was not given, as far as that is known.
std::optional<std::uint64_t> unread_entries(const StreamInfo& stream, const GroupInfo& group);

}  // namespace millrace::detail

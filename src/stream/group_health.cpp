#include "stream/group_health.hpp"

#include <millrace/event_stream.hpp>

#include "protocol/checks.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/decode_values.hpp"
#include "protocol/server_error.hpp"
#include "stream/stream_core.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace millrace {
namespace detail {
namespace {

enum Asked : std::size_t { kStream, kGroups, kConsumers, kPending, kTime, kAsked };

constexpr std::array<std::string_view, kAsked> kCommands{"XINFO STREAM", "XINFO GROUPS",
                                                         "XINFO CONSUMERS", "XPENDING", "TIME"};

using Replies = std::array<Reply, kAsked>;

Replies ask_all(const StreamCore& core, std::string_view group) {
  Replies replies;
  const PipelineResult result = Pool::of(core.pool).pipeline(
      {.command = kCommands[kStream], .key = core.key, .repeat = Repeat::kSafe},
      [&](RequestBuffer& request) {
        commands::xinfo_stream(request, core.key);
        commands::xinfo_groups(request, core.key);
        commands::xinfo_consumers(request, core.key, group);
        commands::xpending(request, core.key, group);
        request.command("TIME", 1);
      },
      [&](std::size_t index, Reply reply) { replies.at(index) = std::move(reply); });
  if (result.error) result.error->raise();
  return replies;
}

Milliseconds server_time(ReplyView reply) {
  decode::Elements parts{reply, "TIME", "seconds and microseconds"};
  const std::chrono::seconds seconds{decode::integer(parts.next(), "TIME")};
  const std::chrono::microseconds rest{decode::integer(parts.next(), "TIME")};
  return seconds + std::chrono::floor<Milliseconds>(rest);
}

Milliseconds own_time() {
  return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

/// What has come to one of the commands. Empty where it says that there is no stream or no group.
template <typename Decode>
auto answer_to(Asked asked, const StreamCore& core, Replies& replies, Decode decode) {
  return or_empty([&] {
    Reply& reply = replies[asked];
    if (reply.root().is_error()) server_error(reply.root(), kCommands[asked], core.key).raise();
    return core.decoded(kCommands[asked], std::move(reply), decode);
  });
}

}  // namespace

std::optional<std::uint64_t> unread_entries(const StreamInfo& stream, const GroupInfo& group) {
  if (stream.length == 0 || group.last_delivered_id >= stream.last_generated_id) return 0;
  if (stream.first_entry && group.last_delivered_id < stream.first_entry->id) return stream.length;
  if (stream.last_entry && group.last_delivered_id >= stream.last_entry->id) return 0;
  if (!group.lag || *group.lag < 0) return std::nullopt;
  return std::min(static_cast<std::uint64_t>(*group.lag), stream.length);
}

void tell_health(GroupHealth& health, HealthReplies replies) {
  health.length = replies.stream.length;
  const auto group = std::find_if(replies.groups.begin(), replies.groups.end(),
                                  [&](const GroupInfo& info) { return info.name == health.group; });
  if (group == replies.groups.end()) return;
  health.exists = true;
  health.lag = group->lag;
  health.unread = unread_entries(replies.stream, *group);
  health.last_delivered_id = group->last_delivered_id;
  health.pending = replies.pending.count;
  health.oldest_pending = replies.pending.lowest;
  if (replies.pending.lowest) {
    const auto now = static_cast<std::uint64_t>(replies.now.count());
    const std::uint64_t then = std::min(replies.pending.lowest->ms, now);
    health.oldest_pending_age = Milliseconds{static_cast<Milliseconds::rep>(now - then)};
  }
  health.consumers = std::move(replies.consumers);
}

}  // namespace detail

GroupHealth EventStream::group_health(std::string_view group) const {
  detail::checks::name("group", group);
  auto replies = detail::ask_all(*core_, group);
  const auto answer_to = [&](detail::Asked asked, auto decode) {
    return detail::answer_to(asked, *core_, replies, decode);
  };
  detail::HealthReplies told{.stream = answer_to(detail::kStream, detail::decode::stream_info),
                             .groups = answer_to(detail::kGroups, detail::decode::groups),
                             .consumers = answer_to(detail::kConsumers, detail::decode::consumers),
                             .pending = answer_to(detail::kPending, detail::decode::pending),
                             .now = detail::own_time()};
  try {
    told.now = answer_to(detail::kTime, detail::server_time);
  } catch (const PermissionError&) {  // NOLINT(bugprone-empty-catch): then by our own clock
  }
  GroupHealth health{.stream = core_->key, .group = std::string{group}};
  detail::tell_health(health, std::move(told));
  return health;
}

}  // namespace millrace

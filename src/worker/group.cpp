#include "worker/group.hpp"

#include "protocol/commands.hpp"
#include "protocol/decode.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {

bool Group::create(Connection& connection, const GroupStart& start) const {
  try {
    connection.call({.command = "XGROUP CREATE", .key = config_.key}, [&](RequestBuffer& request) {
      commands::xgroup_create(request, config_.key, config_.group, start);
    });
    return true;
  } catch (const ServerError& error) {
    if (error.prefix() == "BUSYGROUP") return false;
    throw;
  }
}

bool Group::ensure(Connection& connection, const GroupStart& start) const {
  try {
    return create(connection, start);
  } catch (const Error& error) {
    // A server that is out of memory, or does not allow this user to make groups, says so although
    // the group is there.
    const bool may_be_there =
        error.code() == Error::Code::kOutOfMemory || error.code() == Error::Code::kPermission;
    if (!may_be_there || !is_there(connection)) throw;
    return false;
  }
}

void Group::open(Connection& connection) {
  ensure(connection, config_.group_start);
  observe(connection);
}

bool Group::is_there(Connection& connection) const {
  try {
    const Reply reply = connection.call(
        {.command = "XINFO GROUPS", .key = config_.key},
        [&](RequestBuffer& request) { commands::xinfo_groups(request, config_.key); });
    return position_in(decode::groups(reply.root())).has_value();
  } catch (const ServerError&) {
    return false;  // or nobody may know
  }
}

void Group::observe(Connection& connection) {
  std::optional<std::vector<GroupInfo>> groups;
  std::optional<PendingSummary> pending;
  std::optional<StreamInfo> info;
  // The position is read before the pending list: what is delivered between the two has an id above
  // this position, so the mark cannot pass it.
  const PipelineResult result = connection.pipeline(
      {.command = "XINFO GROUPS", .key = config_.key},
      [&](RequestBuffer& request) {
        commands::xinfo_groups(request, config_.key);
        commands::xpending(request, config_.key, config_.group);
        commands::xinfo_stream(request, config_.key);
      },
      [&](std::size_t index, Reply reply) {
        if (reply.root().is_error()) return;
        if (index == 0) groups = decode::groups(reply.root());
        if (index == 1) pending = decode::pending(reply.root());
        if (index == 2) info = decode::stream_info(reply.root());
      });
  if (result.error) result.error->raise();

  std::lock_guard lock{mutex_};
  if (!groups || !pending) return;
  const auto position = position_in(*groups);
  if (!position) return;  // Nor does the stream's count tell of the one that had our group.
  mark_ = pending->lowest ? std::min(*position, pending->lowest->prev()) : *position;
  if (info) entries_added_ = info->entries_added;
}

std::optional<StreamId> Group::position_in(const std::vector<GroupInfo>& groups) const {
  const auto ours = std::find_if(groups.begin(), groups.end(), [&](const GroupInfo& group) {
    return group.name == config_.group;
  });
  if (ours == groups.end()) return std::nullopt;
  return ours->last_delivered_id;
}

void Group::seen(StreamId id) {
  std::lock_guard lock{mutex_};
  last_seen_ = std::max(last_seen_, id);
}

std::optional<StreamInfo> Group::stream_info(Connection& connection) const {
  try {
    const Reply reply = connection.call(
        {.command = "XINFO STREAM", .key = config_.key},
        [&](RequestBuffer& request) { commands::xinfo_stream(request, config_.key); });
    return decode::stream_info(reply.root());
  } catch (const NoGroupError&) {
    return std::nullopt;  // there is no such stream
  }
}

bool Group::is_the_same_stream(Connection& connection, const StreamInfo& now) const {
  StreamId seen;
  StreamId done;
  std::optional<std::uint64_t> added;
  {
    std::lock_guard lock{mutex_};
    seen = last_seen_;
    done = mark_.value_or(StreamId{});
    added = entries_added_;
  }
  if (now.last_generated_id < std::max(seen, done)) return false;
  // A stream that is made new counts what was added from 0 again.
  const bool counts_on = added && now.entries_added && *now.entries_added >= *added;
  if (seen == StreamId{}) return counts_on;
  if (added && now.entries_added && !counts_on) return false;
  // Is the last entry that we were given still there? If not, it may have been deleted, or trimmed
  // away.
  const Reply reply = connection.call(
      {.command = "XRANGE", .key = config_.key},
      [&](RequestBuffer& request) { commands::xrange(request, config_.key, seen, seen, 1); });
  if (reply.root().size() > 0) return true;
  if (now.max_deleted_id && *now.max_deleted_id >= seen) return true;
  const bool trimmed_past = !now.first_entry || now.first_entry->id > seen;
  return trimmed_past && counts_on;
}

Group::Remade Group::remake(Connection& connection) {
  const auto info = stream_info(connection);
  Remade remade{.another_stream = !info || !is_the_same_stream(connection, *info)};
  {
    std::lock_guard lock{mutex_};
    if (remade.another_stream) {
      mark_ = StreamId{};
      last_seen_ = StreamId{};
      entries_added_.reset();
    }
    remade.position = mark_.value_or(StreamId{});
  }
  remade.created = ensure(connection, GroupStart::after(remade.position));
  return remade;
}

}  // namespace millrace::detail

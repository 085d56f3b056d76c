#include "worker/group.hpp"

#include "protocol/commands.hpp"
#include "protocol/decode.hpp"

#include <algorithm>

namespace millrace::detail {

scripts::Opened Group::run_open(Connection& connection,
                                const std::optional<scripts::Remaking>& again) {
  scripts::Opened opened =
      scripts::open([&](auto&&... args) { return connection.eval(args...); }, config_, again);
  std::lock_guard lock{mutex_};
  making_ = opened.making;
  note_added(opened.entries_added);
  return opened;
}

bool Group::open(Connection& connection) {
  return run_open(connection, std::nullopt).name_was_free;
}

void Group::note_added(std::optional<std::uint64_t> entries_added) {
  // A stream that counts less than before is not the one that had our group: by its own count it
  // would pass for it.
  if (entries_added) entries_added_ = std::max(entries_added_, entries_added);
}

void Group::seen(StreamId id) {
  std::lock_guard lock{mutex_};
  last_seen_ = std::max(last_seen_, id);
}

void Group::renewed(TimePoint sent_at, std::optional<StreamId> mark,
                    std::optional<std::uint64_t> entries_added) {
  std::lock_guard lock{mutex_};
  renewed_at_ = std::max(renewed_at_, sent_at);
  if (mark) mark_ = mark;
  note_added(entries_added);
}

void Group::renew(scripts::Eval eval, const Clock& clock) {
  const TimePoint sent_at = clock.now();
  const auto renewal = scripts::renew(eval, config_, {});
  renewed(sent_at, renewal.mark, renewal.entries_added);
}

TimePoint Group::renewed_at() const {
  std::lock_guard lock{mutex_};
  return renewed_at_;
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

std::optional<Group::Record> Group::record(Connection& connection) const {
  const Reply reply =
      connection.call({.command = "HMGET", .key = config_.record, .repeat = Repeat::kSafe},
                      [&](RequestBuffer& request) {
                        request.command("HMGET", 4).arg(config_.record).arg("made").arg("mark");
                      });
  if (reply.root()[0].is_nil()) return std::nullopt;
  return Record{.mark = scripts::decode_mark(reply.root()[1].text())};
}

Group::Remade Group::remake(Connection& connection) {
  const auto info = stream_info(connection);
  const auto recorded = record(connection);
  // Who has flushed the record has flushed the stream, however much the new one looks like it.
  Remade remade{.another_stream = !info || !recorded || !is_the_same_stream(connection, *info)};
  scripts::Remaking again;
  {
    std::lock_guard lock{mutex_};
    if (remade.another_stream) {
      mark_ = StreamId{};
      last_seen_ = StreamId{};
      entries_added_.reset();
    } else if (recorded->mark) {
      mark_ = std::max(mark_.value_or(StreamId{}), *recorded->mark);
    }
    again = {.making = making_, .position = mark_.value_or(StreamId{})};
  }
  const scripts::Opened opened = run_open(connection, again);
  remade.created = opened.made;
  remade.position = opened.position;
  return remade;
}

}  // namespace millrace::detail

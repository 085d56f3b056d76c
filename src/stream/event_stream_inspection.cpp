#include <millrace/event_stream.hpp>

#include "protocol/checks.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "stream/stream_core.hpp"

namespace millrace {

using detail::or_empty;
using detail::Repeat;
using detail::RequestBuffer;

namespace checks = detail::checks;
namespace commands = detail::commands;
namespace decode = detail::decode;

std::uint64_t EventStream::length() const {
  return core_->ask(
      "XLEN", Repeat::kSafe, [&](RequestBuffer& request) { commands::xlen(request, core_->key); },
      decode::count);
}

StreamInfo EventStream::info() const {
  return or_empty([&] {
    return core_->ask(
        "XINFO STREAM", Repeat::kSafe,
        [&](RequestBuffer& request) { commands::xinfo_stream(request, core_->key); },
        decode::stream_info);
  });
}

FullStreamInfo EventStream::full_info(std::size_t count) const {
  if (count != 0) checks::count("count", count);
  return or_empty([&] {
    return core_->ask(
        "XINFO STREAM FULL", Repeat::kSafe,
        [&](RequestBuffer& request) { commands::xinfo_stream_full(request, core_->key, count); },
        decode::full_stream_info);
  });
}

std::vector<GroupInfo> EventStream::groups() const {
  return or_empty([&] {
    return core_->ask(
        "XINFO GROUPS", Repeat::kSafe,
        [&](RequestBuffer& request) { commands::xinfo_groups(request, core_->key); },
        decode::groups);
  });
}

std::vector<ConsumerInfo> EventStream::consumers(std::string_view group) const {
  checks::name("group", group);
  return or_empty([&] {
    return core_->ask(
        "XINFO CONSUMERS", Repeat::kSafe,
        [&](RequestBuffer& request) { commands::xinfo_consumers(request, core_->key, group); },
        decode::consumers);
  });
}

PendingSummary EventStream::pending(std::string_view group) const {
  checks::name("group", group);
  return or_empty([&] {
    return core_->ask(
        "XPENDING", Repeat::kSafe,
        [&](RequestBuffer& request) { commands::xpending(request, core_->key, group); },
        decode::pending);
  });
}

std::vector<PendingEntry> EventStream::pending_entries(std::string_view group,
                                                       const PendingQuery& query) const {
  checks::name("group", group);
  checks::pending(query);
  if (commands::is_beyond_all_ids(query.start, query.end)) return {};
  return or_empty([&] {
    return core_->ask(
        "XPENDING", Repeat::kSafe,
        [&](RequestBuffer& request) {
          commands::xpending_entries(request, core_->key, group, query);
        },
        decode::pending_entries);
  });
}

}  // namespace millrace

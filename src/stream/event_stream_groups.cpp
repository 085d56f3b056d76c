#include <millrace/event_stream.hpp>

#include "protocol/checks.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "stream/blocking_read.hpp"
#include "stream/stream_core.hpp"

namespace millrace {

using detail::Repeat;
using detail::RequestBuffer;

namespace checks = detail::checks;
namespace commands = detail::commands;
namespace decode = detail::decode;

namespace {

void check_names(std::string_view group, std::string_view consumer) {
  checks::name("group", group);
  checks::name("consumer", consumer);
}

/// Of XGROUP CREATE and SETID, whose answer is OK or an error.
constexpr auto kNothing = [](detail::ReplyView) {};

}  // namespace

bool EventStream::ensure_group(std::string_view group, GroupStart start) const {
  checks::name("group", group);
  try {
    core_->ask(
        "XGROUP CREATE", Repeat::kNever,
        [&](RequestBuffer& request) { commands::xgroup_create(request, core_->key, group, start); },
        kNothing);
    return true;
  } catch (const ServerError& error) {
    if (error.prefix() == "BUSYGROUP") return false;
    throw;
  }
}

bool EventStream::delete_group(std::string_view group) const {
  checks::name("group", group);
  return detail::or_empty([&] {
    return 0 < core_->ask(
                   "XGROUP DESTROY", Repeat::kNever,
                   [&](RequestBuffer& request) {
                     commands::xgroup_destroy(request, core_->key, group);
                   },
                   decode::count);
  });
}

void EventStream::set_group_position(std::string_view group, GroupStart start) const {
  checks::name("group", group);
  core_->ask(
      "XGROUP SETID", Repeat::kNever,
      [&](RequestBuffer& request) { commands::xgroup_setid(request, core_->key, group, start); },
      kNothing);
}

bool EventStream::create_consumer(std::string_view group, std::string_view consumer) const {
  check_names(group, consumer);
  return 0 < core_->ask(
                 "XGROUP CREATECONSUMER", Repeat::kNever,
                 [&](RequestBuffer& request) {
                   commands::xgroup_createconsumer(request, core_->key, group, consumer);
                 },
                 decode::count);
}

EntryBatch EventStream::consume(std::string_view group, std::string_view consumer,
                                const ReadOptions& options) const {
  check_names(group, consumer);
  return detail::blocking_read(*core_, "XREADGROUP", Repeat::kNever, options,
                               [&](RequestBuffer& request, const ReadOptions& now) {
                                 commands::xreadgroup(request, core_->key, group, consumer, now);
                               });
}

EntryBatch EventStream::consume_own_pending(std::string_view group, std::string_view consumer,
                                            StreamId after, std::size_t count) const {
  check_names(group, consumer);
  checks::count("count", count);
  // Nothing is above it, and the server would take it for `>`.
  if (after == StreamId::max()) return {};
  return core_->ask(
      "XREADGROUP", Repeat::kNever,
      [&](RequestBuffer& request) {
        commands::xreadgroup_pending(request, core_->key, group, consumer, after, count);
      },
      decode::read);
}

std::size_t EventStream::ack(std::string_view group, std::span<const StreamId> ids) const {
  checks::name("group", group);
  checks::words("XACK", commands::xack_words(ids.size()));
  if (ids.empty()) return 0;
  return core_->ask(
      "XACK", Repeat::kNever,
      [&](RequestBuffer& request) { commands::xack(request, core_->key, group, ids); },
      decode::count);
}

std::size_t EventStream::ack(std::string_view group, std::initializer_list<StreamId> ids) const {
  return ack(group, std::span<const StreamId>{ids.begin(), ids.size()});
}

std::size_t EventStream::ack(std::string_view group, const EntryBatch& batch) const {
  return ack(group, batch.ids());
}

}  // namespace millrace

#include "worker/scripts.hpp"

#include "millrace_scripts.hpp"
#include "protocol/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace millrace::detail::scripts {
namespace {

Reply run(Eval eval, std::string_view name, const Script& script, const Consumer& consumer,
          std::span<const std::string_view> args) {
  const std::array keys{consumer.key};
  return eval({.command = name, .key = consumer.key}, script, keys, args);
}

/// The reply of take.lua and recover.lua: that of XAUTOCLAIM, and a fourth slot.
Taken decode_taken(Reply reply) {
  std::vector<std::uint64_t> deliveries;
  for (const ReplyView count : reply.root()[3]) deliveries.push_back(decode::count(count));
  AutoclaimPage page = decode::autoclaim(std::move(reply));
  if (page.claimed.size() != deliveries.size()) {
    throw ProtocolError{"a script answered with other counts than entries"};
  }
  return {.entries = std::move(page.claimed),
          .deliveries = std::move(deliveries),
          .deleted_ids = std::move(page.deleted_ids),
          .next_cursor = page.next_cursor};
}

Taken run_page(Eval eval, std::string_view name, const Script& script, const Consumer& consumer,
               std::span<const std::string_view> first, std::span<const StreamId> left_out) {
  std::vector<std::string> ids;
  ids.reserve(left_out.size());
  for (const StreamId id : left_out) ids.push_back(id.to_string());
  std::vector<std::string_view> args{first.begin(), first.end()};
  args.insert(args.end(), ids.begin(), ids.end());
  return decode_taken(run(eval, name, script, consumer, args));
}

}  // namespace

Taken take(Eval eval, const Consumer& consumer, Milliseconds min_idle, StreamId cursor,
           std::size_t count, std::span<const StreamId> left_out) {
  const auto idle = fmt::to_string(min_idle.count());
  const auto start = cursor.to_string();
  const auto limit = fmt::to_string(count);
  const std::array<std::string_view, 5> args{consumer.group, consumer.name, idle, start, limit};
  return run_page(eval, "XAUTOCLAIM (by script)", kTakeScript, consumer, args, left_out);
}

Taken recover(Eval eval, const Consumer& consumer, StreamId after, std::size_t count,
              std::span<const StreamId> left_out) {
  const auto start = after == StreamId{} ? std::string{"-"} : fmt::format("({}", after.to_string());
  const auto limit = fmt::to_string(count);
  const std::array<std::string_view, 4> args{consumer.group, consumer.name, start, limit};
  return run_page(eval, "XPENDING (by script)", kRecoverScript, consumer, args, left_out);
}

std::vector<Holding> hold(Eval eval, const Consumer& consumer, Milliseconds idle,
                          std::span<const Hold> holds) {
  std::vector<std::string> words{fmt::to_string(idle.count())};
  words.reserve(1 + 3 * holds.size());
  for (const Hold& hold : holds) {
    words.push_back(hold.id.to_string());
    words.push_back(fmt::to_string(hold.expected));
    words.push_back(fmt::to_string(hold.next));
  }
  std::vector<std::string_view> args{consumer.group, consumer.name};
  args.insert(args.end(), words.begin(), words.end());

  const Reply reply = run(eval, "XCLAIM (by script)", kHoldScript, consumer, args);
  std::vector<Holding> found;
  found.reserve(holds.size());
  for (const ReplyView answer : reply.root()) {
    found.push_back(answer.integer() == 1   ? Holding::kOurs
                    : answer.integer() == 2 ? Holding::kTrimmed
                                            : Holding::kNotOurs);
  }
  if (found.size() != holds.size()) {
    throw ProtocolError{"a script answered for other entries than it was asked about"};
  }
  return found;
}

std::vector<StreamId> release(Eval eval, const Consumer& consumer, Milliseconds min_idle,
                              std::span<const Hold> holds) {
  std::vector<StreamId> released;
  for (std::size_t at = 0; at < holds.size(); at += kMostIds) {
    const auto some = holds.subspan(at, std::min(kMostIds, holds.size() - at));
    const auto found = hold(eval, consumer, min_idle, some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (found[i] == Holding::kOurs) released.push_back(some[i].id);
    }
  }
  return released;
}

}  // namespace millrace::detail::scripts

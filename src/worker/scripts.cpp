#include "worker/scripts.hpp"

#include "millrace_scripts.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/server_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace millrace::detail::scripts {
namespace {

/// As common.lua cuts them.
constexpr std::int64_t kMostDeliveries = 1'000'000'000;

/// The arguments of one script: who runs it stands in front.
class Args {
 public:
  Args(const WorkerConfig& config, std::size_t more) {
    words_.reserve(3 + more);
    add(config.group).add(config.consumer).add(config.token);
  }

  Args& add(std::string_view word) {
    words_.emplace_back(word);
    return *this;
  }
  Args& add(std::uint64_t number) { return add(std::string_view{fmt::to_string(number)}); }
  Args& add(Milliseconds time) { return add(std::string_view{fmt::to_string(time.count())}); }
  Args& add(StreamId id) { return add(std::string_view{id.to_string()}); }

  /// On the keys that it uses, and no others: who may not write dead letters may do the rest.
  Reply run(Eval eval, std::string_view command, const Script& script,
            const WorkerConfig& config) const {
    return run_on(eval, command, script, config, 2);
  }
  Reply run_with_letters(Eval eval, std::string_view command, const Script& script,
                         const WorkerConfig& config) const {
    return run_on(eval, command, script, config, config.letters.to_stream() ? 3 : 2);
  }

 private:
  Reply run_on(Eval eval, std::string_view command, const Script& script,
               const WorkerConfig& config, std::size_t count) const {
    const std::array<std::string_view, 3> keys{config.key, config.record, config.letters.stream};
    const std::vector<std::string_view> args{words_.begin(), words_.end()};
    return eval({.command = command, .key = config.key}, script, std::span{keys}.first(count),
                args);
  }

  std::vector<std::string> words_;
};

/// The limit of the dead letters, as the scripts take it.
std::string letter_limit(const WorkerConfig& config) {
  if (!config.letters.enabled) return "-";
  if (!config.letters.to_stream()) return "sink";
  return config.letters.max_length ? fmt::to_string(*config.letters.max_length) : std::string{};
}

/// The reply of take.lua and retake.lua: that of XAUTOCLAIM, and two more slots.
Taken decode_taken(Reply reply) {
  std::vector<std::uint64_t> deliveries;
  for (const ReplyView count : reply.root()[3]) deliveries.push_back(decode::count(count));
  std::vector<Trimmed> trimmed;
  for (const ReplyView one : reply.root()[4]) {
    trimmed.push_back({decode::id(one[0]), std::string{one[1].text()}, decode::count(one[2])});
  }
  AutoclaimPage page = decode::autoclaim(std::move(reply));
  if (page.claimed.size() != deliveries.size()) {
    throw ProtocolError{"a script answered with other counts than entries"};
  }
  return {.entries = std::move(page.claimed),
          .deliveries = std::move(deliveries),
          .deleted_ids = std::move(page.deleted_ids),
          .next_cursor = page.next_cursor,
          .trimmed = std::move(trimmed)};
}

std::optional<std::uint64_t> decode_added(ReplyView answer) {
  if (!answer.is_integer()) return std::nullopt;
  return decode::count(answer);
}

Reply run_hold(Eval eval, const WorkerConfig& config, std::string_view min_idle,
               std::span<const Hold> holds) {
  Args args{config, 1 + 4 * holds.size()};
  args.add(min_idle);
  for (const Hold& hold : holds) {
    args.add(hold.id).add(hold.expected).add(hold.next).add(hold.idle);
  }
  return args.run(eval, "XCLAIM (by script)", kHoldScript, config);
}

constexpr auto kLastHolding = static_cast<std::int64_t>(Holding::kGone);

std::vector<Holding> decode_found(ReplyView answers, std::size_t asked) {
  std::vector<Holding> found;
  found.reserve(asked);
  for (const ReplyView answer : answers) {
    const auto code = answer.integer();
    found.push_back(code >= 0 && code <= kLastHolding ? static_cast<Holding>(code)
                                                      : Holding::kNotOurs);
  }
  if (found.size() != asked) {
    throw ProtocolError{"a script answered for other entries than it was asked about"};
  }
  return found;
}

std::string milliseconds_of(std::optional<WallTime> time) {
  if (!time) return {};
  return fmt::to_string(std::chrono::duration_cast<Milliseconds>(time->time_since_epoch()).count());
}

}  // namespace

Taken take(Eval eval, const WorkerConfig& config, StreamId cursor, std::size_t count) {
  Args args{config, 4};
  args.add(config.min_idle).add(cursor).add(count).add(letter_limit(config));
  return decode_taken(args.run_with_letters(eval, "XCLAIM (by script)", kTakeScript, config));
}

std::vector<PendingEntry> list_pending(Connection& connection, const WorkerConfig& config,
                                       StreamId after, std::size_t count, const CallSpec& spec) {
  PendingQuery query{.count = count, .consumer = config.consumer};
  if (after != StreamId{}) query.start = RangeStart::after(after);
  const Reply reply = connection.call(spec, [&](RequestBuffer& request) {
    commands::xpending_entries(request, config.key, config.group, query);
  });
  return decode::pending_entries(reply.root());
}

std::vector<Pending> list_own(Connection& connection, const WorkerConfig& config, StreamId after,
                              std::size_t count, const CallSpec& spec) {
  std::vector<Pending> own;
  for (const PendingEntry& entry : list_pending(connection, config, after, count, spec)) {
    own.push_back({entry.id, static_cast<std::uint64_t>(
                                 std::clamp<std::int64_t>(entry.deliveries, 0, kMostDeliveries))});
  }
  return own;
}

Taken retake(Eval eval, const WorkerConfig& config, std::span<const Pending> pending) {
  Args args{config, 1 + 2 * pending.size()};
  args.add(letter_limit(config));
  for (const Pending& entry : pending) args.add(entry.id).add(entry.deliveries);
  return decode_taken(args.run(eval, "XCLAIM (by script)", kRetakeScript, config));
}

std::vector<Holding> hold(Eval eval, const WorkerConfig& config, std::span<const Hold> holds) {
  std::vector<Holding> found;
  for (std::size_t at = 0; at < holds.size(); at += kMostIds) {
    const auto some = holds.subspan(at, std::min(kMostIds, holds.size() - at));
    const Reply reply = run_hold(eval, config, {}, some);
    const auto answers = decode_found(reply.root()[0], some.size());
    found.insert(found.end(), answers.begin(), answers.end());
  }
  return found;
}

std::optional<StreamId> decode_mark(std::string_view mark) {
  const bool just_before = mark.starts_with('(');
  if (just_before) mark.remove_prefix(1);
  const auto id = StreamId::try_parse(mark);
  return id && just_before && *id != StreamId{} ? id->prev() : id;
}

Renewal renew(Eval eval, const WorkerConfig& config, std::span<const Hold> holds) {
  const auto min_idle = fmt::to_string(config.min_idle.count());
  const Reply reply = run_hold(eval, config, min_idle, holds);
  Renewal renewal{.found = decode_found(reply.root()[0], holds.size()),
                  .pending = static_cast<std::size_t>(decode::count(reply.root()[1]))};
  renewal.mark = decode_mark(reply.root()[2].text());
  renewal.entries_added = decode_added(reply.root()[3]);
  return renewal;
}

std::span<const std::string_view> letter_names() {
  static constexpr std::array<std::string_view, 8> kNames{
      "dlq_stream",   "dlq_id",        "dlq_group",           "dlq_consumer",
      "dlq_attempts", "dlq_failed_ms", "dlq_first_failed_ms", "dlq_reason"};
  return kNames;
}

std::vector<std::string> letter_head(const WorkerConfig& config, const Settlement& settlement) {
  const std::array values{config.key,
                          settlement.work.ticket.id.to_string(),
                          config.group,
                          config.consumer,
                          fmt::to_string(settlement.attempts),
                          milliseconds_of(settlement.failed),
                          milliseconds_of(settlement.work.first_failed),
                          settlement.reason};
  std::vector<std::string> words;
  for (std::size_t i = 0; i < values.size(); ++i) {
    words.emplace_back(letter_names()[i]);
    words.push_back(values[i]);
  }
  return words;
}

Buried bury(Eval eval, const WorkerConfig& config, const Burial& burial) {
  const Settlement& what = burial.settlement;
  const Entry& entry = what.work.entry;
  Args args{config, 9 + 2 * entry.size()};
  args.add(what.work.ticket.id).add(what.work.deliveries).add(what.attempts);
  args.add(milliseconds_of(what.failed)).add(milliseconds_of(what.work.first_failed));
  args.add(what.reason).add(letter_limit(config)).add(what.owner);
  switch (burial.payload) {
    case Burial::Payload::kGiven:
      args.add("given");
      for (const auto& [name, value] : entry) args.add(name).add(value);
      break;
    case Burial::Payload::kInStream:
      args.add("stream");
      break;
    case Burial::Payload::kWritten:
      args.add("written");
      break;
  }
  const Reply reply =
      burial.payload == Burial::Payload::kWritten
          ? args.run(eval, "XACK (dead letter, by script)", kBuryScript, config)
          : args.run_with_letters(eval, "XADD (dead letter, by script)", kBuryScript, config);
  const ReplyView answer = reply.root();
  if (answer.is_integer()) {
    return answer.integer() == 1   ? Buried::kBuried
           : answer.integer() == 2 ? Buried::kCountedAnew
                                   : Buried::kNotOurs;
  }
  if (answer.text().empty()) throw ProtocolError{"a script did not say whether it buried"};
  throw LetterRefused{
      server_error(answer.text(), {.command = "XADD", .key = config.letters.stream})};
}

Opened open(Eval eval, const WorkerConfig& config, const std::optional<Remaking>& again) {
  Args args{config, 6};
  const auto start = config.group_start.id();
  args.add(start ? start->to_string() : std::string{"$"}).add(config.min_idle);
  args.add(config.lease_renew_every * 3 / 2).add(random_word());
  args.add(again ? again->making : std::string{});
  args.add(again ? again->position.to_string() : std::string{});
  const Reply reply = args.run(eval, "XGROUP CREATE (by script)", kOpenScript, config);
  const ReplyView root = reply.root();
  if (!root[0].is_integer() || !root[3].is_integer()) {
    throw ProtocolError{"a script did not say whether it made the group"};
  }
  return {.made = root[0].integer() == 1,
          .making = std::string{root[1].text()},
          .position = StreamId::try_parse(root[2].text()).value_or(StreamId{}),
          .name_was_free = root[3].integer() == 1,
          .entries_added = decode_added(root[4])};
}

void leave(Eval eval, const WorkerConfig& config) {
  Args{config, 0}.run(eval, "XGROUP DELCONSUMER (by script)", kLeaveScript, config);
}

}  // namespace millrace::detail::scripts

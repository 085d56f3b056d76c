#include "worker/settling.hpp"

#include "net/deadline.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/server_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

/// What waits is done in pieces of so many.
constexpr std::size_t kMostSettlements = scripts::kMostIds;

DeadLetter letter_of(const WorkerConfig& config, const Settlement& burial) {
  return {.stream = config.key,
          .entry_id = burial.work.ticket.id,
          .group = config.group,
          .consumer = config.consumer,
          .attempts = burial.attempts,
          .failed_at = burial.failed,
          .first_failed_at = burial.work.first_failed,
          .reason = burial.reason,
          .fields = burial.work.entry.to_owned().fields};
}

}  // namespace

Milliseconds idle_until(TimePoint due, TimePoint now, Milliseconds min_idle) {
  return std::max(min_idle - left_until(due, now), Milliseconds{0});
}

void Settling::settle(Server server, TimePoint until) {
  refusal_.reset();
  is_early_ = false;
  for (std::size_t waiting = shared_.ledger.settlements(); waiting > 0;) {
    auto some = shared_.ledger.take_settlements(std::min(waiting, kMostSettlements));
    if (some.empty()) return;
    waiting -= std::min(waiting, some.size());
    const auto burials = std::stable_partition(some.begin(), some.end(), [](const Settlement& one) {
      return one.kind == Settlement::Kind::kPark;
    });
    std::vector<Settlement> to_bury{std::make_move_iterator(burials),
                                    std::make_move_iterator(some.end())};
    some.erase(burials, some.end());
    auto next = to_bury.begin();
    try {
      park(server, std::move(some));
      while (next != to_bury.end() && shared_.clock.now() < until) {
        bury(server, std::move(*next++));
      }
    } catch (...) {
      for (; next != to_bury.end(); ++next) shared_.ledger.unsettled(std::move(*next));
      throw;
    }
    if (next == to_bury.end()) continue;
    for (; next != to_bury.end(); ++next) shared_.ledger.unsettled(std::move(*next));
    return;
  }
}

void Settling::park(Server server, std::vector<Settlement> parks) {
  if (parks.empty()) return;
  const TimePoint now = shared_.clock.now();
  std::vector<scripts::Hold> holds;
  holds.reserve(parks.size());
  for (const Settlement& one : parks) {
    holds.push_back({.id = one.work.ticket.id,
                     .expected = one.work.deliveries,
                     .next = one.work.deliveries,
                     .idle = idle_until(one.due, now, shared_.config.min_idle)});
  }
  std::vector<scripts::Holding> found;
  try {
    found = scripts::hold(server.eval, shared_.config, holds);
  } catch (...) {
    for (Settlement& one : parks) shared_.ledger.unsettled(std::move(one));
    throw;
  }
  for (std::size_t i = 0; i < parks.size(); ++i) {
    if (found[i] == scripts::Holding::kCountedAnew) {
      wait_for_count(std::move(parks[i]));
    } else if (found[i] == scripts::Holding::kTrimmed ||
               (found[i] == scripts::Holding::kGone && !parks[i].had_no_lease)) {
      // Nothing is there to wait in: it waits here, and is handled from memory.
      shared_.ledger.rest_in_memory(parks[i]);
    } else {
      shared_.ledger.settled(parks[i], found[i] == scripts::Holding::kOurs);
    }
  }
}

void Settling::wait_for_count(Settlement&& settlement) {
  is_early_ = true;
  shared_.ledger.unsettled(std::move(settlement));
}

void Settling::bury(Server server, Settlement burial) {
  scripts::Buried done{};
  try {
    done = write(server, burial);
  } catch (const scripts::LetterRefused& refused) {
    // Nothing is acknowledged, and others go on.
    refusal_ = refused.why;
    return shared_.ledger.unsettled(std::move(burial));
  } catch (const PermissionError& error) {
    refusal_ = error;  // the same: a server refuses a script as a whole if it may not use a key
    return shared_.ledger.unsettled(std::move(burial));
  } catch (...) {
    shared_.ledger.unsettled(std::move(burial));
    throw;
  }
  if (done == scripts::Buried::kCountedAnew) return wait_for_count(std::move(burial));
  const bool is_ours = done == scripts::Buried::kBuried;
  if (is_ours) tell_of(burial);
  shared_.ledger.settled(burial, is_ours);
}

scripts::Buried Settling::write(Server server, const Settlement& burial) {
  using Payload = scripts::Burial::Payload;
  const WorkerConfig& config = shared_.config;
  const auto run = [&](Payload payload) {
    return scripts::bury(server.eval, config, {.settlement = burial, .payload = payload});
  };
  if (!config.letters.enabled) return run(Payload::kWritten);
  if (!config.letters.to_stream()) {
    // Asked first, so that a sink hears of nothing that is a peer's.
    if (!burial.trimmed) {
      if (const auto obstacle = obstacle_to(server, burial)) return *obstacle;
    }
    try {
      config.letters.sink(letter_of(config, burial));
    } catch (const std::exception& error) {
      throw scripts::LetterRefused{
          ServerError{fmt::format("the sink of dead letters threw: {}", error.what()), "SINK"}};
    } catch (...) {
      throw scripts::LetterRefused{ServerError{"the sink of dead letters threw", "SINK"}};
    }
    return run(Payload::kWritten);
  }
  if (burial.had_no_lease) {
    if (const auto obstacle = obstacle_to(server, burial)) return *obstacle;
  }
  if (burial.work.entry.size() <= scripts::kMostFields) {
    return run(burial.work.entry.deleted() ? Payload::kInStream : Payload::kGiven);
  }
  // More than a script can pass on: two steps, so a crash between them leaves a second letter.
  if (const auto obstacle = obstacle_to(server, burial)) return *obstacle;
  write_large(server, burial);
  return run(Payload::kWritten);
}

std::optional<scripts::Buried> Settling::obstacle_to(Server server, const Settlement& burial) {
  const scripts::Hold hold{burial.work.ticket.id, burial.work.deliveries, burial.work.deliveries};
  switch (scripts::hold(server.eval, shared_.config, {&hold, 1}).front()) {
    case scripts::Holding::kNotOurs:
      return scripts::Buried::kNotOurs;
    case scripts::Holding::kGone:
      if (burial.had_no_lease) return scripts::Buried::kNotOurs;
      return std::nullopt;
    case scripts::Holding::kCountedAnew:
      return scripts::Buried::kCountedAnew;
    default:
      return std::nullopt;
  }
}

void Settling::write_large(Server server, const Settlement& burial) {
  const std::string& key = shared_.config.letters.stream;
  const auto head = scripts::letter_head(shared_.config, burial);
  std::vector<Field> fields;
  for (std::size_t i = 0; i + 1 < head.size(); i += 2) fields.emplace_back(head[i], head[i + 1]);
  std::optional<Error> refused;
  if (const auto limit = shared_.config.letters.max_length) {
    const PipelineResult length = server.pipeline(
        {.command = "XLEN", .key = key},
        [&](RequestBuffer& request) { commands::xlen(request, key); },
        [&](std::size_t /*index*/, Reply reply) {
          if (reply.root().is_error()) {
            refused = server_error(reply.root().text(), {.command = "XLEN", .key = key});
            return;
          }
          if (decode::count(reply.root()) < *limit) return;
          refused = ServerError{"the stream of dead letters has reached its limit", "FULL"};
        });
    if (length.error) length.error->raise();
    if (refused) throw scripts::LetterRefused{*refused};
  }
  const PipelineResult result = server.pipeline(
      {.command = "XADD (dead letter)", .key = key},
      [&](RequestBuffer& request) {
        commands::xadd(request, key, {}, fields, Fields{burial.work.entry});
      },
      [&](std::size_t /*index*/, Reply reply) {
        if (reply.root().is_error()) {
          refused = server_error(reply.root().text(), {.command = "XADD", .key = key});
        }
      });
  if (result.error) result.error->raise();
  if (refused) throw scripts::LetterRefused{*refused};
}

void Settling::tell_of(const Settlement& burial) {
  if (!shared_.config.letters.enabled) return;
  count(shared_.counters.dead_lettered);
  const DeadLetter letter = letter_of(shared_.config, burial);
  shared_.events.tell([&](Observer& observer) { observer.on_dead_letter(letter); });
}

}  // namespace millrace::detail

#pragma once

#include <millrace/event_stream.hpp>

#include "millrace_scripts.hpp"
#include "net/connection.hpp"
#include "net/pool.hpp"
#include "net/topology.hpp"
#include "protocol/server_error.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_observer.hpp"
#include "unit/protocol/resp.hpp"
#include "worker/shared.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::detail {

using Words = std::vector<std::string>;

/// The commands in a request.
inline std::vector<Words> commands_in(std::string_view bytes) {
  const auto number = [&bytes] {
    const auto end = bytes.find("\r\n");
    const auto value = std::stoul(std::string{bytes.substr(1, end - 1)});
    bytes.remove_prefix(end + 2);
    return value;
  };
  std::vector<Words> commands;
  while (!bytes.empty()) {
    Words words(number());
    for (std::string& word : words) {
      word = bytes.substr(bytes.find("\r\n") + 2, std::stoul(std::string{bytes.substr(1)}));
      const auto size = number();
      bytes.remove_prefix(size + 2);
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

/// The name of the script with this SHA-1: "hold".
inline std::string script_name(std::string_view sha1) {
  for (const auto& [script, name] :
       {std::pair{&kBuryScript, "bury"}, std::pair{&kHoldScript, "hold"},
        std::pair{&kLeaveScript, "leave"}, std::pair{&kOpenScript, "open"},
        std::pair{&kRemoveConsumerScript, "remove_consumer"}, std::pair{&kRetakeScript, "retake"},
        std::pair{&kTakeScript, "take"}}) {
    if (script->sha1 == sha1) return name;
  }
  return "unknown";
}

/// What scripts are run on: a function, from a script's name and arguments to the bytes of its
/// reply. What that throws is what happened to the connection.
class ScriptedEval {
 public:
  using Answer = std::function<std::string(const std::string& script, const Words& args)>;

  explicit ScriptedEval(Answer answer) : answer_{std::move(answer)} {}

  Reply operator()(const CallSpec& spec, const Script& script,
                   std::span<const std::string_view> script_keys,
                   std::span<const std::string_view> script_args) {
    scripts.push_back(script_name(script.sha1));
    keys.emplace_back(script_keys.begin(), script_keys.end());
    args.emplace_back(script_args.begin(), script_args.end());
    Reply reply = resp(answer_(scripts.back(), args.back()));
    if (reply.root().is_error()) {
      server_error(reply.root().text(), {.command = spec.command, .key = spec.key}).raise();
    }
    return reply;
  }

  std::vector<std::string> scripts;
  std::vector<Words> keys;
  std::vector<Words> args;

 private:
  Answer answer_;
};

/// `count` times 1, as hold.lua answers for what is still ours.
inline std::string all_ours(const Words& args) {
  const std::size_t count = (args.size() - 4) / 4;
  std::string answer = "*1\r\n*" + std::to_string(count) + "\r\n";
  for (std::size_t i = 0; i < count; ++i) answer += ":1\r\n";
  return answer;
}

/// A connection whose server is a function: from a command to the bytes of its reply. What that
/// throws breaks the connection, as do bytes that are no reply.
class ScriptedConnection final : public Connection {
 public:
  using Answer = std::function<std::string(const Words&)>;

  explicit ScriptedConnection(Answer answer) : answer_{std::move(answer)} {}

  Reply call(const CallSpec& spec, WriteRequest write) override {
    Reply taken;
    const auto result =
        pipeline(spec, write, [&](std::size_t, Reply reply) { taken = std::move(reply); });
    if (result.error) result.error->raise();
    if (taken.root().is_error()) {
      server_error(taken.root().text(), {.command = spec.command, .key = spec.key}).raise();
    }
    return taken;
  }

  PipelineResult pipeline(const CallSpec& /*spec*/, WriteRequest write, TakeReply take) override {
    RequestBuffer request;
    write(request);
    PipelineResult result{.sent = request.commands()};
    for (const Words& command : commands_in(request.bytes())) {
      sent.push_back(command);
      try {
        const std::string reply = answer_(command);
        take(result.replies++, resp(reply));
      } catch (const Error& error) {
        open_ = false;
        result.error = error;
        break;
      }
    }
    return result;
  }

  PipelineResult converse(const CallSpec&, WriteMore, TakeReply, const Wakeup&) override {
    throw std::logic_error{"no worker converses"};
  }

  bool is_open() const noexcept override { return open_; }
  std::uint64_t client_id() const noexcept override { return 7; }
  std::string_view endpoint() const noexcept override { return "fake:1"; }

  std::vector<Words> sent;

 private:
  Answer answer_;
  bool open_ = true;
};

/// Makes connections by a function.
class ScriptedTopology final : public Topology {
 public:
  using Connect = std::function<std::unique_ptr<Connection>(const std::stop_token&)>;

  explicit ScriptedTopology(Connect connect) : connect_{std::move(connect)} {}

  std::unique_ptr<Connection> connect(std::string_view, TimePoint, std::stop_token stop) override {
    return connect_(stop);
  }
  bool serves(const Connection&, std::string_view) const noexcept override { return true; }
  std::string_view name() const noexcept override { return "fake:1"; }

 private:
  Connect connect_;
};

/// All that the threads of a worker share, with nothing behind it.
struct Parts {
  explicit Parts(
      ScriptedTopology::Connect connect = [](const std::stop_token&)
          -> std::unique_ptr<Connection> { throw ConnectError{"there is no server"}; },
      const Clock* other_clock = nullptr)
      : pool{std::make_unique<ScriptedTopology>(std::move(connect)), {}, {}, Clock::system()},
        shared{.config = config,
               .pool = pool,
               .ledger = ledger,
               .counters = counters,
               .events = events,
               .status = status,
               .group = group,
               .gate = gate,
               .company = company,
               .clock = other_clock == nullptr ? clock : *other_clock} {}

  /// The same with another observer, or another company.
  Shared with(const Events& other) { return shared_of(other, company); }
  Shared with(Company& other) { return shared_of(events, other); }

  WorkerConfig config{.key = "s",
                      .group = "g",
                      .consumer = "alice",
                      .record = "{s}:millrace:g",
                      .token = "me",
                      .group_start = GroupStart::beginning(),
                      .prefetch = 16,
                      .block = Milliseconds{2'000},
                      .min_idle = Milliseconds{30'000},
                      .lease_renew_every = Milliseconds{10'000},
                      .reap_every = Milliseconds{15'000},
                      .max_deliveries = 5,
                      .retry_backoff = Milliseconds{1'000},
                      .letters = {.stream = "{s}:dlq"},
                      .reconnect_min = Milliseconds{100},
                      .reconnect_max = Milliseconds{5'000}};
  test::ManualClock clock;
  std::shared_ptr<test::RecordingObserver> observer = std::make_shared<test::RecordingObserver>();
  Ledger ledger{{.prefetch = 16, .min_idle = Milliseconds{30'000}}};
  Counters counters;
  Events events{observer};
  Status status{events};
  Group group{config};
  ReadGate gate;
  Company company;
  Pool pool;
  Shared shared;

 private:
  Shared shared_of(const Events& its_events, Company& its_company) {
    return {.config = config,
            .pool = pool,
            .ledger = ledger,
            .counters = counters,
            .events = its_events,
            .status = status,
            .group = group,
            .gate = gate,
            .company = its_company,
            .clock = shared.clock};
  }
};

/// An entry with the field f=v, as it arrives.
inline Work work_of(StreamId id, TimePoint leased_at) {
  static constexpr std::array<Field, 1> kFields{Field{"f", "v"}};
  return {.entry = Entry{id, kFields}, .leased_at = leased_at};
}

/// One that was pending before, so often delivered.
inline Work taken_over(StreamId id, std::uint64_t deliveries, TimePoint leased_at) {
  Work work = work_of(id, leased_at);
  work.deliveries = deliveries;
  work.reclaimed = true;
  return work;
}

/// Holds it, and starts it at once: what was queued before it must not be startable.
inline Work running(Ledger& ledger, Work work) {
  EXPECT_TRUE(ledger.reserve(work));
  const auto started = ledger.start(work.ticket, {});
  EXPECT_TRUE(started.has_value());
  return started.value_or(work);
}

}  // namespace millrace::detail

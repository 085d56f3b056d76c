#pragma once

#include <millrace/event_stream.hpp>

#include "net/connection.hpp"
#include "net/pool.hpp"
#include "net/topology.hpp"
#include "protocol/server_error.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_observer.hpp"
#include "unit/protocol/resp.hpp"
#include "worker/shared.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
               .clock = other_clock == nullptr ? clock : *other_clock} {}

  WorkerConfig config{.key = "s",
                      .group = "g",
                      .consumer = "alice",
                      .group_start = GroupStart::beginning(),
                      .prefetch = 16,
                      .block = Milliseconds{2'000},
                      .min_idle = Milliseconds{30'000},
                      .reap_every = Milliseconds{15'000},
                      .reconnect_min = Milliseconds{100},
                      .reconnect_max = Milliseconds{5'000}};
  test::ManualClock clock;
  std::shared_ptr<test::RecordingObserver> observer = std::make_shared<test::RecordingObserver>();
  Ledger ledger;
  Counters counters;
  Events events{observer};
  Status status{events};
  Group group{config};
  ReadGate gate;
  Pool pool;
  Shared shared;
};

}  // namespace millrace::detail

#pragma once

#include <millrace/consumer_worker.hpp>

#include "support/entries.hpp"
#include "support/gate.hpp"
#include "support/journal.hpp"
#include "support/raw_client.hpp"
#include "support/recording_observer.hpp"
#include "support/throwaway_server.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// A server of the test's own, the stream `s`, and workers of the group `g` on it.
class WorkerTest : public ::testing::Test {
 protected:
  explicit WorkerTest(ServerOptions options = {}) : server_{std::move(options)} {}

  ThrowawayServer& server() { return server_; }

  /// A connection beside the library's, made when it is first asked for.
  RawClient& raw() {
    if (!raw_) raw_ = std::make_unique<RawClient>(server_.options());
    return *raw_;
  }
  /// For a server that was started again.
  void forget_raw() { raw_.reset(); }

  EventStream stream() { return stream(server_.options()); }
  static EventStream stream(ConnectionOptions options, StreamOptions stream_options = {}) {
    return EventStream{ConnectionPool{std::move(options)}, "s", stream_options};
  }

  /// The server's options, with the time-out that users have.
  ConnectionOptions impatient(milliseconds command_timeout = 1s) {
    ConnectionOptions options = server_.options();
    options.command_timeout = command_timeout;
    return options;
  }

  WorkerOptions options() {
    return {.group = "g",
            .consumer = "alice",
            .group_start = GroupStart::beginning(),
            .observer = observer_};
  }

  RecordingObserver& heard() { return *observer_; }

  /// Appends `1-0` to `<count>-0`, or what comes after `after`.
  Ids append_ids(std::size_t count, std::uint64_t after = 0) {
    Ids ids;
    for (std::size_t i = 1; i <= count; ++i) ids.push_back({after + i, 0});
    for (const StreamId id : ids) EXPECT_EQ(raw()("XADD", "s", id, "f", "v").text, id.to_string());
    return ids;
  }

  /// Entries that `consumer` was given and never saw, as after a crash.
  void orphan(std::string_view consumer, std::size_t count = 100) {
    raw()("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
    raw()("XREADGROUP", "GROUP", "g", consumer, "COUNT", count, "STREAMS", "s", ">");
  }

  /// How many entries are pending in the group; -1 while there is none.
  std::int64_t pending() {
    const RawReply reply = raw()("XPENDING", "s", "g");
    return reply.is_error() ? -1 : reply[0].integer;
  }
  [[nodiscard]] bool nothing_is_pending() {
    return wait_until([this] { return pending() == 0; });
  }

  /// Delivery count of a pending entry, -1 if it is not pending.
  std::int64_t deliveries(StreamId id) {
    const RawReply reply = raw()("XPENDING", "s", "g", id, id, 1);
    return reply.elements.empty() ? -1 : reply[0][3].integer;
  }
  std::string owner(StreamId id) {
    const RawReply reply = raw()("XPENDING", "s", "g", id, id, 1);
    return reply.elements.empty() ? "" : reply[0][1].text;
  }

  /// Names of the group's consumers, in order.
  std::vector<std::string> consumers() {
    std::vector<std::string> names;
    for (const RawReply& consumer : raw()("XINFO", "CONSUMERS", "s", "g").elements) {
      names.push_back(consumer.field("name").text);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  /// True once `count` clients wait in blocking reads.
  [[nodiscard]] bool blocked(std::size_t count = 1) {
    return wait_until(
        [&] { return info_field(raw(), "clients", "blocked_clients") == std::to_string(count); });
  }

  /// How often the server has carried out a command: "xreadgroup", "client|unblock".
  std::uint64_t calls_of(const std::string& command) {
    const std::string info = raw()("INFO", "commandstats").text;
    const std::string name = "cmdstat_" + command + ":calls=";
    const auto at = info.find(name);
    return at == std::string::npos ? 0 : std::stoull(info.substr(at + name.size()));
  }

  /// Ends all connections but the test's own.
  void kill_clients() { raw()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"); }

 private:
  ThrowawayServer server_;
  std::unique_ptr<RawClient> raw_{};
  std::shared_ptr<RecordingObserver> observer_ = std::make_shared<RecordingObserver>();
};

}  // namespace millrace::test

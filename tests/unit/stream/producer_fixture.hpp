#pragma once

#include <millrace/error.hpp>
#include <millrace/producer.hpp>

#include "support/scripted_server.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::test {

using namespace std::chrono_literals;

/// A Producer and a server that a script plays. Entry `n` has the one field `n = <n>`, and where it
/// is appended its id is `<n>-0`.
class ProducerTest : public ::testing::Test {
 protected:
  static ConnectionOptions options_for(const ScriptedServer& server) {
    ConnectionOptions options;
    options.unix_socket = server.path();
    options.connect_timeout = options.command_timeout = kGenerous;
    return options;
  }

  static EventStream stream(const ScriptedServer& server, StreamOptions options = {}) {
    return {ConnectionPool{options_for(server)}, "s", options};
  }
  /// A stream whose server is not there.
  static EventStream nowhere() {
    return {ConnectionPool{{.unix_socket = "/nonexistent/millrace"}}, "s"};
  }

  /// No pause that a test would have to wait for.
  static ProducerOptions quick() {
    ProducerOptions quick;
    quick.reconnect_min = quick.reconnect_max = 1ms;
    quick.send_timeout = quick.delivery_timeout = quick.close_timeout = kGenerous;
    return quick;
  }

  /// What is sent after entry 0 goes three at once, or when it is flushed.
  static ProducerOptions three_at_once() {
    ProducerOptions options = quick();
    options.linger = kGenerous * 4;
    options.max_batch = 3;
    return options;
  }

  /// With entry 0, which goes alone.
  static void open_with(Producer& producer) {
    auto first = send(producer, 0);
    ASSERT_TRUE(producer.flush(kGenerous));
    EXPECT_EQ(first.get(), id(0));
  }

  static std::future<StreamId> send(Producer& producer, int n) {
    const std::string value = std::to_string(n);
    return producer.send({{"n", value}});
  }

  static StreamId id(int n) { return {static_cast<std::uint64_t>(n), 0}; }

  /// The outcome of what `future` throws; none if it has an id.
  static std::optional<Outcome> outcome_of(std::future<StreamId>& future) {
    if (future.wait_for(kGenerous) != std::future_status::ready) {
      ADD_FAILURE() << "no answer";
      return std::nullopt;
    }
    try {
      future.get();
    } catch (const Error& error) {
      return error.outcome();
    }
    return std::nullopt;
  }

  // ---- for the script

  static std::string reply_for(std::string_view value) {
    const std::string id = std::string{value} + "-0";
    return "$" + std::to_string(id.size()) + "\r\n" + id + "\r\n";
  }

  /// Reads the next commands, which have to append these entries.
  static void expect_entries(Peer& peer, std::initializer_list<int> entries) {
    for (const int n : entries) {
      const Peer::Command command = peer.read();
      ASSERT_FALSE(command.empty()) << "no entry " << n;
      EXPECT_EQ(command.front(), "XADD");
      EXPECT_EQ(command.back(), std::to_string(n));
    }
  }

  static void append(Peer& peer, std::initializer_list<int> entries) {
    std::string replies;
    for (const int n : entries) replies += reply_for(std::to_string(n));
    peer.send(replies);
  }

  /// Appends whatever comes.
  static void serve(Peer& peer) {
    for (auto command = peer.read(); !command.empty(); command = peer.read()) {
      peer.send(reply_for(command.back()));
    }
  }

  static void set_up_and_serve(Peer& peer) {
    peer.expect_client_id();
    serve(peer);
  }

  /// The set-up, and entry 0, which a connection's first batch consists of.
  static void set_up(Peer& peer) {
    peer.expect_client_id();
    expect_entries(peer, {0});
    append(peer, {0});
  }
};

}  // namespace millrace::test

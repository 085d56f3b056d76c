#include <millrace/connection.hpp>
#include <millrace/error.hpp>

#include "net/pool.hpp"
#include "support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Peer;
using test::ScriptedServer;

constexpr int kThreads = 16;
constexpr int kCalls = 100;

/// Runs `call(id)` in many threads at once, each id once.
template <typename Call>
void call_from_many_threads(Call call) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&call, t] {
      for (int i = 0; i < kCalls; ++i) call(std::to_string(t * kCalls + i));
    });
  }
  for (auto& thread : threads) thread.join();
}

std::string echo(Pool& pool, const std::string& id) {
  const auto reply = pool.call(
      {.command = "ECHO"}, [&id](RequestBuffer& request) { request.command("ECHO", 2).arg(id); });
  return std::string{reply.root().text()};
}

ConnectionOptions options_for(const ScriptedServer& server) {
  return {.port = server.port(),
          .connect_timeout = test::kGenerous,
          .command_timeout = test::kGenerous};
}

constexpr PoolOptions kFour{.max_connections = 4, .wait_timeout = test::kGenerous};

TEST(PoolOverSockets, GivesEachOfManyThreadsItsOwnReply) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect_client_id();
    for (auto command = peer.read(); !command.empty(); command = peer.read()) {
      peer.send("+" + command.at(1) + "\r\n");
    }
  }};
  Pool pool{options_for(server), kFour};
  std::atomic<int> right{0};
  call_from_many_threads([&](const std::string& id) { right += echo(pool, id) == id ? 1 : 0; });
  EXPECT_EQ(right, kThreads * kCalls);
  EXPECT_LE(server.accepted(), 4U);
  const auto stats = pool.stats();
  EXPECT_EQ(stats.created, server.accepted());
  EXPECT_EQ(stats.idle, stats.open);
}

// Every connection breaks again and again: before it reads, after it has carried out a command,
// and in the middle of a reply.
TEST(PoolOverSockets, SaysOfEachCallOnABrokenConnectionWhetherItMayHaveRun) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  std::mutex mutex;
  std::map<std::string, int> runs;
  ScriptedServer server{[&](Peer& peer) {
    peer.expect_client_id();
    for (std::size_t left = 3 + peer.number() % 20;; --left) {
      if (left == 0 && peer.number() % 3 == 0) return peer.reset();
      const auto command = peer.read();
      if (command.empty()) return;
      {
        const std::lock_guard lock{mutex};
        ++runs[command.at(1)];
      }
      if (left == 0 && peer.number() % 3 == 1) return peer.close();
      if (left == 0) return peer.send("+" + command.at(1));
      peer.send("+" + command.at(1) + "\r\n");
    }
  }};
  Pool pool{options_for(server), kFour};
  std::set<std::string> answered;
  std::set<std::string> unknown;
  std::set<std::string> not_applied;
  call_from_many_threads([&](const std::string& id) {
    std::set<std::string>* outcome = &answered;
    try {
      EXPECT_EQ(echo(pool, id), id);
    } catch (const IoError& error) {
      outcome = error.outcome() == Outcome::kUnknown ? &unknown : &not_applied;
    }
    const std::lock_guard lock{mutex};
    outcome->insert(id);
  });
  EXPECT_EQ(answered.size() + unknown.size() + not_applied.size(),
            static_cast<std::size_t>(kThreads * kCalls));
  EXPECT_FALSE(unknown.empty()) << "the test has broken nothing";
  for (const auto& id : answered) EXPECT_EQ(runs[id], 1) << id;
  for (const auto& id : unknown) EXPECT_LE(runs[id], 1) << id;
  for (const auto& id : not_applied) EXPECT_EQ(runs[id], 0) << id;
  const auto stats = pool.stats();
  EXPECT_LE(stats.open, 4U);
  EXPECT_EQ(stats.created - stats.closed, stats.open);
  EXPECT_EQ(stats.in_use, 0U);
}

TEST(PoolOverSockets, DoesNotNoticeThatTheServerClosedAnIdleConnection) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect_client_id();
    peer.read();
    peer.send("+PONG\r\n");
    // As a server with `timeout` does with an idle client.
  }};
  const ConnectionPool pool{options_for(server)};
  for (std::size_t i = 1; i <= 5; ++i) {
    pool.ping();
    EXPECT_EQ(pool.stats().open, 1U);
  }
  EXPECT_EQ(pool.stats().created, 5U);
}

TEST(PoolOverSockets, SendsAReadAgainWhoseReplyWasLost) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect_client_id();
    peer.expect({"PING"});
    if (peer.number() == 0) return peer.reset();
    peer.send("+PONG\r\n");
  }};
  const ConnectionPool pool{options_for(server)};
  pool.ping();
  EXPECT_EQ(server.accepted(), 2U);
}

}  // namespace
}  // namespace millrace::detail

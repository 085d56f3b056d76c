#include "net/topology.hpp"

#include <millrace/error.hpp>

#include "support/scripted_server.hpp"
#include "support/signal_storm.hpp"
#include "unit/net/write_ping.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::Peer;
using test::ScriptedServer;

constexpr auto write_read = [](RequestBuffer& request) {
  request.command("XREAD", 4).arg("STREAMS").arg("s").arg("$");
};

std::unique_ptr<Connection> connect_to(const ScriptedServer& server,
                                       ConnectionOptions options = {}) {
  options.port = server.port();
  options.unix_socket = server.path();
  return Standalone{std::move(options), Clock::system()}.connect("s", TimePoint::max(), {});
}

TEST(Connection, WaitsForABlockingReadLongerThanTheCommandTimeout) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect_client_id();
    peer.read();
    peer.pause(900ms);
    peer.send("*-1\r\n");
    peer.expect({"PING"});
    peer.send("+PONG\r\n");
  }};
  const auto connection = connect_to(server, {.command_timeout = 300ms});
  const auto reply = connection->call({.command = "XREAD", .key = "s", .block = 5s}, write_read);
  EXPECT_TRUE(reply.root().is_nil());
  EXPECT_EQ(connection->call({.command = "PING"}, write_ping).root().text(), "PONG");
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(Connection, KeepsItsDeadlineInAStormOfSignals) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect_client_id();
    peer.read();
    peer.pause(2500ms);
    peer.send("+PONG\r\n");
  }};
  const auto connection = connect_to(server, {.command_timeout = 300ms});
  const test::SignalStorm storm;
  const auto before = steady_clock::now();
  EXPECT_THROW(connection->call({.command = "PING"}, write_ping), TimeoutError);
  const auto took = steady_clock::now() - before;
  EXPECT_GE(took, 300ms);
  EXPECT_LT(took, 2s);
  EXPECT_GT(storm.signals(), 5) << "there was no storm";
}

TEST(Connection, DoesNotDieOfAPeerThatDies) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  for (const auto kind : {ScriptedServer::Kind::kTcp, ScriptedServer::Kind::kUnix}) {
    std::atomic<bool> dead{false};
    ScriptedServer server{[&dead](Peer& peer) {
                            peer.expect_client_id();
                            peer.expect({"PING"});
                            peer.send("+PONG\r\n");
                            peer.reset();
                            dead = true;
                          },
                          kind};
    const auto connection = connect_to(server);
    EXPECT_EQ(connection->call({.command = "PING"}, write_ping).root().text(), "PONG");
    ASSERT_TRUE(test::wait_until([&dead] { return dead.load(); }));
    ASSERT_TRUE(test::wait_until([&connection] { return !connection->is_quiet(); }));
    EXPECT_THROW(connection->call({.command = "PING"}, write_ping), IoError);
    EXPECT_THROW(connection->call({.command = "PING"}, write_ping), IoError);
  }
}

TEST(Connection, IsStoppedWhileItBlocks) {
  std::atomic<bool> blocked{false};
  ScriptedServer server{[&blocked](Peer& peer) {
    peer.expect_client_id();
    peer.read();
    blocked = true;
    peer.drain();
  }};
  const auto connection = connect_to(server);
  std::stop_source source;
  auto call = std::async(std::launch::async, [&] {
    connection->call({.command = "XREAD", .block = 1h, .stop = source.get_token()}, write_read);
  });
  ASSERT_TRUE(test::wait_until([&blocked] { return blocked.load(); }));
  source.request_stop();
  ASSERT_EQ(call.wait_for(test::kGenerous), std::future_status::ready);
  EXPECT_THROW(call.get(), Interrupted);
  EXPECT_FALSE(connection->is_open());
}

TEST(Connection, CanBeStoppedCallAfterCall) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect_client_id();
    for (int i = 0; i < 3; ++i) {
      peer.expect({"PING"});
      peer.send("+PONG\r\n");
    }
  }};
  const auto connection = connect_to(server);
  for (int i = 0; i < 3; ++i) {
    std::stop_source source;
    connection->call({.command = "PING", .stop = source.get_token()}, write_ping);
    source.request_stop();  // too late for the call, and not for the next
  }
}

TEST(Connection, NeverGivesALateReplyToTheNextCall) {
  std::atomic<bool> timed_out{false};
  ScriptedServer server{[&timed_out](Peer& peer) {
    peer.expect_client_id();
    peer.expect({"PING"});
    peer.wait_until([&timed_out] { return timed_out.load(); });
    peer.send("+LATE\r\n");
    peer.drain();
  }};
  const auto connection = connect_to(server, {.command_timeout = 50ms});
  EXPECT_THROW(connection->call({.command = "PING"}, write_ping), TimeoutError);
  timed_out = true;
  EXPECT_THROW(connection->call({.command = "PING"}, write_ping), IoError);
}

TEST(Connection, TakesTheReplyToAnAcknowledgementWhileTheReadBehindItWaits) {
  std::atomic<bool> acknowledged{false};
  ScriptedServer server{[&acknowledged](Peer& peer) {
    peer.expect_client_id();
    peer.expect({"XACK", "s", "g", "1-0"});
    peer.expect({"XREADGROUP", "s"});  // in the same write
    peer.send(":1\r\n");
    peer.wait_until([&acknowledged] { return acknowledged.load(); });
    EXPECT_TRUE(acknowledged) << "before the read is over";
    peer.send("*-1\r\n");
  }};
  const auto connection = connect_to(server, {.command_timeout = test::kGenerous});
  const auto result = connection->pipeline(
      {.command = "XREADGROUP"},
      [](RequestBuffer& request) {
        request.command("XACK", 4).arg("s").arg("g").arg(StreamId{1, 0});
        request.command("XREADGROUP", 2).answered_by(ReplyShape::kRead).arg("s");
      },
      [&acknowledged](std::size_t index, Reply reply) {
        EXPECT_EQ(reply.root().is_nil(), index == 1);
        acknowledged = true;
      });
  EXPECT_FALSE(result.error) << result.error->what();
  EXPECT_EQ(result.replies, 2U);
}

// The server answers each command as it reads it, and reads no further while nobody takes the
// replies; client and server would wait for each other.
TEST(Connection, SendsAPipelineThatIsLargerThanAllBuffers) {
  constexpr std::size_t kCommands = 400;
  const std::string value(50'000, 'x');
  ScriptedServer server{[&value](Peer& peer) {
    peer.expect_client_id();
    for (std::size_t i = 0; i < kCommands; ++i) {
      const auto command = peer.read();
      peer.send("$" + std::to_string(value.size()) + "\r\n" + command.at(1) + "\r\n");
    }
  }};
  const auto connection = connect_to(server, {.command_timeout = test::kGenerous});
  std::size_t taken = 0;
  const auto result = connection->pipeline(
      {.command = "ECHO"},
      [&value](RequestBuffer& request) {
        for (std::size_t i = 0; i < kCommands; ++i) request.command("ECHO", 2).arg(value);
      },
      [&](std::size_t, Reply reply) { taken += reply.root().text() == value ? 1 : 0; });
  EXPECT_FALSE(result.error) << result.error->what();
  EXPECT_EQ(taken, kCommands);
}

TEST(Connection, ReadsRepliesThatTheNetworkCutsAnywhere) {
  const std::string reply = "*2\r\n$5\r\nhello\r\n*2\r\n:-1\r\n$-1\r\n";
  ScriptedServer server{[&reply](Peer& peer) {
                          peer.expect_client_id();
                          for (std::size_t at = 1; at < reply.size(); ++at) {
                            peer.expect({"PING"});
                            peer.send_split(reply, at);
                          }
                        },
                        ScriptedServer::Kind::kUnix};
  const auto connection = connect_to(server, {.command_timeout = test::kGenerous});
  for (std::size_t at = 1; at < reply.size(); ++at) {
    const auto got = connection->call({.command = "PING"}, write_ping);
    EXPECT_EQ(got.root()[0].text(), "hello");
    EXPECT_EQ(got.root()[1][0].integer(), -1);
    EXPECT_TRUE(got.root()[1][1].is_nil());
  }
}

TEST(Connection, HasOneDeadlineForConnectingAndSettingUp) {
  ScriptedServer server{[](Peer& peer) { peer.stall(); }};
  const auto before = steady_clock::now();
  EXPECT_THROW(connect_to(server, {.connect_timeout = 200ms}), ConnectError);
  EXPECT_GE(steady_clock::now() - before, 200ms);
}

TEST(Connection, IsStoppedWhileItIsSetUp) {
  std::stop_source source;
  ScriptedServer server{[&source](Peer& peer) {
    peer.read();
    source.request_stop();
    peer.drain();
  }};
  Standalone topology{{.port = server.port(), .connect_timeout = test::kGenerous}, Clock::system()};
  EXPECT_THROW(topology.connect("s", TimePoint::max(), source.get_token()), Interrupted);
}

TEST(Connection, AsksForCredentialsAtEachConnect) {
  ScriptedServer server{[](Peer& peer) {
    peer.expect({"AUTH", "me", "pw" + std::to_string(peer.number())});
    peer.send("+OK\r\n");
    peer.expect_client_id(100 + peer.number());
    peer.drain();
  }};
  int asked = 0;
  ConnectionOptions options{.port = server.port(), .credentials = [&asked] {
                              return ConnectionOptions::Credentials{
                                  .username = "me", .password = "pw" + std::to_string(asked++)};
                            }};
  Standalone topology{options, Clock::system()};
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(topology.connect("s", TimePoint::max(), {})->client_id(), 100 + i);
  }
}

}  // namespace
}  // namespace millrace::detail

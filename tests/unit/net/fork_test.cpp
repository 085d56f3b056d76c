#include <millrace/connection.hpp>
#include <millrace/error.hpp>

#include "net/poll.hpp"
#include "net/pool.hpp"
#include "net/topology.hpp"
#include "net/wakeup.hpp"
#include "support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Peer;
using test::ScriptedServer;

/// Runs `child` in a child process; true if it returned true.
bool holds_in_child(const std::function<bool()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    bool holds = false;
    try {
      holds = child();
    } catch (...) {
      holds = false;
    }
    ::_exit(holds ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

template <typename Action>
bool is_refused(Action action) {
  try {
    action();
  } catch (const UnsupportedError& error) {
    return std::string{error.what()}.find("after fork()") != std::string::npos;
  }
  return false;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

void answer_pings(Peer& peer) {
  peer.expect_client_id();
  while (!peer.read().empty()) peer.send("+PONG\r\n");
}

TEST(Fork, GivesTheChildAnErrorFromEveryCallOfThePool) {
  ScriptedServer server{answer_pings};
  const ConnectionPool pool{{.port = server.port()}};
  pool.ping();
  EXPECT_TRUE(holds_in_child([&pool] {
    return is_refused([&] { pool.ping(); }) &&
           is_refused([&] { static_cast<void>(pool.stats()); }) &&
           is_refused([&] { Pool::of(pool).connect("k"); }) && is_refused([&] {
             Pool::of(pool).pipeline(
                 {}, [](RequestBuffer&) {}, [](std::size_t, Reply) {});
           });
  }));
  pool.ping();
  EXPECT_EQ(server.accepted(), 1U);
}

TEST(Fork, LeavesTheParentsConnectionsAloneWhenTheChildDestroysItsPool) {
  ScriptedServer server{answer_pings};
  auto pool = std::make_unique<ConnectionPool>(ConnectionOptions{.port = server.port()});
  pool->ping();
  EXPECT_TRUE(holds_in_child([&pool] {
    const auto before = open_descriptors();
    pool.reset();
    return open_descriptors() == before - 1;  // the child's copy
  }));
  pool->ping();
  EXPECT_EQ(pool->stats().created, 1U);
  EXPECT_EQ(server.accepted(), 1U);
}

// The child has a copy of a locked mutex and of borrowers in line, but not their threads.
TEST(Fork, DoesNotHangTheChildOfAParentThatIsInTheMiddleOfCalls) {
  std::atomic<int> reading{0};
  std::atomic<bool> go{false};
  ScriptedServer server{[&](Peer& peer) {
    peer.expect_client_id();
    while (!peer.read().empty()) {
      ++reading;
      peer.wait_until([&go] { return go.load(); });
      peer.send("+PONG\r\n");
    }
  }};
  auto pool = std::make_unique<ConnectionPool>(
      ConnectionOptions{.port = server.port(), .command_timeout = test::kGenerous},
      PoolOptions{.max_connections = 1, .wait_timeout = test::kGenerous});
  auto busy = std::async(std::launch::async, [&pool] { pool->ping(); });
  auto waiting = std::async(std::launch::async, [&pool] { pool->ping(); });
  ASSERT_TRUE(test::wait_until([&] { return reading == 1 && pool->stats().waiting == 1; }));
  EXPECT_TRUE(holds_in_child([&pool] {
    ::alarm(20);  // the child alone would die of it
    const bool refused = is_refused([&] { pool->ping(); });
    pool.reset();
    return refused;
  }));
  go = true;
  busy.get();
  waiting.get();
}

TEST(Fork, GivesTheChildAnErrorFromAConnectionOfItsOwn) {
  ScriptedServer server{answer_pings};
  Standalone topology{{.port = server.port()}, Clock::system()};
  auto connection = topology.connect("k", TimePoint::max(), {});
  const auto ping = [&connection] {
    connection->call({.command = "PING"},
                     [](RequestBuffer& request) { request.command("PING", 1); });
  };
  EXPECT_TRUE(holds_in_child([&] {
    const bool refused = is_refused(ping);
    connection.reset();
    return refused;
  }));
  ping();
}

// The descriptor is one for both processes.
TEST(Fork, DoesNotLetTheChildWakeTheParent) {
  const Wakeup wakeup;
  EXPECT_TRUE(holds_in_child([&wakeup] {
    wakeup.signal();
    return true;
  }));
  EXPECT_EQ(poll_until(-1, {}, &wakeup, TimePoint::min(), Clock::system()), Waited::kTimedOut);
  wakeup.signal();
  EXPECT_EQ(poll_until(-1, {}, &wakeup, TimePoint::min(), Clock::system()), Waited::kWoken);
}

// Without shutdown() the connection would live on in the child, and the server would go on
// delivering to it.
TEST(Fork, LetsTheParentCloseAConnectionThatTheChildInherited) {
  std::atomic<bool> saw_the_end{false};
  ScriptedServer server{[&saw_the_end](Peer& peer) {
    peer.expect_client_id();
    saw_the_end = peer.read().empty();
  }};
  Standalone topology{{.port = server.port()}, Clock::system()};
  auto connection = topology.connect("k", TimePoint::max(), {});
  int until_told[2];
  ASSERT_EQ(::pipe(until_told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(until_told[1]);
    char byte = 0;
    static_cast<void>(::read(until_told[0], &byte, 1));
    ::_exit(0);
  }
  ::close(until_told[0]);
  connection.reset();
  EXPECT_TRUE(test::wait_until([&saw_the_end] { return saw_the_end.load(); }));
  ::close(until_told[1]);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace millrace::detail

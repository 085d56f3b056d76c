#include "net/socket.hpp"

#include <millrace/error.hpp>

#include "net/connection.hpp"
#include "net/socket_transport.hpp"
#include "support/localhost.hpp"
#include "support/scripted_server.hpp"
#include "support/signal_storm.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::Peer;
using test::ScriptedServer;

std::set<int> open_descriptors() {
  std::set<int> descriptors;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    descriptors.insert(std::stoi(entry.path().filename()));
  }
  // Without the one that the listing itself had.
  std::erase_if(descriptors, [](int descriptor) { return ::fcntl(descriptor, F_GETFD) < 0; });
  return descriptors;
}

Attempt attempt(const ConnectionOptions& options, std::stop_token stop = {},
                const Wakeup* wakeup = nullptr) {
  return {.limit = options.connect_timeout,
          .deadline = Clock::system().now() + options.connect_timeout,
          .stop = std::move(stop),
          .wakeup = wakeup,
          .clock = Clock::system()};
}

std::unique_ptr<Transport> connect(const ConnectionOptions& options) {
  return connect_socket(options, attempt(options));
}

std::string error_of_connect(const ConnectionOptions& options) {
  try {
    connect(options);
  } catch (const ConnectError& error) {
    return error.what();
  }
  return "connected";
}

sockaddr_in ipv4(const char* address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &made.sin_addr);
  return made;
}

/// Listens, and accepts nothing.
class Listener {
 public:
  explicit Listener(const char* address, std::uint16_t port = 0, int queue = 8) {
    sockaddr_in own = ipv4(address, port);
    socklen_t size = sizeof(own);
    auto* const generic = reinterpret_cast<sockaddr*>(&own);
    EXPECT_EQ(::bind(descriptor_, generic, size), 0);
    EXPECT_EQ(::listen(descriptor_, queue), 0);
    EXPECT_EQ(::getsockname(descriptor_, generic, &size), 0);
    port_ = ntohs(own.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(descriptor_); }
  std::uint16_t port() const { return port_; }

 private:
  int descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port_ = 0;
};

/// A listener on 127.0.0.1 whose queue is full: connecting to it hangs.
class FullListener {
 public:
  FullListener() {
    const sockaddr_in address = ipv4("127.0.0.1", listener_.port());
    for (int& filler : fillers_) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      ::connect(filler, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    }
  }
  FullListener(const FullListener&) = delete;
  FullListener& operator=(const FullListener&) = delete;
  ~FullListener() {
    for (const int filler : fillers_) ::close(filler);
  }
  std::uint16_t port() const { return listener_.port(); }

 private:
  Listener listener_{"127.0.0.1", 0, 0};
  std::array<int, 4> fillers_{};
};

TEST(Socket, CarriesBytesOverTcpAndUnixSockets) {
  for (const auto kind : {ScriptedServer::Kind::kTcp, ScriptedServer::Kind::kUnix}) {
    ScriptedServer server{[](Peer& peer) {
                            peer.expect({"PING"});
                            peer.send("+PONG\r\n");
                          },
                          kind};
    const auto transport = connect({.port = server.port(), .unix_socket = server.path()});
    EXPECT_TRUE(transport->is_quiet());
    EXPECT_EQ(transport->send("*1\r\n$4\r\nPING\r\n").bytes, 14U);
    const auto deadline = Clock::system().now() + test::kGenerous;
    std::array<char, 64> bytes{};
    ASSERT_EQ(transport->wait({.readable = true}, nullptr, deadline), Waited::kReady);
    EXPECT_FALSE(transport->is_quiet()) << "there is something to read";
    EXPECT_EQ(transport->receive(bytes).bytes, 7U);
    ASSERT_EQ(transport->wait({.readable = true}, nullptr, deadline), Waited::kReady);
    EXPECT_FALSE(transport->is_quiet()) << "the peer has closed";
    EXPECT_EQ(transport->receive(bytes).status, IoResult::Status::kEnd);
  }
}

TEST(Socket, ResolvesNames) {
  if (!test::knows_localhost()) GTEST_SKIP() << "this machine does not know the name localhost";
  ScriptedServer server{[](Peer& peer) { peer.drain(); }};
  // Where localhost is ::1 as well, nobody listens there.
  EXPECT_TRUE(connect({.host = "localhost", .port = server.port()}));
}

TEST(Socket, SaysWhoRefusedTheConnection) {
  std::uint16_t port = 0;
  {
    ScriptedServer gone{[](Peer&) {}};
    port = gone.port();
  }
  EXPECT_EQ(error_of_connect({.port = port}),
            "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_EQ(error_of_connect({.unix_socket = "/no/such/socket"}),
            "cannot connect to /no/such/socket: No such file or directory");
}

TEST(Socket, SaysThatANameDoesNotResolve) {
  const auto error = error_of_connect({.host = "no..such..name"});
  EXPECT_NE(error.find("no..such..name:6379: the name does not resolve"), std::string::npos)
      << error;
}

TEST(Socket, ShowsAnIpv6AddressInBrackets) {
  EXPECT_EQ(endpoint_of({.host = "::1", .port = 7}), "[::1]:7");
  EXPECT_EQ(endpoint_of({.host = "a", .port = 7}), "a:7");
  EXPECT_EQ(endpoint_of({.unix_socket = "/s"}), "/s");
}

TEST(Socket, GivesUpAtTheConnectDeadline) {
  const FullListener listener;
  const auto before = steady_clock::now();
  const auto error = error_of_connect({.port = listener.port(), .connect_timeout = 200ms});
  EXPECT_GE(steady_clock::now() - before, 200ms);
  EXPECT_NE(error.find("no connection within 200 ms; connect_timeout is 200 ms"), std::string::npos)
      << error;
}

TEST(Socket, KeepsTheConnectDeadlineInAStormOfSignals) {
  const FullListener listener;
  const test::SignalStorm storm;
  const auto before = steady_clock::now();
  const auto error = error_of_connect({.port = listener.port(), .connect_timeout = 300ms});
  EXPECT_GE(steady_clock::now() - before, 300ms);
  EXPECT_NE(error.find("no connection within 300 ms"), std::string::npos) << error;
  EXPECT_GT(storm.signals(), 5) << "there was no storm";
}

// hiredis tries only the first address of a non-blocking connection.
TEST(Socket, TriesEachAddressAndLeavesTimeForTheNext) {
  const FullListener full;
  const Listener other{"127.0.0.2", full.port()};
  const ConnectionOptions options{.port = full.port(), .connect_timeout = 3s};
  const auto before = steady_clock::now();
  EXPECT_TRUE(connect_to_any({"127.0.0.3", "127.0.0.1", "127.0.0.2"}, options, attempt(options)));
  EXPECT_LT(steady_clock::now() - before, 3s) << "the second address took all the time";
}

TEST(Socket, SaysWhyTheFirstAddressFailed) {
  const FullListener full;
  const ConnectionOptions options{.port = full.port(), .connect_timeout = 50ms};
  try {
    connect_to_any({"127.0.0.1", "127.0.0.3"}, options, attempt(options));
    ADD_FAILURE() << "connected";
  } catch (const ConnectError& error) {
    EXPECT_NE(std::string{error.what()}.find("no connection within 50 ms"), std::string::npos)
        << error.what();
  }
}

TEST(Socket, IsStoppedWhileItConnects) {
  const FullListener listener;
  const Wakeup wakeup;
  std::stop_source source;
  const std::stop_callback wake{source.get_token(), [&wakeup] { wakeup.signal(); }};
  std::thread stopper{[&source] { source.request_stop(); }};
  const ConnectionOptions options{.port = listener.port(), .connect_timeout = test::kGenerous};
  EXPECT_THROW(connect_socket(options, attempt(options, source.get_token(), &wakeup)), Interrupted);
  stopper.join();
}

// A Unix socket whose queue is full refuses at once, and nothing tells when there is room.
TEST(Socket, WaitsForRoomInTheQueueOfAUnixSocket) {
  std::string folder = std::filesystem::temp_directory_path() / "millrace-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/s";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener, 0), 0);

  const auto first = connect({.unix_socket = path});
  const auto error = error_of_connect({.unix_socket = path, .connect_timeout = 100ms});
  EXPECT_NE(error.find("no connection within 100 ms"), std::string::npos) << error;

  std::thread server{[listener] { ::close(::accept(listener, nullptr, nullptr)); }};
  EXPECT_TRUE(connect({.unix_socket = path, .connect_timeout = test::kGenerous}));
  server.join();
  ::close(listener);
  std::filesystem::remove_all(folder);
}

TEST(Socket, IsClosedOnExecAndTunedAsTheOptionsSay) {
  ScriptedServer server{[](Peer& peer) { peer.drain(); }};
  const auto before = open_descriptors();
  const auto transport = connect({.port = server.port(), .tcp_keepalive = 12s});
  const auto option = [](int descriptor, int level, int name) {
    int value = -1;
    socklen_t size = sizeof(value);
    ::getsockopt(descriptor, level, name, &value, &size);
    return value;
  };
  int found = 0;
  for (const int descriptor : open_descriptors()) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    if (before.contains(descriptor) ||
        ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        ntohs(address.sin_port) != server.port()) {
      continue;
    }
    ++found;
    EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(option(descriptor, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(descriptor, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE), 12);
    EXPECT_EQ(option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL), 4);
    EXPECT_EQ(option(descriptor, IPPROTO_TCP, TCP_KEEPCNT), 3);
  }
  EXPECT_EQ(found, 1);
}

TEST(Socket, LeavesNoDescriptorBehind) {
  const auto before = open_descriptors().size();
  const FullListener listener;
  {
    ScriptedServer server{[](Peer& peer) { peer.drain(); }};
    connect({.port = server.port()});
    error_of_connect({.port = listener.port(), .connect_timeout = 10ms});
    error_of_connect({.unix_socket = "/no/such/socket"});
  }
  EXPECT_EQ(open_descriptors().size(), before + 5) << "the listener's own five";
}

// A client that tries a free local port again and again is given that port for itself one day.
TEST(Socket, RefusesToTalkToItself) {
  const int own = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(own, generic, size), 0);
  ASSERT_EQ(::getsockname(own, generic, &size), 0);
  ASSERT_EQ(::connect(own, generic, size), 0) << "a socket can meet itself";
  EXPECT_TRUE(has_met_itself(own));
  ::close(own);

  ScriptedServer server{[](Peer& peer) { peer.drain(); }};
  const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_port = htons(server.port());
  ASSERT_EQ(::connect(other, generic, size), 0);
  EXPECT_FALSE(has_met_itself(other));
  ::close(other);
}

}  // namespace
}  // namespace millrace::detail

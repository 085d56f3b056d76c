#include "support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace millrace::test {
namespace {

/// How often a wait looks whether the test is over.
constexpr std::chrono::milliseconds kLook{10};

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

/// Signals are for the code under test.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::string show(const Peer::Command& command) {
  std::string text;
  for (const auto& word : command) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "the end of the connection" : text;
}

/// Takes one whole command from the front of `bytes`; false if it is not whole yet.
bool take_command(std::string& bytes, Peer::Command& command) {
  std::size_t at = 0;
  const auto number_after = [&](char type, long& number) {
    const auto end = bytes.find("\r\n", at);
    if (end == std::string::npos) return false;
    if (bytes[at] != type) throw std::runtime_error{"the client does not speak RESP: " + bytes};
    number = std::strtol(bytes.c_str() + at + 1, nullptr, 10);
    at = end + 2;
    return true;
  };
  Peer::Command words;
  long count = 0;
  if (!number_after('*', count)) return false;
  for (; count > 0; --count) {
    long size = 0;
    if (!number_after('$', size)) return false;
    const auto length = static_cast<std::size_t>(size);
    if (bytes.size() < at + length + 2) return false;
    words.push_back(bytes.substr(at, length));
    at += length + 2;
  }
  bytes.erase(0, at);
  command = std::move(words);
  return true;
}

}  // namespace

Peer::Peer(int descriptor, std::size_t number, const std::atomic<bool>& stopping) noexcept
    : descriptor_{descriptor}, number_{number}, stopping_{stopping} {}

/// Waits for bytes, or the end of the stream, or of the test.
bool Peer::is_readable() {
  const auto end = std::chrono::steady_clock::now() + kGenerous;
  while (!stopping_ && std::chrono::steady_clock::now() < end) {
    pollfd polled{.fd = descriptor_, .events = POLLIN, .revents = 0};
    if (::poll(&polled, 1, static_cast<int>(kLook.count())) > 0) return true;
  }
  return false;
}

bool Peer::fill() {
  if (!is_readable()) return false;
  std::array<char, 65536> bytes;
  const auto count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  unread_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

Peer::Command Peer::read() {
  Command command;
  while (unread_.empty() || !take_command(unread_, command)) {
    if (!fill()) return {};
  }
  return command;
}

void Peer::expect(std::initializer_list<std::string_view> words) {
  const Command expected{words.begin(), words.end()};
  const Command command = read();
  if (command != expected && !stopping_) {
    ADD_FAILURE() << "the client sent " << show(command) << " in place of " << show(expected);
  }
}

void Peer::expect_client_id(std::uint64_t id) {
  expect({"CLIENT", "ID"});
  send(":" + std::to_string(id) + "\r\n");
}

void Peer::send(std::string_view bytes) {
  const auto end = std::chrono::steady_clock::now() + kGenerous;
  while (!bytes.empty() && !stopping_ && std::chrono::steady_clock::now() < end) {
    pollfd polled{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (::poll(&polled, 1, static_cast<int>(kLook.count())) <= 0) continue;
    const auto count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return;  // the client has gone
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void Peer::send_split(std::string_view bytes, std::size_t at) {
  send(bytes.substr(0, at));
  wait_until([this] { return has_been_taken(); });
  send(bytes.substr(at));
}

bool Peer::has_been_taken() const {
  int waiting = 0;
  return ::ioctl(descriptor_, SIOCOUTQ, &waiting) != 0 || waiting == 0;
}

void Peer::drain() {
  while (fill()) unread_.clear();
}

void Peer::wait_until(const std::function<bool()>& condition) {
  static_cast<void>(test::wait_until([&] { return stopping_ || condition(); }));
}

void Peer::stall() {
  wait_until([] { return false; });
}

void Peer::pause(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  wait_until([end] { return std::chrono::steady_clock::now() >= end; });
}

void Peer::close() {
  if (const int descriptor = descriptor_.exchange(-1); descriptor >= 0) ::close(descriptor);
}

void Peer::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close();
}

ScriptedServer::ScriptedServer(Script script, Kind kind) : script_{std::move(script)} {
  kind == Kind::kTcp ? listen_on_tcp() : listen_on_unix();
  if (::listen(listener_, SOMAXCONN) != 0) throw_errno("listen");
  const NoSignals in_new_threads;
  acceptor_ = std::thread{[this] { accept_all(); }};
}

ScriptedServer::~ScriptedServer() {
  stopping_ = true;
  acceptor_.join();
  for (auto& session : sessions_) session.thread.join();
  ::close(listener_);
  if (!path_.empty()) std::filesystem::remove_all(std::filesystem::path{path_}.parent_path());
}

void ScriptedServer::listen_on_tcp() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_errno("bind");
  }
  port_ = ntohs(address.sin_port);
}

void ScriptedServer::listen_on_unix() {
  std::string folder = std::filesystem::temp_directory_path() / "millrace-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) throw_errno("mkdtemp");
  path_ = folder + "/socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0 ||
      ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw_errno("bind");
  }
}

void ScriptedServer::accept_all() {
  while (!stopping_) {
    pollfd polled{.fd = listener_, .events = POLLIN, .revents = 0};
    if (::poll(&polled, 1, static_cast<int>(kLook.count())) <= 0) continue;
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0) continue;
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    auto& session = sessions_.emplace_back(descriptor, accepted_++, stopping_);
    session.thread = std::thread{[this, &peer = session.peer] {
      try {
        script_(peer);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      peer.close();
    }};
  }
}

}  // namespace millrace::test

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace millrace::test {

/// A descriptor, closed with this object. For Proxy.
class Socket {
 public:
  explicit Socket(int fd) : fd_{fd} {
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "proxy");
  }
  Socket(Socket&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

inline Socket connected_to(const std::string& path) {
  Socket socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::system_error(errno, std::generic_category(), "proxy: no server");
  }
  return socket;
}

inline Socket listening_on_loopback() {
  Socket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.fd(), SOMAXCONN) != 0) {
    throw std::system_error(errno, std::generic_category(), "proxy: no port");
  }
  return socket;
}

inline std::uint16_t port_of(const Socket& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

/// What is written to it goes out at once.
inline void send_without_delay(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

inline bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// How many commands begin in these bytes, the first of which begins where they do.
inline std::size_t commands_in(std::string_view bytes) {
  std::size_t commands = 0;
  while (!bytes.empty() && bytes.front() == '*') {
    ++commands;
    long words = std::strtol(std::string{bytes.substr(1, 20)}.c_str(), nullptr, 10);
    bytes.remove_prefix(std::min(bytes.size(), bytes.find('\n') + 1));
    for (; words > 0 && !bytes.empty() && bytes.front() == '$'; --words) {
      const long size = std::strtol(std::string{bytes.substr(1, 20)}.c_str(), nullptr, 10);
      const std::size_t line = bytes.find('\n') + 1;
      bytes.remove_prefix(std::min(bytes.size(), line + static_cast<std::size_t>(size) + 2));
    }
  }
  return commands;
}

}  // namespace millrace::test

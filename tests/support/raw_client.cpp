#include "support/raw_client.hpp"

#include "support/wait_until.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace millrace::test {

namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

template <typename Address>
void connect_to(int socket, const Address& address) {
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot connect to the test's server");
  }
}

void connect_to(int socket, const ConnectionOptions& options) {
  if (!options.unix_socket.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options.unix_socket.copy(address.sun_path, sizeof address.sun_path - 1);
    connect_to(socket, address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.port);
    ::inet_pton(AF_INET, options.host.c_str(), &address.sin_addr);
    connect_to(socket, address);
  }
}

}  // namespace

RawClient::RawClient(const ConnectionOptions& options, int protocol)
    : socket_{::socket(options.unix_socket.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC,
                       0)} {
  if (socket_ < 0) fail("socket");
  try {
    const timeval patience{.tv_sec = kGenerous.count() / 1000, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    connect_to(socket_, options);
    if (protocol != 2) (*this)("HELLO", protocol);
  } catch (...) {
    ::close(socket_);
    throw;
  }
}

RawClient::~RawClient() { ::close(socket_); }

void RawClient::send_words(std::span<const std::string> words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t n = ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot send to the test's server");
    sent += static_cast<std::size_t>(n);
  }
}

bool RawClient::fill() {
  if (used_ > 0) {
    buffer_.erase(0, used_);
    used_ = 0;
  }
  char bytes[65536];
  ssize_t n = 0;
  do {
    n = ::recv(socket_, bytes, sizeof bytes, 0);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno != ECONNRESET) fail("no reply from the test's server");
  if (n <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(n));
  return true;
}

std::string RawClient::read_line() {
  for (;;) {
    const std::size_t end = buffer_.find("\r\n", used_);
    if (end != std::string::npos) {
      std::string line = buffer_.substr(used_, end - used_);
      used_ = end + 2;
      return line;
    }
    if (!fill()) throw std::runtime_error("the test's server closed the connection");
  }
}

std::string RawClient::read_bytes(std::size_t size) {
  while (buffer_.size() - used_ < size + 2) {
    if (!fill()) throw std::runtime_error("the test's server closed the connection");
  }
  std::string bytes = buffer_.substr(used_, size);
  used_ += size + 2;
  return bytes;
}

RawReply RawClient::receive() { return read_reply(); }

RawReply RawClient::read_reply() {
  const std::string line = read_line();
  RawReply reply{.type = line.at(0), .text = line.substr(1)};
  switch (reply.type) {
    case ':':
      reply.integer = std::stoll(reply.text);
      break;
    case '$':
    case '!':
    case '=': {
      const long long size = std::stoll(reply.text);
      reply.null = size < 0;
      reply.text = size < 0 ? "" : read_bytes(static_cast<std::size_t>(size));
      break;
    }
    case '*':
    case '~':
    case '>':
    case '%': {
      const long long size = std::stoll(reply.text) * (reply.type == '%' ? 2 : 1);
      reply.null = size < 0;
      reply.text.clear();
      for (long long i = 0; i < size; ++i) reply.elements.push_back(read_reply());
      break;
    }
    default:
      break;
  }
  return reply;
}

bool RawClient::is_closed_by_server() { return used_ == buffer_.size() && !fill(); }

std::string info_field(RawClient& raw, std::string_view section, std::string_view name) {
  const std::string text = "\n" + raw("INFO", section).text;
  const std::string start = "\n" + std::string{name} + ":";
  const std::size_t at = text.find(start);
  if (at == std::string::npos) throw std::runtime_error("INFO has no field " + std::string{name});
  const std::size_t from = at + start.size();
  return text.substr(from, text.find('\r', from) - from);
}

}  // namespace millrace::test

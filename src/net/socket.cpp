#include "net/socket.hpp"

#include <millrace/error.hpp>

#include "core/printable.hpp"
#include "net/connection.hpp"
#include "net/deadline.hpp"
#include "net/resolve.hpp"
#include "net/socket_transport.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace millrace::detail {
namespace {

/// A socket until a transport takes it.
class Descriptor {
 public:
  explicit Descriptor(int descriptor) noexcept : descriptor_{descriptor} {}
  Descriptor(Descriptor&& other) noexcept : descriptor_{other.release()} {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const noexcept { return descriptor_; }
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

/// Why an attempt on one address failed.
struct Refusal {
  int error_number = 0;
};

/// What hiredis has begun; the connection may still be on its way.
std::optional<Descriptor> take_over(redisContext* context, Refusal& refusal) {
  const int error_number = errno;
  if (context == nullptr) {
    refusal = {ENOMEM};
    return std::nullopt;
  }
  const bool failed = context->err != 0;
  Descriptor descriptor{redisFreeKeepFd(context)};
  if (failed) {
    refusal = {error_number != 0 ? error_number : EIO};
    return std::nullopt;
  }
  // hiredis has no SOCK_CLOEXEC: a program that another thread starts right now still gets it.
  ::fcntl(descriptor.get(), F_SETFD, FD_CLOEXEC);
  return descriptor;
}

/// Newer versions of hiredis take the EAGAIN of a Unix socket, whose queue is full, for a
/// connection that is on its way. Nothing is: the socket is ready at once, and has no peer.
bool has_peer(int descriptor) noexcept {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  return ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0 ||
         errno != ENOTCONN;
}

/// Waits until the connection stands.
Refusal finish(int descriptor, const Attempt& attempt, TimePoint deadline) {
  for (;;) {
    switch (poll_until(descriptor, {.writable = true}, attempt.wakeup, deadline, attempt.clock)) {
      case Waited::kTimedOut:
        return {ETIMEDOUT};
      case Waited::kWoken:
        if (attempt.stop.stop_requested()) throw Interrupted{};
        attempt.wakeup->reset();
        continue;
      case Waited::kReady:
        break;
    }
    int error_number = 0;
    socklen_t size = sizeof(error_number);
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) return {errno};
    if (error_number == 0 && !has_peer(descriptor)) return {EAGAIN};
    if (error_number == 0 && has_met_itself(descriptor)) return {ECONNREFUSED};
    return {error_number};
  }
}

void set_option(int descriptor, int level, int name, int value) noexcept {
  // A socket that refuses one still works: slower, or noticing a dead peer later.
  ::setsockopt(descriptor, level, name, &value, sizeof(value));
}

/// Three probes in as much time again: a half-open connection is noticed after about twice `idle`.
void tune_tcp(int descriptor, Milliseconds idle) noexcept {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);  // hiredis 1.x leaves it out here
  if (idle.count() == 0) return;
  const auto seconds = static_cast<int>(std::chrono::floor<std::chrono::seconds>(idle).count());
  set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
  set_option(descriptor, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

[[noreturn]] void refuse(const ConnectionOptions& options, const Attempt& attempt,
                         const Refusal& refusal) {
  const auto why = refusal.error_number == ETIMEDOUT
                       ? fmt::format("no connection within {} ms; connect_timeout is {} ms",
                                     attempt.limit.count(), options.connect_timeout.count())
                       : system_message(refusal.error_number);
  throw ConnectError{fmt::format("cannot connect to {}: {}", endpoint_of(options), why)};
}

std::unique_ptr<Transport> connect_unix(const ConnectionOptions& options, const Attempt& attempt) {
  constexpr Milliseconds kPause{5};
  for (;;) {
    errno = 0;
    Refusal refusal{};
    auto descriptor = take_over(redisConnectUnixNonBlock(options.unix_socket.c_str()), refusal);
    if (descriptor) refusal = finish(descriptor->get(), attempt, attempt.deadline);
    if (refusal.error_number == 0) {
      return std::make_unique<SocketTransport>(descriptor->release(), attempt.clock);
    }
    // The server's queue is full, and for a Unix socket nothing tells when it no longer is.
    const auto now = attempt.clock.now();
    if (refusal.error_number != EAGAIN) refuse(options, attempt, refusal);
    if (now >= attempt.deadline) refuse(options, attempt, {ETIMEDOUT});
    poll_until(-1, {}, attempt.wakeup, std::min(attempt.deadline, after(now, kPause)),
               attempt.clock);
    if (attempt.stop.stop_requested()) throw Interrupted{};
  }
}

}  // namespace

bool has_met_itself(int descriptor) noexcept {
  sockaddr_storage ours{};
  sockaddr_storage theirs{};
  socklen_t ours_size = sizeof(ours);
  socklen_t theirs_size = sizeof(theirs);
  return ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&ours), &ours_size) == 0 &&
         ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&theirs), &theirs_size) == 0 &&
         (ours.ss_family == AF_INET || ours.ss_family == AF_INET6) && ours_size == theirs_size &&
         std::memcmp(&ours, &theirs, ours_size) == 0;
}

std::string endpoint_of(const ConnectionOptions& options) {
  if (!options.unix_socket.empty()) return printable(options.unix_socket);
  const auto host = printable(options.host);
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", host, options.port)
                 : fmt::format("{}:{}", host, options.port);
}

std::unique_ptr<Transport> connect_to_any(const std::vector<std::string>& addresses,
                                          const ConnectionOptions& options,
                                          const Attempt& attempt) {
  std::optional<Refusal> first_refusal;
  for (std::size_t at = 0; at < addresses.size(); ++at) {
    // An address that does not answer leaves the others their share of the time.
    const auto now = attempt.clock.now();
    const auto others = static_cast<long>(addresses.size() - at);
    const auto deadline =
        std::min(attempt.deadline, after(now, left_until(attempt.deadline, now) / others));
    Refusal refusal;
    errno = 0;
    auto descriptor = take_over(redisConnectNonBlock(addresses[at].c_str(), options.port), refusal);
    if (descriptor) refusal = finish(descriptor->get(), attempt, deadline);
    if (refusal.error_number == 0) {
      tune_tcp(descriptor->get(), options.tcp_keepalive);
      return std::make_unique<SocketTransport>(descriptor->release(), attempt.clock);
    }
    if (!first_refusal) first_refusal = refusal;
  }
  refuse(options, attempt, *first_refusal);
}

std::unique_ptr<Transport> connect_socket(const ConnectionOptions& options,
                                          const Attempt& attempt) {
  if (!options.unix_socket.empty()) return connect_unix(options, attempt);
  return connect_to_any(resolve(options.host, options.port), options, attempt);
}

}  // namespace millrace::detail

#include "net/socket_transport.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <utility>

namespace millrace::detail {
namespace {

using Status = IoResult::Status;

/// EAGAIN and EINTR both mean: nothing has happened yet.
bool is_passing(int error_number) noexcept {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

}  // namespace

SocketTransport::SocketTransport(int descriptor, const Clock& clock) noexcept
    : descriptor_{descriptor}, clock_{&clock} {}

IoResult SocketTransport::receive(std::span<char> into) noexcept {
  const ssize_t count = ::recv(descriptor_, into.data(), into.size(), 0);
  if (count > 0) return {.status = Status::kDone, .bytes = static_cast<std::size_t>(count)};
  if (count == 0) return {.status = Status::kEnd};
  if (is_passing(errno)) return {.status = Status::kWantRead};
  return {.status = Status::kFailed, .error_number = errno};
}

IoResult SocketTransport::send(std::string_view bytes) noexcept {
  const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return {.status = Status::kDone, .bytes = static_cast<std::size_t>(count)};
  if (is_passing(errno)) return {.status = Status::kWantWrite};
  return {.status = Status::kFailed, .error_number = errno};
}

Waited SocketTransport::wait(Interest interest, const Wakeup* wakeup, TimePoint deadline) noexcept {
  return poll_until(descriptor_, interest, wakeup, deadline, *clock_);
}

bool SocketTransport::is_quiet() noexcept { return descriptor_ >= 0 && is_quiet_now(descriptor_); }

void SocketTransport::finish_sending() noexcept {
  if (made_in_.is_here()) ::shutdown(descriptor_, SHUT_WR);
}

void SocketTransport::close() noexcept {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0) return;
  if (made_in_.is_here()) ::shutdown(descriptor, SHUT_RDWR);
  ::close(descriptor);
}

}  // namespace millrace::detail

#include "net/poll.hpp"

#include "net/deadline.hpp"
#include "net/wakeup.hpp"

#include <poll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

namespace millrace::detail {

Waited poll_until(int descriptor, Interest interest, const Wakeup* wakeup, TimePoint deadline,
                  const Clock& clock) {
  const auto events =
      static_cast<short>((interest.readable ? POLLIN : 0) | (interest.writable ? POLLOUT : 0));
  // poll() skips negative descriptors.
  std::array<pollfd, 2> polled{
      pollfd{.fd = descriptor, .events = events, .revents = 0},
      pollfd{.fd = wakeup != nullptr ? wakeup->descriptor() : -1, .events = POLLIN, .revents = 0}};
  for (;;) {
    const auto left = left_until(deadline, clock.now()).count();
    const auto bounded = std::min<decltype(left)>(left, std::numeric_limits<int>::max());
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(bounded));
    // The stream first: what has arrived before a stop is not thrown away.
    if (ready > 0) return polled[0].revents != 0 ? Waited::kReady : Waited::kWoken;
    if (ready < 0 && errno != EINTR) return Waited::kReady;  // the next read or write says why
    if (clock.now() >= deadline) return Waited::kTimedOut;
  }
}

bool is_quiet_now(int descriptor) noexcept {
  pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, 0);
  } while (ready < 0 && errno == EINTR);
  return ready == 0;
}

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace millrace::detail

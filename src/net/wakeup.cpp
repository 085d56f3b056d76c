#include "net/wakeup.hpp"

#include <millrace/error.hpp>

#include "net/poll.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cerrno>

namespace millrace::detail {

Wakeup::Wakeup() : descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (descriptor_ < 0) {
    throw IoError{fmt::format("no eventfd for a connection: {}", system_message(errno)),
                  Outcome::kNotApplied};
  }
}

Wakeup::~Wakeup() { ::close(descriptor_); }

void Wakeup::signal() const noexcept {
  if (!made_in_.is_here()) return;
  // The only failure is a counter that is full: it is signalled all the same.
  [[maybe_unused]] const int ignored = ::eventfd_write(descriptor_, 1);
}

void Wakeup::reset() const noexcept {
  eventfd_t count = 0;
  [[maybe_unused]] const int ignored = ::eventfd_read(descriptor_, &count);
}

}  // namespace millrace::detail

#pragma once

#include <millrace/error.hpp>

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>
#include <string_view>

namespace millrace::detail {

/// The process that something was made in. After fork() a child shares its parent's sockets, and a
/// byte of the child's on one of them would garble the parent's conversation.
class HomeProcess {
 public:
  bool is_here() const noexcept { return ::getpid() == pid_; }

  /// Throws UnsupportedError in a child.
  void check(std::string_view what,
             std::string_view advice = "make a ConnectionPool in the child") const {
    if (is_here()) return;
    throw UnsupportedError{
        fmt::format("{} was made in process {} and cannot be used in process {} after fork(): {}",
                    what, pid_, ::getpid(), advice)};
  }

 private:
  pid_t pid_ = ::getpid();
};

}  // namespace millrace::detail

#pragma once

#include "net/process.hpp"

namespace millrace::detail {

/// Ends a wait from another thread: an eventfd that is polled beside the socket.
///
/// signal() does nothing in a child after fork(): the descriptor is shared with the parent, whose
/// wait it would end.
class Wakeup {
 public:
  Wakeup();  ///< Throws IoError if the process has no descriptor left.
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void signal() const noexcept;  ///< From any thread, any number of times.
  void reset() const noexcept;   ///< Forgets all signals so far.
  int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
  HomeProcess made_in_;
};

}  // namespace millrace::detail

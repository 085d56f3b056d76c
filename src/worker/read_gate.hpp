#pragma once

#include "core/clock.hpp"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace millrace::detail {

/// Where a read that waits on the server can be found, so that a stop can end it.
///
/// Invariant: once close() has returned, enter() says no. So whoever closes the gate and then finds
/// nobody inside knows that no read is outstanding, and none will be.
class ReadGate {
 public:
  /// A read is about to be sent on the connection with this client id. False: do not.
  bool enter(std::uint64_t client_id) {
    std::lock_guard lock{mutex_};
    if (closed_) return false;
    inside_ = client_id;
    return true;
  }

  /// Its reply was taken, or never will be.
  void leave() {
    std::lock_guard lock{mutex_};
    inside_.reset();
    left_.notify_all();
  }

  void close() {
    std::lock_guard lock{mutex_};
    closed_ = true;
  }

  std::optional<std::uint64_t> inside() const {
    std::lock_guard lock{mutex_};
    return inside_;
  }

  /// True as soon as nobody is inside; false if that took longer than `wait`.
  bool wait_until_left(Milliseconds wait) {
    std::unique_lock lock{mutex_};
    return left_.wait_for(lock, wait, [this] { return !inside_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::optional<std::uint64_t> inside_;
  bool closed_ = false;
};

}  // namespace millrace::detail

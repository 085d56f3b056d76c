#pragma once

#include "support/wait_until.hpp"

#include <atomic>
#include <cstddef>

namespace millrace::test {

/// Where handlers wait until the test lets them go on. A test that fails is left after kGenerous.
class Gate {
 public:
  /// For handlers: waits until the gate is open.
  void pass() {
    arrived_.fetch_add(1);
    // What was not let through in time is, so that a worker's destructor comes to an end.
    static_cast<void>(wait_until([this] { return open_.load(); }));
  }

  void open() { open_.store(true); }
  void close() { open_.store(false); }

  std::size_t arrived() const { return arrived_.load(); }
  [[nodiscard]] bool wait_for_arrivals(std::size_t count) const {
    return wait_until([&] { return arrived() >= count; });
  }

 private:
  std::atomic<std::size_t> arrived_{0};
  std::atomic<bool> open_{false};
};

}  // namespace millrace::test

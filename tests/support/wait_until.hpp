#pragma once

#include <chrono>
#include <thread>

namespace millrace::test {

/// How long a condition may take that is sure to come: far longer than it ever takes, so that only
/// a fault can reach it, even on a slow machine under a sanitizer.
inline constexpr std::chrono::milliseconds kGenerous{30'000};

/// Looks again and again until `condition()` holds. False if it did not within `deadline`.
template <typename Condition>
[[nodiscard]] bool wait_until(Condition&& condition,
                              std::chrono::milliseconds deadline = kGenerous) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace millrace::test

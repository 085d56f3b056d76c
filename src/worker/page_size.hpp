#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace millrace::detail {

/// How many entries to ask for at once: halved while pages are too big to arrive in time. Safe from
/// any thread.
class PageSize {
 public:
  explicit PageSize(std::size_t most) : most_{most}, size_{most} {}

  std::size_t get() const noexcept { return size_.load(std::memory_order_relaxed); }
  void arrived() noexcept { set(std::min(2 * get(), most_)); }
  void timed_out() noexcept { set(std::max<std::size_t>(get() / 2, 1)); }

 private:
  void set(std::size_t size) noexcept { size_.store(size, std::memory_order_relaxed); }

  const std::size_t most_;
  std::atomic<std::size_t> size_;
};

}  // namespace millrace::detail

// Counts the calls of malloc, those that operator new makes among them. In a program of its own
// file: it stands in the way of malloc for all of it.

#include "bench/bench.hpp"

#include <atomic>
#include <cstdlib>

extern "C" {
void* __libc_malloc(std::size_t size);                     // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t size);      // NOLINT(bugprone-reserved-identifier)
}

namespace {
// Relaxed, and in a cache line of its own: it is to cost next to nothing.
alignas(64) std::atomic<std::uint64_t> count{0};
void one_more() noexcept { count.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  one_more();
  return __libc_malloc(size);
}
void* calloc(std::size_t elements, std::size_t size) {
  one_more();
  return __libc_calloc(elements, size);
}
void* realloc(void* memory, std::size_t size) {
  one_more();
  return __libc_realloc(memory, size);
}
}

std::uint64_t millrace::bench::allocations() noexcept {
  return count.load(std::memory_order_relaxed);
}

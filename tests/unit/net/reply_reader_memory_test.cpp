#include "net/reply_reader.hpp"

#include <millrace/error.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <string>

namespace {
/// How many allocations still succeed on this thread.
thread_local std::size_t allocations_left = std::numeric_limits<std::size_t>::max();
}  // namespace

void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc{};
  --allocations_left;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace millrace::detail {
namespace {

/// Reads `bytes` with so many allocations. True if a reply came, false if memory ran out.
bool reads_with(std::size_t allocations, std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  allocations_left = allocations;
  bool has_reply = false;
  try {
    has_reply = reader.next().has_value();
  } catch (const IoError&) {
    // Not through hiredis' frames: it had been told, and cleaned up.
  } catch (const std::bad_alloc&) {
    // The error itself found no memory.
  }
  allocations_left = std::numeric_limits<std::size_t>::max();
  return has_reply;
}

TEST(ReplyReader, SurvivesThatMemoryRunsOutAtAnyPoint) {
  const std::string bytes =
      "*3\r\n$5\r\nhello\r\n*2\r\n:1\r\n$-1\r\n$9000\r\n" + std::string(9000, 'x') + "\r\n";
  std::size_t needed = 0;
  while (!reads_with(needed, bytes)) ASSERT_LT(++needed, 100U);
  EXPECT_GT(needed, 3U) << "the test has seen nothing fail";
}

}  // namespace
}  // namespace millrace::detail

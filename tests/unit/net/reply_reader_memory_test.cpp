#include "net/reply_reader.hpp"

#include <millrace/error.hpp>

#include "protocol/decode.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>

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

/// As XRANGE answers with so many entries of two fields.
std::string range_of(std::size_t entries) {
  std::string bytes = "*" + std::to_string(entries) + "\r\n";
  for (std::size_t i = 0; i < entries; ++i) {
    bytes += "*2\r\n$6\r\n1000-0\r\n*4\r\n$5\r\norder\r\n$20\r\n" + std::string(20, 'x') +
             "\r\n$5\r\ntotal\r\n$4\r\n9.90\r\n";
  }
  return bytes;
}

/// Allocations from the bytes of so many entries, in pieces as they are read from a socket, to
/// their batch. hiredis' own buffer is not among them: it is there before.
std::size_t allocations_of(std::size_t entries) {
  constexpr std::size_t kPiece = 16'384;
  const std::string bytes = range_of(entries);
  const auto before = allocations_left;
  ReplyReader reader;
  std::optional<Reply> reply;
  for (std::string_view rest{bytes}; !rest.empty() && !reply;) {
    const std::string_view piece = rest.substr(0, kPiece);
    rest.remove_prefix(piece.size());
    reader.feed(piece);
    reply = reader.next();
  }
  const EntryBatch batch = decode::entries(std::move(reply.value()));
  EXPECT_EQ(batch.size(), entries);
  return before - allocations_left;
}

// What holds the elements and their bytes grows by doubling, up to 1 MiB at a time. So 1,000
// entries of 5 elements each take a few more allocations than one, and none takes one of its own.
TEST(ReplyReader, AllocatesForTheGrowthOfAReplyAndNotForItsEntries) {
  const std::size_t one = allocations_of(1);
  const std::size_t thousand = allocations_of(1'000);
  EXPECT_LE(one, 12U);
  EXPECT_LE(thousand, one + 20);
  EXPECT_LE(allocations_of(8'000), allocations_of(4'000) + 4) << "twice as much, one step of each";
}

}  // namespace
}  // namespace millrace::detail

#include "core/byte_arena.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace::detail {
namespace {
constexpr std::size_t kLargestChunk = std::size_t{1} << 20;
}

ByteArena::ByteArena(ByteArena&& other) noexcept
    : chunks_{std::move(other.chunks_)},
      free_{std::exchange(other.free_, nullptr)},
      left_{std::exchange(other.left_, 0)},
      next_chunk_{other.next_chunk_} {}

ByteArena& ByteArena::operator=(ByteArena&& other) noexcept {
  chunks_ = std::move(other.chunks_);
  free_ = std::exchange(other.free_, nullptr);
  left_ = std::exchange(other.left_, 0);
  next_chunk_ = other.next_chunk_;
  return *this;
}

std::string_view ByteArena::store(std::string_view bytes) {
  if (bytes.empty()) return {};
  char* place = allocate(bytes.size());
  std::memcpy(place, bytes.data(), bytes.size());
  return {place, bytes.size()};
}

char* ByteArena::allocate(std::size_t size) {
  if (size > left_) {
    // A string that would waste most of a chunk gets one of its own, and the open chunk stays open.
    if (size > next_chunk_ / 4) {
      return chunks_.emplace_back(std::make_unique_for_overwrite<char[]>(size)).get();
    }
    free_ = chunks_.emplace_back(std::make_unique_for_overwrite<char[]>(next_chunk_)).get();
    left_ = next_chunk_;
    next_chunk_ = std::min(next_chunk_ * 2, kLargestChunk);
  }
  left_ -= size;
  return std::exchange(free_, free_ + size);
}

}  // namespace millrace::detail

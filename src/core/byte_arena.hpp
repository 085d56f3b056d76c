#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::detail {

/// Bytes that stay where they are until the arena goes. Chunks grow, so n bytes cost about log n
/// allocations; moving the arena keeps every view valid.
class ByteArena {
 public:
  ByteArena() = default;
  /// Takes over chunks that are full.
  explicit ByteArena(std::vector<std::unique_ptr<char[]>> chunks) noexcept
      : chunks_{std::move(chunks)} {}
  ByteArena(ByteArena&& other) noexcept;
  ByteArena& operator=(ByteArena&& other) noexcept;
  ~ByteArena() = default;

  std::string_view store(std::string_view bytes);

 private:
  char* allocate(std::size_t size);

  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  std::size_t left_ = 0;
  std::size_t next_chunk_ = 4096;
};

}  // namespace millrace::detail

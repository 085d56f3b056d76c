#pragma once

#include "core/byte_arena.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// The bytes of one reply, which come in pieces cut anywhere.
///
/// Invariant: what is unread is contiguous, and what was read stays where it is. So a string can be
/// a view as soon as all of it is there.
class ReplyBytes {
 public:
  /// Adds a piece behind what is unread. `wanted` is how many bytes would make that of use, 0 if
  /// that is not known: room for them is made in one step, if they are not too many to believe.
  void add(std::string_view piece, std::size_t wanted);

  std::string_view unread() const noexcept { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  void read_to(const char* at) noexcept { at_ = at; }

  /// All that came before the last piece.
  std::string before_last_piece() const;

  /// What was read, for whom it is kept. Ends this reply: what is unread is no part of it.
  ByteArena release();

 private:
  void make_room(std::size_t more, std::size_t wanted);

  std::vector<std::unique_ptr<char[]>> chunks_;
  std::vector<std::string_view> full_;  ///< What was read of each chunk but the last.
  const char* begin_ = nullptr;         ///< Of the last chunk.
  const char* at_ = nullptr;
  char* end_ = nullptr;
  const char* limit_ = nullptr;
  std::size_t last_piece_ = 0;
};

}  // namespace millrace::detail

#include "protocol/reply_bytes.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {
namespace {

/// Room for what is announced costs nothing before its bytes come, and in steps of doubling the
/// smaller blocks would stay behind in the heap. What a peer just claims gets no more at once.
constexpr std::size_t kFarAhead = std::size_t{64} << 20;

}  // namespace

void ReplyBytes::add(std::string_view piece, std::size_t wanted) {
  if (static_cast<std::size_t>(limit_ - end_) < piece.size()) make_room(piece.size(), wanted);
  end_ = std::copy(piece.begin(), piece.end(), end_);
  last_piece_ = piece.size();
}

void ReplyBytes::make_room(std::size_t more, std::size_t wanted) {
  const std::string_view rest = unread();
  const std::size_t ahead = std::min(wanted, std::max(2 * rest.size(), kFarAhead));
  const std::size_t size = std::max(rest.size() + more, ahead);
  auto chunk = std::make_unique_for_overwrite<char[]>(size);
  char* const end = std::copy(rest.begin(), rest.end(), chunk.get());
  const bool is_first = chunks_.empty();
  chunks_.push_back(std::move(chunk));
  if (at_ != begin_) {
    full_.emplace_back(begin_, static_cast<std::size_t>(at_ - begin_));
  } else if (!is_first) {
    chunks_.erase(chunks_.end() - 2);  // nothing of it was read
  }
  begin_ = at_ = chunks_.back().get();
  end_ = end;
  limit_ = begin_ + size;
}

std::string ReplyBytes::before_last_piece() const {
  std::string bytes;
  for (const std::string_view each : full_) bytes += each;
  return bytes.append(begin_, static_cast<std::size_t>(end_ - begin_) - last_piece_);
}

ByteArena ReplyBytes::release() {
  full_.clear();
  begin_ = at_ = limit_ = end_ = nullptr;
  return ByteArena{std::exchange(chunks_, {})};
}

}  // namespace millrace::detail

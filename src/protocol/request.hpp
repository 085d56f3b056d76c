#pragma once

#include <millrace/fields.hpp>
#include <millrace/stream_id.hpp>

#include "protocol/reply_shape.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// Commands as bytes, one after another, in one buffer that is used again and again.
///
///     request.command("XADD", 5);
///     request.arg(key).arg("*").arg(name).arg(value);
class RequestBuffer {
 public:
  RequestBuffer() = default;
  RequestBuffer(const RequestBuffer&) = delete;
  RequestBuffer& operator=(const RequestBuffer&) = delete;
  ~RequestBuffer() = default;

  static constexpr std::size_t kMaxArguments = 1'048'576;
  static constexpr std::size_t kMaxArgumentBytes = std::size_t{512} << 20;

  /// Starts a command of `arguments` words, `name` being the first. Throws InvalidArgument, which
  /// names the limit, if there are more than kMaxArguments.
  RequestBuffer& command(std::string_view name, std::size_t arguments);

  /// Starts a command with the same words as the last one that command() started: the `size` bytes
  /// from `at` on. `words` are to come.
  RequestBuffer& start_as(std::size_t at, std::size_t size, std::size_t words);

  /// Appends a word. Throws InvalidArgument, which names the limit, if it is too long. In both
  /// cases the unfinished command is taken back, and what was complete before it stays.
  RequestBuffer& arg(std::string_view word);
  RequestBuffer& arg(std::uint64_t number);
  RequestBuffer& arg(StreamId id);

  /// Two words at once.
  RequestBuffer& field(const Field& field);

  /// Appends `words` words of the command that another buffer has encoded.
  RequestBuffer& encoded(std::string_view bytes, std::size_t words);

  /// Appends a whole command that another buffer has encoded.
  void add_encoded(std::string_view command);

  /// Says what the command that was started is answered with, unless that is an error. Before its
  /// last word.
  RequestBuffer& answered_by(ReplyShape shape);

  /// Takes back everything; keeps the memory, unless it grew beyond what is worth keeping.
  void clear() noexcept;

  std::string_view bytes() const noexcept { return {bytes_.get(), size_}; }
  std::size_t commands() const noexcept { return ends_.size(); }

  /// Where each complete command ends in bytes(): tells which ones a broken send left whole.
  std::span<const std::size_t> ends() const noexcept { return ends_; }

  /// What answers the complete command `index`.
  ReplyShape shape_of(std::size_t index) const noexcept {
    return shaped_.empty() ? ReplyShape::kAny : look_up(index);
  }

 private:
  struct Shaped {
    std::size_t command;
    ReplyShape shape;
  };

  char* room_for(std::size_t more) {
    if (capacity_ - size_ < more) grow(more);
    return bytes_.get() + size_;
  }
  void grow(std::size_t more);
  void append(std::string_view bytes);
  void append_word(std::string_view word);
  void check_size(std::string_view word) {
    if (word.size() > kMaxArgumentBytes) refuse(word);
  }
  [[noreturn]] void refuse(std::string_view word);
  void end_word(const char* end);
  void take_back() noexcept;
  ReplyShape look_up(std::size_t index) const noexcept;

  // Not a std::string, which asks for each part of a word anew whether there is room.
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::vector<std::size_t> ends_;
  std::vector<Shaped> shaped_;  ///< The few that are not kAny.
  std::string_view name_;
  std::size_t remaining_ = 0;
};

}  // namespace millrace::detail

#include "protocol/request.hpp"

#include <millrace/error.hpp>
#include <millrace/format.hpp>

#include "core/decimal.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace millrace::detail {
namespace {

/// A buffer that once held a big value is not kept at that size.
constexpr std::size_t kWorthKeeping = std::size_t{1} << 20;

constexpr std::size_t kSmallest = 1024;

/// What a word takes besides its bytes: a sign, its size, and two line ends.
constexpr std::size_t kFraming = 1 + kMostDigits + 2 + 2;

char* write_line_end(char* at) noexcept {
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

/// As memcpy, which is not worth its call for the few bytes of most words.
char* write_bytes(char* at, std::string_view bytes) noexcept {
  const std::size_t size = bytes.size();
  const char* const from = bytes.data();
  if (size > 32) {
    std::memcpy(at, from, size);
  } else if (size >= 16) {  // two halves that overlap, here and below
    std::memcpy(at, from, 16);
    std::memcpy(at + size - 16, from + size - 16, 16);
  } else if (size >= 8) {
    std::memcpy(at, from, 8);
    std::memcpy(at + size - 8, from + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(at, from, 4);
    std::memcpy(at + size - 4, from + size - 4, 4);
  } else {
    for (std::size_t i = 0; i < size; ++i) at[i] = from[i];
  }
  return at + size;
}

/// "$0\r\n" to "$99\r\n", each with zeros behind it up to eight bytes.
constexpr auto kSizeLines = [] {
  std::array<std::array<char, 8>, 100> lines{};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t end = 0;
    lines[i][end++] = '$';
    if (i >= 10) lines[i][end++] = static_cast<char>('0' + i / 10);
    lines[i][end++] = static_cast<char>('0' + i % 10);
    lines[i][end++] = '\r';
    lines[i][end] = '\n';
  }
  return lines;
}();

/// Apart, so that what is done for each word is short.
[[gnu::noinline]] char* write_long_size(char* at, std::size_t size) noexcept {
  *at++ = '$';
  return write_line_end(write_decimal(at, size));
}

/// There is room for eight bytes at least, whatever the size.
char* write_size(char* at, std::size_t size) noexcept {
  if (size >= kSizeLines.size()) return write_long_size(at, size);
  std::memcpy(at, kSizeLines[size].data(), kSizeLines[size].size());
  return at + (size < 10 ? 4 : 5);
}

char* write_word(char* at, std::string_view word) noexcept {
  return write_line_end(write_bytes(write_size(at, word.size()), word));
}

}  // namespace

RequestBuffer& RequestBuffer::command(std::string_view name, std::size_t arguments) {
  assert(remaining_ == 0);
  if (arguments > kMaxArguments) {
    throw InvalidArgument{
        fmt::format("{} with {} arguments is over the limit of {} arguments a command", name,
                    arguments, kMaxArguments)};
  }
  name_ = name;
  remaining_ = arguments;
  char* const at = room_for(kFraming);
  const char* const end = write_size(at, arguments);
  *at = '*';
  size_ = static_cast<std::size_t>(end - bytes_.get());
  return arg(name);
}

RequestBuffer& RequestBuffer::arg(std::string_view word) {
  check_size(word);
  append_word(word);
  return *this;
}

RequestBuffer& RequestBuffer::field(const Field& field) {
  const auto& [name, value] = field;
  check_size(name);
  check_size(value);
  char* const at = room_for(name.size() + value.size() + 2 * kFraming);
  --remaining_;
  end_word(write_word(write_word(at, name), value));
  return *this;
}

RequestBuffer& RequestBuffer::start_as(std::size_t at, std::size_t size, std::size_t words) {
  assert(remaining_ == 0 && words > 0 && at + size <= size_);
  char* const to = room_for(size);
  std::memcpy(to, bytes_.get() + at, size);
  size_ += size;
  remaining_ = words;
  return *this;
}

void RequestBuffer::refuse(std::string_view word) {
  take_back();
  throw InvalidArgument{fmt::format(
      "{} with an argument of {} bytes is over the limit of 512 MiB ({} bytes) an argument", name_,
      word.size(), kMaxArgumentBytes)};
}

RequestBuffer& RequestBuffer::arg(std::uint64_t number) {
  std::array<char, kMostDigits> digits;
  const char* const end = write_decimal(digits.data(), number);
  append_word({digits.data(), static_cast<std::size_t>(end - digits.data())});
  return *this;
}

RequestBuffer& RequestBuffer::arg(StreamId id) {
  const std::size_t ms_size = decimal_size(id.ms);
  const std::size_t seq_size = decimal_size(id.seq);
  const std::size_t size = ms_size + 1 + seq_size;
  char* at = write_size(room_for(size + kFraming), size);
  at = write_decimal(at, id.ms, ms_size);
  *at++ = '-';
  end_word(write_line_end(write_decimal(at, id.seq, seq_size)));
  return *this;
}

RequestBuffer& RequestBuffer::answered_by(ReplyShape shape) {
  assert(remaining_ > 0);
  shaped_.push_back({ends_.size(), shape});
  return *this;
}

RequestBuffer& RequestBuffer::encoded(std::string_view bytes, std::size_t words) {
  assert(remaining_ >= words && words > 0);
  append(bytes);
  remaining_ -= words;
  if (remaining_ == 0) ends_.push_back(size_);
  return *this;
}

void RequestBuffer::add_encoded(std::string_view command) {
  assert(remaining_ == 0);
  append(command);
  ends_.push_back(size_);
}

void RequestBuffer::append(std::string_view bytes) {
  const char* const end = std::copy(bytes.begin(), bytes.end(), room_for(bytes.size()));
  size_ = static_cast<std::size_t>(end - bytes_.get());
}

void RequestBuffer::append_word(std::string_view word) {
  end_word(write_word(room_for(word.size() + kFraming), word));
}

void RequestBuffer::end_word(const char* end) {
  assert(remaining_ > 0);
  size_ = static_cast<std::size_t>(end - bytes_.get());
  if (--remaining_ == 0) ends_.push_back(size_);
}

void RequestBuffer::grow(std::size_t more) {
  const std::size_t capacity = std::max({kSmallest, 2 * capacity_, size_ + more});
  auto bytes = std::make_unique_for_overwrite<char[]>(capacity);
  std::copy_n(bytes_.get(), size_, bytes.get());
  bytes_ = std::move(bytes);
  capacity_ = capacity;
}

/// The unfinished command.
void RequestBuffer::take_back() noexcept {
  size_ = ends_.empty() ? 0 : ends_.back();
  remaining_ = 0;
  if (!shaped_.empty() && shaped_.back().command == ends_.size()) shaped_.pop_back();
}

ReplyShape RequestBuffer::look_up(std::size_t index) const noexcept {
  const auto found = std::partition_point(
      shaped_.begin(), shaped_.end(), [index](const Shaped& each) { return each.command < index; });
  return found == shaped_.end() || found->command != index ? ReplyShape::kAny : found->shape;
}

void RequestBuffer::clear() noexcept {
  size_ = 0;
  ends_.clear();
  shaped_.clear();
  remaining_ = 0;
  if (capacity_ > kWorthKeeping) {
    bytes_.reset();
    capacity_ = 0;
  }
  if (ends_.capacity() * sizeof(ends_[0]) > kWorthKeeping) std::vector<std::size_t>{}.swap(ends_);
}

}  // namespace millrace::detail

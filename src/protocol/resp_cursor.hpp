#pragma once

#include <millrace/stream_id.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace millrace::detail {

/// Reads elements one after another. Where one cannot be read, what follows cannot either, and
/// is_foreign() tells whether it is another one, or only its end has not come yet.
class RespCursor {
 public:
  explicit RespCursor(std::string_view bytes) noexcept
      : at_{bytes.data()}, end_{bytes.data() + bytes.size()} {}

  const char* at() const noexcept { return at_; }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  bool starts_with(char type) const noexcept { return at_ != end_ && *at_ == type; }

  /// `<type><number>\r\n`
  bool number(char type, std::size_t& number) noexcept {
    // Nearly all of them have one digit or two, and more behind them.
    if (left() >= 5 && *at_ == type && is_digit(at_[1]) && at_[1] != '0') {
      if (is_line_end(at_ + 2)) {
        number = digit(at_[1]);
        at_ += 4;
        return true;
      }
      if (is_digit(at_[2]) && is_line_end(at_ + 3)) {
        number = 10 * digit(at_[1]) + digit(at_[2]);
        at_ += 5;
        return true;
      }
    }
    return any_number(type, number);
  }

  bool exactly(char type, std::size_t expected) noexcept {
    std::size_t found = 0;
    return number(type, found) && (found == expected || foreign());
  }

  /// `$<size>\r\n<text>\r\n`
  bool text(std::string_view& text) noexcept {
    std::size_t size = 0;
    if (!number('$', size)) return false;
    if (left() < size + kLineEnd.size()) {
      missing_ = size + kLineEnd.size() - left();
      return false;
    }
    const char* const end = at_ + size;
    if (!is_line_end(end)) return foreign();
    text = {at_, size};
    at_ = end + kLineEnd.size();
    return true;
  }

  bool id(StreamId& id) noexcept {
    std::string_view digits;
    if (!text(digits)) return false;
    const auto parsed = StreamId::try_parse(digits);
    if (!parsed) return foreign();
    id = *parsed;
    return true;
  }

  /// Where an array may stand: `*-1\r\n` or `$-1\r\n`.
  bool is_at_null() const noexcept {
    return starts_with('$') || (left() > 1 && *at_ == '*' && at_[1] == '-');
  }

  bool null() noexcept {
    constexpr std::string_view kNull = "-1\r\n";
    const std::string_view found{at_ + 1, std::min(left() - 1, kNull.size())};
    if (!kNull.starts_with(found)) return foreign();
    if (found.size() < kNull.size()) return false;
    at_ += 1 + kNull.size();
    return true;
  }

  bool foreign() noexcept {
    is_foreign_ = true;
    return false;
  }

  bool is_foreign() const noexcept { return is_foreign_; }

  /// The bytes that are missing at least, if that is known.
  std::size_t missing() const noexcept { return missing_; }

 private:
  /// Longer numbers are left to others, who have limits for them.
  static constexpr std::size_t kMostDigits = 9;
  static constexpr std::string_view kLineEnd = "\r\n";

  static std::size_t digit(char letter) noexcept {
    return static_cast<unsigned char>(letter - '0');
  }
  static bool is_digit(char letter) noexcept { return digit(letter) <= 9; }
  static bool is_line_end(const char* at) noexcept {
    return std::memcmp(at, kLineEnd.data(), kLineEnd.size()) == 0;
  }

  bool any_number(char type, std::size_t& number) noexcept {
    const char* at = at_;
    if (at == end_) return false;
    if (*at++ != type) return foreign();
    const char* const digits = at;
    std::size_t value = 0;
    for (; at != end_ && is_digit(*at); ++at) value = 10 * value + digit(*at);
    const auto size = static_cast<std::size_t>(at - digits);
    if (size > kMostDigits || (size > 1 && *digits == '0')) return foreign();
    if (at == end_) return false;
    if (size == 0 || *at++ != '\r') return foreign();
    if (at == end_) return false;
    if (*at++ != '\n') return foreign();
    number = value;
    at_ = at;
    return true;
  }

  const char* at_;
  const char* end_;
  bool is_foreign_ = false;
  std::size_t missing_ = 0;
};

}  // namespace millrace::detail

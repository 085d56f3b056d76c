#include "protocol/request.hpp"

#include <millrace/error.hpp>
#include <millrace/format.hpp>

#include <array>
#include <cassert>
#include <charconv>

namespace millrace::detail {
namespace {

/// A buffer that once held a big value is not kept at that size.
constexpr std::size_t kWorthKeeping = std::size_t{1} << 20;

/// A number in decimal, without an allocation.
class Decimal {
 public:
  explicit Decimal(std::uint64_t value)
      : end_{std::to_chars(digits_.data(), digits_.data() + digits_.size(), value).ptr} {}
  operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return {digits_.data(), static_cast<std::size_t>(end_ - digits_.data())};
  }

 private:
  std::array<char, 20> digits_;
  char* end_;
};

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
  bytes_.append("*").append(Decimal{arguments}).append("\r\n");
  return arg(name);
}

RequestBuffer& RequestBuffer::arg(std::string_view word) {
  if (word.size() > kMaxArgumentBytes) {
    bytes_.resize(ends_.empty() ? 0 : ends_.back());
    remaining_ = 0;
    throw InvalidArgument{fmt::format(
        "{} with an argument of {} bytes is over the limit of 512 MiB ({} bytes) an argument",
        name_, word.size(), kMaxArgumentBytes)};
  }
  append_word(word);
  return *this;
}

RequestBuffer& RequestBuffer::arg(std::uint64_t number) {
  append_word(Decimal{number});
  return *this;
}

RequestBuffer& RequestBuffer::arg(StreamId id) {
  constexpr std::size_t kDigits = 20;
  std::array<char, kDigits + 1 + kDigits> text;
  char* end = std::to_chars(text.data(), text.data() + kDigits, id.ms).ptr;
  *end++ = '-';
  end = std::to_chars(end, text.data() + text.size(), id.seq).ptr;
  append_word({text.data(), static_cast<std::size_t>(end - text.data())});
  return *this;
}

RequestBuffer& RequestBuffer::encoded(std::string_view bytes, std::size_t words) {
  assert(remaining_ >= words && words > 0);
  bytes_.append(bytes);
  remaining_ -= words;
  if (remaining_ == 0) ends_.push_back(bytes_.size());
  return *this;
}

void RequestBuffer::add_encoded(std::string_view command) {
  assert(remaining_ == 0);
  bytes_.append(command);
  ends_.push_back(bytes_.size());
}

void RequestBuffer::append_word(std::string_view word) {
  assert(remaining_ > 0);
  bytes_.append("$").append(Decimal{word.size()}).append("\r\n").append(word).append("\r\n");
  if (--remaining_ == 0) ends_.push_back(bytes_.size());
}

void RequestBuffer::clear() noexcept {
  bytes_.clear();
  ends_.clear();
  remaining_ = 0;
  if (bytes_.capacity() > kWorthKeeping) std::string{}.swap(bytes_);
  if (ends_.capacity() * sizeof(ends_[0]) > kWorthKeeping) std::vector<std::size_t>{}.swap(ends_);
}

}  // namespace millrace::detail

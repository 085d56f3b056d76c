#include <millrace/error.hpp>
#include <millrace/format.hpp>
#include <millrace/stream_id.hpp>

#include "core/printable.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <ostream>

namespace millrace {
namespace {

/// Eight letters as one number, the first one lowest on any machine.
std::uint64_t eight_letters(const char* at) noexcept {
  std::uint64_t letters = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&letters, at, sizeof letters);
  } else {
    for (int i = 7; i >= 0; --i) letters = letters << 8 | static_cast<unsigned char>(at[i]);
  }
  return letters;
}

bool are_digits(const char* at) noexcept {
  const std::uint64_t letters = eight_letters(at);
  constexpr std::uint64_t kHighHalves = 0xF0F0F0F0F0F0F0F0;
  constexpr std::uint64_t kZeros = 0x3030303030303030;
  constexpr std::uint64_t kSixes = 0x0606060606060606;  // beyond '9' they carry into the high half
  return (letters & kHighHalves) == kZeros && ((letters + kSixes) & kHighHalves) == kZeros;
}

/// All eight at once: neighbours to pairs, pairs to fours, fours to the number.
std::uint64_t eight_digits(const char* at) noexcept {
  std::uint64_t value = eight_letters(at) & 0x0F0F0F0F0F0F0F0F;
  value = (value * 10 + (value >> 8)) & 0x00FF00FF00FF00FF;
  value = (value * 100 + (value >> 16)) & 0x0000FFFF0000FFFF;
  return (value * 10'000 + (value >> 32)) & 0xFFFFFFFF;
}

/// Reads one unsigned number; nullptr unless it starts with a digit and fits.
const char* read_number(const char* first, const char* last, std::uint64_t& value) noexcept {
  // So many digits fit whatever they are: these ids are read with each entry.
  constexpr std::ptrdiff_t kSafeDigits = std::numeric_limits<std::uint64_t>::digits10;
  const char* const safe = first + std::min(last - first, kSafeDigits);
  const char* at = first;
  std::uint64_t number = 0;
  if (safe - at >= 8 && are_digits(at)) {
    number = eight_digits(at);
    at += 8;
  }
  for (; at != safe; ++at) {
    const auto digit = static_cast<unsigned char>(*at - '0');
    if (digit > 9) break;
    number = 10 * number + digit;
  }
  if (at == last || at != safe) {
    value = number;
    return at != first ? at : nullptr;
  }
  const auto [end, error] = std::from_chars(first, last, value);
  return error == std::errc{} ? end : nullptr;
}

/// As read_number(), for the milliseconds as a server's clock gives them until the year 2286: 13
/// digits and a dash, in few instructions. nullptr for all others.
const char* read_clock_time(std::string_view text, std::uint64_t& ms) noexcept {
  constexpr std::size_t kDigits = 13;
  const char* const at = text.data();
  // The last eight of them overlap with the first eight.
  if (text.size() <= kDigits || at[kDigits] != '-' || !are_digits(at) || !are_digits(at + 5)) {
    return nullptr;
  }
  ms = eight_digits(at) * 100'000 + eight_digits(at + 5) % 100'000;
  return at + kDigits;
}

}  // namespace

std::optional<StreamId> StreamId::try_parse(std::string_view text) noexcept {
  const char* const last = text.data() + text.size();
  StreamId id;
  const char* at = read_clock_time(text, id.ms);
  if (at == nullptr) at = read_number(text.data(), last, id.ms);
  if (at == nullptr) return std::nullopt;
  if (at == last) return id;
  if (*at != '-') return std::nullopt;
  if (last - at > 1 && last - at < 10) {  // nearly always, and then nothing can overflow
    while (++at != last) {
      const auto digit = static_cast<unsigned char>(*at - '0');
      if (digit > 9) return std::nullopt;
      id.seq = 10 * id.seq + digit;
    }
    return id;
  }
  at = read_number(at + 1, last, id.seq);
  if (at != last) return std::nullopt;
  return id;
}

StreamId StreamId::parse(std::string_view text) {
  if (const auto id = try_parse(text)) return *id;
  throw InvalidArgument{fmt::format(
      "'{}' is not a stream id: it has to be 'ms-seq' or 'ms', two unsigned 64-bit numbers",
      detail::printable(text))};
}

std::string StreamId::to_string() const { return fmt::format("{}", *this); }

StreamId StreamId::next() const {
  if (*this == max()) throw InvalidArgument{"there is no stream id after the last possible one"};
  return seq == max().seq ? StreamId{ms + 1, 0} : StreamId{ms, seq + 1};
}

StreamId StreamId::prev() const {
  if (*this == min()) throw InvalidArgument{"there is no stream id before 0-0"};
  return seq == 0 ? StreamId{ms - 1, max().seq} : StreamId{ms, seq - 1};
}

std::ostream& operator<<(std::ostream& out, const StreamId& id) { return out << id.to_string(); }

}  // namespace millrace

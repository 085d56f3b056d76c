#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::detail {

/// The most digits that a number of 64 bits has.
inline constexpr std::size_t kMostDigits = 20;

/// "00" to "99", one after another.
inline constexpr auto kPairsOfDigits = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

/// Not within the function, where a compiler makes it anew on the stack each time.
inline constexpr auto kPowersOfTen = [] {
  std::array<std::uint64_t, kMostDigits> powers{};
  for (std::uint64_t i = 0, power = 1; i < kMostDigits; ++i, power *= 10) powers[i] = power;
  return powers;
}();

/// How many digits `value` has in decimal.
inline std::size_t decimal_size(std::uint64_t value) noexcept {
  // log10(2) is about 1233 / 4096, so this is the size or one less.
  const auto guess = (static_cast<unsigned>(std::bit_width(value | 1)) * 1233) >> 12;
  return guess + (guess == 0 || value >= kPowersOfTen[guess] ? 1 : 0);
}

inline void write_pair(char* at, std::uint32_t value) noexcept {
  std::memcpy(at, &kPairsOfDigits[std::size_t{2} * value], 2);
}

/// Writes `value`, which has `size` digits, and returns where they end. std::to_chars does the same
/// in twice as many instructions, which matters for what is in each command: sizes and ids.
inline char* write_decimal(char* at, std::uint64_t value, std::size_t size) noexcept {
  char* const end = at + size;
  char* first = end;
  while (value >= 100'000'000) {
    auto low = static_cast<std::uint32_t>(value % 100'000'000);
    value /= 100'000'000;
    first -= 8;
    write_pair(first + 6, low % 100);
    low /= 100;
    write_pair(first + 4, low % 100);
    low /= 100;
    write_pair(first + 2, low % 100);
    write_pair(first, low / 100);
  }
  auto left = static_cast<std::uint32_t>(value);
  for (; left >= 100; left /= 100) write_pair(first -= 2, left % 100);
  if (left >= 10) {
    write_pair(first - 2, left);
  } else if (first != at) {
    first[-1] = static_cast<char>('0' + left);
  }
  return end;
}

inline char* write_decimal(char* at, std::uint64_t value) noexcept {
  return write_decimal(at, value, decimal_size(value));
}

}  // namespace millrace::detail

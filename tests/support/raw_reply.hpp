#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::test {

/// A reply as it came, with the type byte that RESP gave it.
///
/// Its text form names every type: `*2["a" :1]` an array, `%1{"k"="v"}` a map, `:5` an integer,
/// `+OK` a simple string, `-ERR …` an error, `"x"` a bulk string, `$-1` and `*-1` the nulls of
/// RESP2, `_` that of RESP3.
struct RawReply {
  char type = '_';
  bool null = false;
  std::int64_t integer = 0;
  std::string text{};
  std::vector<RawReply> elements{};

  bool is_error() const noexcept { return type == '-' || type == '!'; }
  std::string str() const;

  const RawReply& operator[](std::size_t index) const { return elements.at(index); }

  /// The value after the element that is this bulk string: in maps, and in flat lists of pairs.
  const RawReply& field(std::string_view name) const;

  /// Compares the text form, or its beginning if `expected` ends in `…`.
  friend bool operator==(const RawReply& reply, std::string_view expected);
  friend std::ostream& operator<<(std::ostream& out, const RawReply& reply);
};

}  // namespace millrace::test

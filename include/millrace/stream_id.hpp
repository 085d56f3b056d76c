#pragma once

#include <millrace/export.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// Where an entry stands in its stream. Ordered and hashable; `{}` is before every entry.
///
/// Values are regular and total; every function is safe from any thread.
/// `fmt::format("{}", id)` works with `<millrace/format.hpp>`.
struct StreamId {
  std::uint64_t ms = 0;   ///< Milliseconds since the Unix epoch, by the server's clock.
  std::uint64_t seq = 0;  ///< Orders the entries of one millisecond.

  /// Parses `ms-seq`, or `ms` alone as `ms-0`; all of `text` must be used.
  /// Throws InvalidArgument, which quotes `text`.
  MILLRACE_EXPORT static StreamId parse(std::string_view text);

  /// As parse(), but nullopt where that would throw.
  MILLRACE_EXPORT static std::optional<StreamId> try_parse(std::string_view text) noexcept;

  /// 0-0, which no entry can have: before every entry.
  static constexpr StreamId min() noexcept { return {}; }

  /// The last possible id. After it a stream takes no more entries.
  static constexpr StreamId max() noexcept {
    return {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max()};
  }

  /// `ms-seq`, as the server writes it.
  MILLRACE_EXPORT std::string to_string() const;

  /// The id right after this one. Throws InvalidArgument for max().
  MILLRACE_EXPORT StreamId next() const;

  /// The id right before this one. Throws InvalidArgument for min().
  MILLRACE_EXPORT StreamId prev() const;

  // NOLINTNEXTLINE(modernize-use-nullptr): Clang 14 means the 0 that it compares with by itself
  friend constexpr auto operator<=>(const StreamId&, const StreamId&) = default;

  /// Writes to_string(). GoogleTest prints ids through it as well.
  MILLRACE_EXPORT friend std::ostream& operator<<(std::ostream& out, const StreamId& id);
};

}  // namespace millrace

template <>
struct std::hash<millrace::StreamId> {
  std::size_t operator()(const millrace::StreamId& id) const noexcept {
    // Ids of one stream differ mostly in their low bits; the odd multiplier spreads them.
    return std::hash<std::uint64_t>{}(id.ms * 0x9e3779b97f4a7c15U + id.seq);
  }
};

#pragma once

#include <millrace/export.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace millrace {

/// How many times fell between which bounds.
struct Histogram {
  using Seconds = std::chrono::duration<double>;

  /// Upper bounds, rising; a time that is equal to one is below it. Empty: nothing was measured.
  std::vector<Seconds> bounds{};
  /// For each bound, the times above the bound before it and not above this one; at the end, one
  /// more, those above all bounds.
  std::vector<std::uint64_t> counts{};
  Seconds sum{0};           ///< Of all times.
  std::uint64_t count = 0;  ///< The sum of `counts`.

  /// The time that `part` of all (0.5: the median; what is below 0 or above 1 counts as that) is
  /// not above, as far as bounds tell: spread evenly between two of them, and the highest bound for
  /// what is above all. None: there are no times.
  MILLRACE_EXPORT std::optional<Seconds> quantile(double part) const;
};

}  // namespace millrace

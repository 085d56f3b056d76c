#include "core/histogram.hpp"

namespace millrace {

std::optional<Histogram::Seconds> Histogram::quantile(double part) const {
  std::uint64_t all = 0;
  for (const std::uint64_t some : counts) all += some;
  if (all == 0 || bounds.empty()) return std::nullopt;
  const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(all);
  double below = 0;
  for (std::size_t i = 0; i < std::min(bounds.size(), counts.size()); ++i) {
    const auto here = static_cast<double>(counts[i]);
    if (here > 0 && below + here >= wanted) {
      const Seconds lower = i == 0 ? Seconds{0} : bounds[i - 1];
      return lower + (bounds[i] - lower) * ((wanted - below) / here);
    }
    below += here;
  }
  return bounds.back();
}

}  // namespace millrace

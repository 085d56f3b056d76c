#include "core/backoff.hpp"

#include <algorithm>

namespace millrace::detail {

Milliseconds Backoff::next() {
  std::uniform_int_distribution<Milliseconds::rep> draw{
      1, std::max<Milliseconds::rep>(bound_.count(), 1)};
  bound_ = std::min(bound_ * 2, most_);
  return Milliseconds{draw(random_)};
}

}  // namespace millrace::detail

#include <millrace/error.hpp>
#include <millrace/stream_options.hpp>

#include <fmt/format.h>

namespace millrace {

Trim Trim::max_age(std::chrono::milliseconds age) {
  if (age.count() < 0) {
    throw InvalidArgument{
        fmt::format("Trim::max_age is {} ms: it has to be 0 or more", age.count())};
  }
  return Trim{MaxAge{age}};
}

Trim Trim::limit(detail::Count entries) const {
  if (exact_) {
    throw InvalidArgument{
        fmt::format("Trim::limit is {} on an exact trim: only an approximate one can have a limit",
                    entries.value())};
  }
  Trim trim = *this;
  trim.limit_ = entries.value();
  return trim;
}

}  // namespace millrace

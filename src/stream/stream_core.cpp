#include "stream/stream_core.hpp"

namespace millrace::detail {

void raise_after_a_part(const Error& error) {
  const bool says_nothing_done = error.outcome() == Outcome::kNotApplied;
  with_outcome(error, says_nothing_done ? Outcome::kApplied : error.outcome()).raise();
}

}  // namespace millrace::detail

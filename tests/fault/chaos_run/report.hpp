#pragma once

#include "support/invariants.hpp"

#include "options.hpp"
#include "plan.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace chaos {

/// What came of a run.
struct Report {
  Options options{};
  std::size_t draws = 0;
  std::map<Fault, std::size_t> happened{};
  double seconds = 0;  ///< From the first fault to the end of the workers.
  std::size_t processes = 0;
  std::size_t entries = 0;    ///< In the stream.
  std::uint64_t unknown = 0;  ///< Appends of unknown outcome, made again.
  std::size_t dead_letters = 0;
  millrace::test::CallCounts calls{};
  std::vector<millrace::test::Violation> violations{};
  std::vector<std::string> problems{};  ///< All else that must not be.

  /// Faults that happened less often than required, which are problems.
  std::vector<std::string> missing_faults() const;
  bool is_good() const;
  std::string text() const;
};

}  // namespace chaos

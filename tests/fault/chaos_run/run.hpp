#pragma once

#include "options.hpp"
#include "report.hpp"

#include <stdexcept>

namespace chaos {

/// SIGINT or SIGTERM came.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The whole test; histories and logs are in `options.folder` then. Throws Interrupted, and
/// std::exception where it cannot be done. All that it has started has ended when it returns.
Report run(const Options& options);

}  // namespace chaos

#pragma once

#include "options.hpp"

#include <string>

namespace chaos {

/// A worker process: one worker for each group, until SIGTERM. Returns the status to end with: 0 if
/// both workers ended as asked.
int run_worker(const Options& options);

/// Where a worker process with this history names its consumers, one a line, once they read.
std::string names_file(const std::string& history);

}  // namespace chaos

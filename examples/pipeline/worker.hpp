#pragma once

#include <string>

#include "options.hpp"

namespace pipeline {

/// What a worker process does: handles entries for one group until it is told to end (SIGTERM), and
/// writes each into its journal.
int run_worker(const Options& options);

/// The file that the worker with this journal makes when it reads.
inline std::string ready_mark(const std::string& journal) { return journal + ".ready"; }

}  // namespace pipeline

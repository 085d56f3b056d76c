#pragma once

#include <millrace/fields.hpp>

#include <span>

#include "options.hpp"
#include "report.hpp"

namespace pipeline {

/// Sends the records through the stream and its groups, with a worker killed on the way.
Report run(const Options& options, std::span<const millrace::OwnedFields> records);

}  // namespace pipeline

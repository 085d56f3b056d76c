#pragma once

#include <millrace/connection.hpp>

namespace millrace::detail {

/// Throws InvalidArgument, which names the option, the value and the rule, or UnsupportedError for
/// what this build cannot do.
void check(const ConnectionOptions& options);
void check(const PoolOptions& options);

}  // namespace millrace::detail

#pragma once

#include <millrace/producer.hpp>

namespace millrace::detail {

/// Throws InvalidArgument, which names the option, its value and the rule.
void check(const ProducerOptions& options);

}  // namespace millrace::detail

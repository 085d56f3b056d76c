#pragma once

#include "bench/figures.hpp"

#include <iosfwd>

namespace millrace::bench {

/// Writes a line for each target of which there are figures, with the ratio that was reached and
/// the one to reach. Returns how many were missed.
int judge(const Figures& figures, std::ostream& out);

}  // namespace millrace::bench

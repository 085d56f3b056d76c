#!/usr/bin/env bash
#
# run.sh [OPTION...]: how fast millrace is on this machine, beside hiredis and redis-benchmark, on a
# throw-away server. Prints a table of ratios with what is to be reached beside each, and leaves all
# figures in build/bench/ratios.json. Ends with 1 where a target is missed. It takes some minutes;
# nothing else should run meanwhile.
#
#   --rounds=N                 how often each is measured (5)
#   --benchmark_filter=REGEX   only these, as W3/.*unix/small

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

cmake/install-deps.sh build server bench
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-g1 \
    -DMILLRACE_BUILD_BENCHMARKS=ON -DMILLRACE_BUILD_TESTS=OFF -DMILLRACE_BUILD_EXAMPLES=OFF >/dev/null
cmake --build build/bench --target ratios

exec build/bench/tests/bench/ratios --json=build/bench/ratios.json "$@"

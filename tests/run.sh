#!/usr/bin/env bash
#
# tests/run.sh [CTEST_ARGUMENT...]: builds the library with all its tests and runs them; on a machine
# that lacks something, installs it first. For example, tests/run.sh -L unit runs the unit tests.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

cmake/install-deps.sh build test
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

cmake --preset dev
cmake --build --preset dev
rm -f build/dev/results.xml # or those of an earlier run would pass for this one's
ctest --preset dev --parallel "$(nproc)" --output-junit results.xml "$@" || true
tests/support/summarize.sh build/dev/results.xml

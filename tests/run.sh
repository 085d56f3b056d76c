#!/usr/bin/env bash
#
# tests/run.sh [CTEST_ARGUMENT...]: builds the library with all its tests and runs them; on a machine
# that lacks something, installs it first. For example, tests/run.sh -L unit runs the unit tests.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

cmake/install-deps.sh build test
if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_NOHASHDIR=true # or no build directory could use what another one has compiled
fi

cmake --preset dev
cmake --build --preset dev
# Tests wait more than they compute: twice as many at a time as there are processors.
rm -f build/dev/results.xml # or those of an earlier run would pass for this one's
ctest --preset dev --parallel "$((2 * $(nproc)))" --output-junit results.xml "$@" || true
tests/support/summarize.sh build/dev/results.xml

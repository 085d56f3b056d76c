#!/usr/bin/env bash
#
# examples/run.sh [FILE]: builds millrace and its examples, and runs the pipeline on a file of real
# records against a server of its own; on a machine that lacks something, installs it first.
#
# FILE is by default the status file of Debian's package manager: paragraphs of many lines, in
# many languages. Ends with 0 only if nothing was lost.

set -euo pipefail
input=${1:-/var/lib/dpkg/status}
[ "$input" = - ] || input=$(realpath -- "$input")
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

cmake/install-deps.sh build server
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

cmake --preset release -B build/examples -DMILLRACE_BUILD_TESTS=OFF
cmake --build build/examples

exec examples/with_server.sh build/examples/examples/pipeline/pipeline --input "$input"

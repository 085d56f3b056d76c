#!/usr/bin/env bash
#
# tests/fuzz/run.sh [--seconds N]: reads bytes that libFuzzer makes up with the library and with
# hiredis, for a minute if nothing else is said, and fails where they differ. What it finds is kept
# as build/fuzz/crash-*, and what it has learnt in build/fuzz/replies, for the next run to begin with.

set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

seconds=60
if [ "${1:-}" = --seconds ] && [[ "${2:-}" =~ ^[1-9][0-9]*$ ]]; then
    seconds=$2
    shift 2
fi
if [ $# -gt 0 ]; then
    echo 'usage: tests/fuzz/run.sh [--seconds N]' >&2
    exit 64
fi

cmake/install-deps.sh build test dev
build=build/fuzz
replies=$build/replies
cmake --preset clang -B "$build" \
    -D CMAKE_CXX_FLAGS=-fsanitize=address,undefined,fuzzer-no-link >/dev/null
cmake --build "$build" --target reply_fuzz >/dev/null

# What it begins with. The first byte says which replies are expected, the second one how they are
# cut, see reply_fuzz.cpp.
mkdir -p -- "$replies"
# shellcheck disable=SC2016 # dollars of RESP
entry='*2\r\n$15\r\n1700000000000-0\r\n*4\r\n$1\r\na\r\n$3\r\nbcd\r\n$0\r\n\r\n$2\r\n\r\n\r\n'
for shape in 0 1 2 3; do
    for cut in 0 1 2; do
        seed=$replies/seed-$shape-$cut
        printf '%b' "\\x0$shape\\x0$cut*2\\r\\n$entry$entry" >"$seed"
        printf '%b' "\\x0$shape\\x0$cut*1\\r\\n*2\\r\\n\$1\\r\\ns\\r\\n*2\\r\\n$entry$entry" >"$seed-of-a-stream"
        printf '%b' "\\x0$shape\\x0$cut*3\\r\\n\$3\\r\\n0-0\\r\\n*2\\r\\n$entry*-1\\r\\n*0\\r\\n" >"$seed-claimed"
        printf '%b' "\\x0$shape\\x0$cut%1\\r\\n\$1\\r\\ns\\r\\n*1\\r\\n${entry}_\\r\\n-ERR no\\r\\n:7\\r\\n" >"$seed-resp3"
    done
done

exec "$build/tests/fuzz/reply_fuzz" -max_total_time="$seconds" -max_len=600 -print_final_stats=1 \
    -artifact_prefix="$build/" "$replies"

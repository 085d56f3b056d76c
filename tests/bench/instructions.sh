#!/usr/bin/env bash
#
# instructions.sh [WORKLOAD...]: how many instructions the library executes for one entry, beside the
# most that it should. Ends with 1 where one is over.
#
# callgrind counts, user code alone and all threads, on a throw-away server. Each figure is the
# difference between a run and one of twice as many entries, divided by the entries that it has more:
# start and end cancel out. A figure does not depend on how fast the machine is, so it can gate.

set -euo pipefail

# workload  most   what the server holds before  what it is
workloads='
append      1200   -             one entry appended
batch       900    -             one of 100 appended in a batch
consume     1300   fill          one of 100 read by consume(), and acknowledged together
worker      1600   fill          one read, handled and acknowledged by a ConsumerWorker
claim       -      fill          one of 100 read, and claimed for another consumer
autoclaim   -      fill-pending  one of 100 of autoclaim_page()
replay      -      fill          one of replay_all() in pages of 100
'

entries=5000
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$source/build/bench
server=${MILLRACE_TEST_SERVER:-redis-server}

for program in cmake valgrind "$server"; do
    if ! command -v "$program" >/dev/null; then
        echo "instructions: there is no $program here; cmake/install-deps.sh build server bench" >&2
        exit 1
    fi
done

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-g1 \
    -DMILLRACE_BUILD_BENCHMARKS=ON -DMILLRACE_BUILD_TESTS=OFF -DMILLRACE_BUILD_EXAMPLES=OFF >/dev/null
cmake --build "$build" --target instructions >/dev/null

folder=$(mktemp -d)
server_id=
end_server() {
    [ -z "$server_id" ] || kill "$server_id" 2>/dev/null || true
    [ -z "$server_id" ] || wait "$server_id" 2>/dev/null || true
    server_id=
}
trap 'end_server; rm -rf -- "$folder"' EXIT

start_server() {
    rm -f -- "$folder/socket"
    "$server" --port 0 --unixsocket "$folder/socket" --save '' --appendonly no --dir "$folder" \
        --logfile "$folder/log" &
    server_id=$!
    local i
    for ((i = 0; i < 500; i++)); do
        [ ! -S "$folder/socket" ] || return 0
        sleep 0.02
    done
    echo "instructions: the server did not start; $(tail -n 1 "$folder/log")" >&2
    exit 1
}

# count WORKLOAD BEFORE ENTRIES: the instructions of one run
count() {
    start_server
    [ "$2" = - ] || "$build/tests/bench/instructions" "$folder/socket" "$2" $((3 * entries))
    valgrind --tool=callgrind --callgrind-out-file="$folder/out" --log-file="$folder/valgrind" \
        "$build/tests/bench/instructions" "$folder/socket" "$1" "$3" ||
        { cat "$folder/valgrind" >&2; exit 1; }
    end_server
    # A copy for callgrind_annotate, if somebody wants to know where they go.
    [ -z "${INSTRUCTIONS_PROFILES:-}" ] || cp "$folder/out" "$INSTRUCTIONS_PROFILES/$1"
    awk '/^(totals|summary):/ { total = $2 } END { print total }' "$folder/out"
}

missed=0
printf '%-10s %8s %8s\n' workload Ir 'at most'
while read -r workload most before what; do
    if [ $# -gt 0 ] && [[ " $* " != *" $workload "* ]]; then continue; fi
    once=$(count "$workload" "$before" "$entries")
    twice=$(count "$workload" "$before" $((2 * entries)))
    figure=$(((twice - once) / entries))
    verdict=
    if [ "$most" != - ] && [ "$figure" -gt "$most" ]; then
        verdict='  MISSED'
        missed=1
    fi
    printf '%-10s %8d %8s  %s%s\n' "$workload" "$figure" "$most" "$what" "$verdict"
done <<<"$(sed '/^$/d' <<<"$workloads")"
exit "$missed"

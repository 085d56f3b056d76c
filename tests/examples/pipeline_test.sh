#!/usr/bin/env bash
#
# pipeline_test.sh PIPELINE: the pipeline example, as a user sees it. MILLRACE_URI names a server.

set -euo pipefail
pipeline=$1
records=$(dirname -- "${BASH_SOURCE[0]}")/records.txt
output=''

fail() {
    printf 'FAILED: %s\n%s\n' "$*" "$output" >&2
    exit 1
}

# ends_with STATUS ARGUMENT...: runs the pipeline, which must end with this status.
ends_with() {
    local expected=$1 status=0
    output=$("$pipeline" "${@:2}" 2>&1) || status=$?
    [ "$status" -eq "$expected" ] || fail "status $status in place of $expected: ${*:2}"
}

# says WORD...: a line of the output has these words, whatever space is between them.
says() {
    grep -qE "^ *${*// /\\ }( |\$)" < <(tr -s ' ' <<<"$output") || fail "it does not say '$*'"
}

ends_with 0 --input "$records" --stream kept --keep
says records in 12
says entries 12
says appended a second '[1-9][0-9]*'
says group index audit
says processed 12 12
says a second '[1-9][0-9]*' '[1-9][0-9]*'
says reclaimed '[1-9][0-9]*' '[0-9][0-9]*'
says duplicates '[0-9][0-9]*' '[0-9][0-9]*'
says damaged 0 0
says lost 0 0
says held by the killed index-[12] '[1-9][0-9]*'
says replayed, byte-equal 12
says trimmed 12
says The stream kept is still there.
[[ $output != *'records appended'* ]] || fail 'it shows its progress where nobody watches'

ends_with 1 --input "$records" --stream kept
says "pipeline: there is a stream 'kept' already"

ends_with 0 --format lines < <(printf 'just one line')
says entries 1
says lost 0 0
says reclaimed 1 0

# On a terminal a line says how far it is, and is cleared before the table.
clear_line=$'\r\e[K'
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    output=$(script -qec "'$pipeline' --input '$records'" /dev/null </dev/null) || fail 'on a terminal'
    [[ $output == *"${clear_line}12 of 12 records appended"*"${clear_line}records in "* ]] ||
        fail 'the table stands behind a line of progress'
else
    echo 'not tried: a terminal, of which this machine can make none'
fi

# Ctrl-C and its kin: no folder and no process is left.
place=$(mktemp -d)
mkdir "$place/tmp"
seq 500000 >"$place/records"
TMPDIR=$place/tmp "$pipeline" --input "$place/records" >"$place/output" 2>&1 &
started=$!
until compgen -G "$place/tmp/*/*.ready" >/dev/null; do
    kill -0 "$started" || { output=$(<"$place/output") && fail 'it has ended by itself'; }
    sleep 0.01
done
kill -TERM "$started"
status=0
wait "$started" || status=$?
output=$(<"$place/output")
[ "$status" -eq 1 ] || fail "status $status in place of 1 after SIGTERM"
says pipeline: ended by signal 15
[ -z "$(ls -A "$place/tmp")" ] || fail 'it has left its folder'
! grep -alF "$place/tmp" /proc/[0-9]*/cmdline 2>/dev/null || fail 'it has left a process'
rm -rf -- "$place"

ends_with 1 --input /nowhere
says pipeline: cannot read /nowhere: No such file or directory
ends_with 1 --format paragraphs < <(printf 'A: 1\nno colon')
says "pipeline: line 2 is neither"
ends_with 1 </dev/null
says pipeline: there are no records in the input
ends_with 1 --uri unix:///nowhere --input "$records"
says pipeline: cannot connect to /nowhere:

ends_with 2 --colour
says "pipeline: there is no option '--colour'; see --help"
ends_with 2 --input
says "pipeline: --input needs a value; see --help"
ends_with 2 --format xml
says pipeline: --format is lines, paragraphs or auto, not
ends_with 0 --help
says Usage: pipeline

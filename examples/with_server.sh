#!/usr/bin/env bash
#
# with_server.sh COMMAND [ARGUMENT...]: runs the command with MILLRACE_URI naming a server of its own,
# which listens on a Unix socket in a temporary folder and is gone afterwards. For example, after a
# build: examples/with_server.sh build/dev/examples/01_append
#
# The server is the program that MILLRACE_TEST_SERVER names, or redis-server.

set -euo pipefail
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 64; }

folder=$(mktemp -d)
"${MILLRACE_TEST_SERVER:-redis-server}" --port 0 --unixsocket "$folder/s" --dir "$folder" \
    --save '' --appendonly no >"$folder/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" || true; rm -rf -- "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

until [ -S "$folder/s" ]; do
    if ! kill -0 "$server" 2>/dev/null; then
        cat -- "$folder/log" >&2
        echo "$0: the server does not start" >&2
        exit 1
    fi
    sleep 0.05
done

MILLRACE_URI="unix://$folder/s" "$@"

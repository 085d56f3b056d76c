#!/usr/bin/env bash
#
# install_deps_test.sh INSTALL_DEPS WORK: what install-deps.sh does on machines that lack this or that.
# Each is a folder of programs that is all of its PATH; nothing is installed on this one.

set -euo pipefail
script=$1 work=$2
bash=$(command -v bash)
rm -rf -- "${work:?}"
mkdir -p -- "$work"
output=''

fail() {
    printf 'FAILED: %s\n%s\n' "$*" "$output" >&2
    exit 1
}

# machine PROGRAM...: a new one, with what any has and these programs, which do nothing.
machine() {
    local name
    rm -rf -- "${work:?}/bin"
    mkdir -- "$work/bin"
    for name in grep rm env; do ln -s -- "$(command -v "$name")" "$work/bin/$name"; done
    for name in "$@"; do program "$name" ':'; done
}

# program NAME LINE...: gives the machine a program that does this.
program() {
    printf '%s\n' "#!$bash" "${@:2}" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# ends_with STATUS GROUP...: runs install-deps.sh there, which must end with this status.
ends_with() {
    local expected=$1 status=0
    output=$(PATH=$work/bin "$bash" "$script" "${@:2}" 2>&1 </dev/null) || status=$?
    [ "$status" -eq "$expected" ] || fail "status $status in place of $expected: ${*:2}"
}
says() { [[ $output == *"$*"* ]] || fail "it does not say '$*'"; }
is_quiet() { [ -z "$output" ] || fail 'it has something to say'; }

# Where nothing is missing it needs no rights and does nothing.
machine redis-server
program id 'echo 1000'
program apt-get 'echo apt-get was called' 'exit 1'
ends_with 0 server
is_quiet

machine redis-server g++ cmake ninja pkg-config
ends_with 0 build server
is_quiet

# A group that there is not, whatever else is asked for.
ends_with 64 server games
says 'no such group: games'
ends_with 64 redis-server
ends_with 64 ''

# Not a Debian: it says what is missing, and what is not is left out.
machine g++ cmake
program id 'echo 0'
ends_with 1 build
says 'this machine has no apt-get; install what Debian calls:'
says 'ninja-build pkg-config libhiredis-dev libfmt-dev'
[[ $output != *g++* && $output != *redis-server* ]] || fail 'it names what is there, or was not asked for'

# A library counts as missing if pkg-config does not know it.
machine redis-server
# shellcheck disable=SC2016 # its own argument
program pkg-config '[ "$2" != gmock ]'
ends_with 1 test
says 'calls: libgmock-dev'

# Neither root nor sudo; or a sudo that would ask, where nobody can answer.
machine
program id 'echo 1000'
program apt-get 'echo apt-get was called' 'exit 1'
ends_with 1 server
says 'not root, and sudo is not to be had here; run as root: apt-get install redis-server'
[[ $output != *'was called'* ]] || fail 'it tried all the same'
program sudo 'exit 1'
ends_with 1 server
says 'not root, and sudo is not to be had here'

# With a sudo that asks nothing, all that changes the machine goes through it.
program sudo 'while read -r _; do :; done' "echo \"\$*\" >>'$work/done'" \
    "[[ \$* != *'install --yes'* ]] || $(command -v ln) -s '$bash' '$work/bin/redis-server'"
ends_with 0 server
says 'installing redis-server'
grep -q 'apt-get .* update' "$work/done" || fail 'it installs from old lists'
grep -q 'apt-get .* install --yes --no-install-recommends redis-server$' "$work/done" ||
    fail "it installs something else: $(<"$work/done")"
grep -q 'update-rc.d redis-server disable' "$work/done" || fail 'the server starts with the machine'

# An installation that does not bring what was missing is no success.
rm -- "$work/bin/redis-server"
program sudo 'while read -r _; do :; done'
ends_with 1 server
says 'still missing after the installation: redis-server'

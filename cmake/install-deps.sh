#!/usr/bin/env bash
#
# install-deps.sh [GROUP...]: installs what millrace needs and this machine lacks, by apt-get.
#
#   build   compiler, CMake, hiredis and fmt (the default)
#   server  a redis-server for examples and tests to start; its service stays off
#   test    GoogleTest, and the same
#   dev     Clang with its sanitizers, formatter and linter, shellcheck, ccache
#   bench   Google Benchmark, what counts instructions, and a redis-server
#   ci      what it takes to build another hiredis from its source
#
# Where nothing is missing it does nothing and needs no rights. It becomes root by sudo if that asks
# no questions, or may ask them on a terminal. Where it can do nothing, it says what to do.

set -euo pipefail

# group  Debian's package  how to see that it is there already, wherever it came from
needs='
build    g++               command g++
build    cmake             command cmake
build    ninja-build       command ninja
build    pkg-config        command pkg-config
build    libhiredis-dev    library hiredis
build    libfmt-dev        library fmt
server   redis-server      command redis-server
test     libgtest-dev      library gtest
test     libgmock-dev      library gmock
test     redis-server      command redis-server
dev      clang             command clang++
dev      libclang-rt-dev   sanitizer asan
dev      llvm              command llvm-symbolizer
dev      clang-format      command clang-format
dev      clang-tidy        command clang-tidy
dev      shellcheck        command shellcheck
dev      ccache            command ccache
bench    libbenchmark-dev  library benchmark
bench    libgtest-dev      library gtest
bench    valgrind          command valgrind
bench    redis-server      command redis-server
ci       dpkg-dev          command dpkg-source
ci       make              command make
ci       libssl-dev        library openssl
'

say() { echo "install-deps: $*" >&2; }

command_is_there() { command -v "$1" >/dev/null; }
library_is_there() { command_is_there pkg-config && pkg-config --exists "$1"; }
sanitizer_is_there() {
    command_is_there clang++ && [ -e "$(clang++ -print-file-name="libclang_rt.$1-$(uname -m).a")" ]
}

# missing GROUP...: the packages of these groups that are not there.
missing() {
    local group package kind name
    while read -r group package kind name; do
        if [[ " $* " == *" $group "* ]] && ! "${kind}_is_there" "$name"; then echo "$package"; fi
    done <<<"${needs#$'\n'}"
}

[ $# -gt 0 ] || set -- build
for group in "$@"; do
    if ! grep -q "^$group " <<<"$needs"; then
        say "no such group: $group"
        exit 64
    fi
done

mapfile -t packages < <(missing "$@")
[ ${#packages[@]} -gt 0 ] || exit 0

if ! command_is_there apt-get; then
    say "this machine has no apt-get; install what Debian calls: ${packages[*]}"
    exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command_is_there sudo || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
        say "not root, and sudo is not to be had here; run as root: apt-get install ${packages[*]}"
        exit 1
    fi
    as_root=(sudo)
fi
run_as_root() { "${as_root[@]}" "$@"; }

# Debian starts the service of a server that it installs, unless a policy forbids it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'run_as_root rm -f -- "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | run_as_root install -m 755 /dev/stdin "$policy"
fi

say "installing ${packages[*]}"
apt=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
run_as_root "${apt[@]}" update
run_as_root env DEBIAN_FRONTEND=noninteractive \
    "${apt[@]}" install --yes --no-install-recommends "${packages[@]}" >&2
if [[ " ${packages[*]} " == *" redis-server "* ]]; then
    run_as_root update-rc.d redis-server disable # or it would start with the machine
fi

mapfile -t packages < <(missing "$@")
if [ ${#packages[@]} -gt 0 ]; then
    say "still missing after the installation: ${packages[*]}"
    exit 1
fi

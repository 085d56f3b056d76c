#!/usr/bin/env bash
#
# try.sh STEP LINKAGE HIREDIS WORK: what a packager or a user does with millrace, one step of it.
#
#   STEP      install           build, install, and move that to WORK/prefix, for the steps below
#             find_package      build the consumer by find_package, and run it
#             pkg_config        the same by pkg-config and the bare compiler
#             wrong_hiredis     a hiredis that does not fit must be refused, with the reason
#             add_subdirectory  build millrace and the consumer as one project, and run it
#   LINKAGE   static | shared
#   HIREDIS   system, or 1.x: the one whose prefix MILLRACE_HIREDIS names (without it: skipped)
#
# The consumer talks to a server of its own: the program MILLRACE_TEST_SERVER, or redis-server.

set -euo pipefail

[ $# -eq 4 ] || { echo "usage: $0 STEP static|shared system|1.x WORK" >&2; exit 64; }
step=$1 linkage=$2 work=$4
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(cd -- "$here/../.." && pwd)
prefix=$work/prefix
hiredis=''
if [ "$3" = 1.x ]; then
    hiredis=${MILLRACE_HIREDIS:-}
    if [ -z "$hiredis" ]; then
        echo "skipped: MILLRACE_HIREDIS does not name the prefix of a hiredis 1.x"
        exit 77
    fi
    hiredis=$(realpath -- "$hiredis")
fi
# The compiler is called as in the preset dev, so that ccache has the library already.
millrace_options=(
    -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_UNITY_BUILD=ON
    -DMILLRACE_WERROR=ON
    -DBUILD_SHARED_LIBS="$([ "$linkage" = shared ] && echo ON || echo OFF)"
    -DCMAKE_PREFIX_PATH="$hiredis"
)

fail() { echo "FAILED: $*" >&2; exit 1; }

# The consumer is built from a copy, so that nothing of this tree is within its reach.
copy_consumer() {
    rm -rf -- "${work:?}/$step"
    mkdir -p -- "$work"
    cp -R -- "$here/consumer" "$work/$step"
    cd -- "$work/$step"
}

# is_the_right_hiredis FILE: it is of the hiredis that this test is about.
is_the_right_hiredis() {
    local file other
    file=$(realpath -e -- "$1") || fail "it has no hiredis: '$1'"
    other=$(realpath -m -- "${MILLRACE_HIREDIS:-/nowhere}")
    if [ -n "$hiredis" ]; then [[ $file == "$hiredis"/* ]]; else [[ $file != "$other"/* ]]; fi ||
        fail "it has taken $file"
    echo "hiredis is $file"
}

linked_hiredis() { ldd "$1" | sed -n 's/.*libhiredis\.so[^ ]* => \([^ ]*\).*/\1/p'; }

# cached NAME: a variable of the build of millrace.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$work/build/CMakeCache.txt"; }

run_consumer() {
    is_the_right_hiredis "$(linked_hiredis "$1")"
    scratch=$(mktemp -d) # short: the path of a Unix socket has at most 107 bytes
    "${MILLRACE_TEST_SERVER:-redis-server}" --port 0 --unixsocket "$scratch/s" --dir "$scratch" \
        --save '' --appendonly no >"$scratch/log" 2>&1 &
    server=$!
    trap 'kill "$server"; wait "$server" || true; rm -rf -- "$scratch"' EXIT
    until [ -S "$scratch/s" ]; do
        kill -0 "$server" 2>/dev/null || { cat -- "$scratch/log"; fail "the server ended"; }
        sleep 0.05
    done
    "$1" "$scratch/s"
}

# must_refuse REASON COMMAND...: the command must fail and say why.
must_refuse() {
    local reason=$1 output
    shift
    if output=$("$@" 2>&1); then fail "accepted: $*"; fi
    output=$(tr -s '[:space:]' ' ' <<<"$output") # CMake breaks lines where it likes
    [[ $output == *"$reason"* ]] || fail "refused, but not because '$reason': $output"
    echo "refused as it should be: $reason"
}

case $step in
install)
    rm -rf -- "${work:?}"
    cmake -S "$source_dir" -B "$work/build" "${millrace_options[@]}" \
        -DMILLRACE_BUILD_TESTS=OFF -DMILLRACE_BUILD_EXAMPLES=OFF \
        -DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON # for a hiredis outside the system
    is_the_right_hiredis "$(cached Hiredis_LIBRARY)"
    is_the_right_hiredis "$(cached Hiredis_INCLUDE_DIR)/hiredis/hiredis.h"
    cmake --build "$work/build"
    cmake --install "$work/build" --prefix "$work/staged"
    if grep -rIF -e "$source_dir" -e "$work" "$work/staged"; then
        fail "the installation names folders of the machine that it was built on"
    fi
    if ! diff <(cd -- "$source_dir/include/millrace" && ls) \
        <(cd -- "$work/staged/include/millrace" && ls --ignore=version.hpp); then
        fail "the public headers that are installed are not those that there are"
    fi
    mv -- "$work/staged" "$prefix"
    ;;
find_package)
    copy_consumer
    # Here hiredis is found by pkg-config, above and below by CMAKE_PREFIX_PATH.
    PKG_CONFIG_PATH=${hiredis:+$hiredis/lib/pkgconfig} \
        cmake -S find_package -B build -DCMAKE_PREFIX_PATH="$prefix"
    cmake --build build
    run_consumer build/consumer
    ;;
pkg_config)
    copy_consumer
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig${hiredis:+:$hiredis/lib/pkgconfig}
    read -ra flags < <(pkg-config --cflags --libs millrace)
    set -x
    "${CXX:-c++}" -std=c++20 main.cpp -o consumer "${flags[@]}"
    LD_LIBRARY_PATH=$prefix/lib${hiredis:+:$hiredis/lib} run_consumer ./consumer
    ;;
wrong_hiredis)
    copy_consumer
    mkdir -p other/include/hiredis other/lib
    printf '#define HIREDIS_%s\n' 'MAJOR 9' 'MINOR 9' 'PATCH 9' 'SONAME 9.9.9' \
        >other/include/hiredis/hiredis.h
    : >other/lib/libhiredis.so.9.9.9
    ln -s libhiredis.so.9.9.9 other/lib/libhiredis.so

    library=$(cached Hiredis_LIBRARY)
    must_refuse "are for libhiredis.so.9.9.9, but the library is" \
        cmake -S "$source_dir" -B mixed -DHiredis_ROOT="$PWD/other" -DHiredis_LIBRARY="$library"
    must_refuse "This static millrace was compiled for hiredis" \
        cmake -S find_package -B other-abi -DHiredis_ROOT="$PWD/other" -DCMAKE_PREFIX_PATH="$prefix"
    ;;
add_subdirectory)
    copy_consumer
    cmake -S add_subdirectory -B build -DMILLRACE_SOURCE_DIR="$source_dir" "${millrace_options[@]}"
    cmake --build build
    run_consumer build/consumer
    ;;
*)
    fail "no such step: $step"
    ;;
esac

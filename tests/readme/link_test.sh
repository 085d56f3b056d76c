#!/usr/bin/env bash
#
# link_test.sh WAY FOLDER PREFIX: builds the README's program as the README says, and runs it.
#
#   WAY      find_package, pkg_config or add_subdirectory
#   FOLDER   has the program; the work is done beside it
#   PREFIX   where millrace is installed

set -euo pipefail
way=$1 folder=$2 prefix=$3
source_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

# block WORD: the README's block of code that has this word.
block() {
    awk -v word="$1" '
        /^```/ { if (inside && index(text, word)) printf "%s", text; inside = !inside; text = ""; next }
        inside { text = text $0 "\n" }' "$source_dir/README.md"
}

rm -rf -- "${folder:?}/$way"
mkdir -- "$folder/$way"
cd -- "$folder/$way"
cp -- "$folder/program.cpp" main.cpp

if [ "$way" = pkg_config ]; then
    command=$(block 'pkg-config --cflags')
    echo "$command"
    c++() { "${CXX:-/usr/bin/c++}" "$@"; }
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    eval "$command"
else
    ln -s -- "$source_dir" millrace
    {
        echo 'cmake_minimum_required(VERSION 3.25)'
        echo 'project(app LANGUAGES CXX)'
        echo 'add_executable(app main.cpp)'
        block "$way("
    } | tee CMakeLists.txt
    # In a folder of its own: beside the link, millrace's part of it would be millrace's sources.
    cmake -B build -DCMAKE_PREFIX_PATH="$prefix"
    # To build all of millrace once more is left to the tests of packaging, which do the same.
    [ "$way" != add_subdirectory ] || exit 0
    cmake --build build
    ln -s -- build/app app
fi

# shellcheck disable=SC2016 # that shell is to know the variable
output=$("$source_dir/examples/with_server.sh" sh -c 'exec ./app "$MILLRACE_URI"')
[ "$output" = 'billed: 9.90' ] || { echo "FAILED: it says '$output'" >&2; exit 1; }

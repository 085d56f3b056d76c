#!/usr/bin/env bash
#
# link_test.sh WAY FOLDER PREFIX: builds the README's program as the README says, and runs it.
#
#   WAY      find_package, pkg_config or add_subdirectory
#            install: installs millrace as the README says, but for the prefix; then find_package
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

# Several sources as one, which is a fourth of the work.
cmake() {
    case " $* " in
    *' -B '*) command cmake "$@" -DCMAKE_UNITY_BUILD=ON ;;
    *) command cmake "$@" ;;
    esac
}

rm -rf -- "${folder:?}/$way"
mkdir -- "$folder/$way"
cd -- "$folder/$way"
cp -- "$folder/program.cpp" main.cpp

if [ "$way" = install ]; then
    prefix=$PWD/prefix
    # In a folder that looks like the tree, since a build would be left in that.
    mkdir tree
    for part in "$source_dir"/*; do
        [ "$(basename -- "$part")" = build ] || ln -s -- "$part" tree/
    done
    commands=$(block 'cmake --install')
    [[ $commands == *' /usr/local'* ]] || { echo 'FAILED: no prefix to replace' >&2; exit 1; }
    commands=${commands//\/usr\/local/"$prefix"}
    echo "$commands"
    (cd -- tree && eval "$commands")
    way=find_package
fi

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
    cmake --build build
    ln -s -- build/app app
fi

# shellcheck disable=SC2016 # that shell is to know the variable
output=$("$source_dir/examples/with_server.sh" sh -c 'exec ./app "$MILLRACE_URI"')
[ "$output" = 'billed: 9.90' ] || { echo "FAILED: it says '$output'" >&2; exit 1; }

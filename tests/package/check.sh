#!/usr/bin/env bash
# check.sh <build folder> <compiler> <flags> <sanitizers>: installs the build aside and uses it as a stranger would.
set -euo pipefail
build=$1 compiler=$2 flags=$3 sanitize=$4
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
[ -z "$sanitize" ] || flags="$flags -fsanitize=$sanitize"

cmake --install "$build" --prefix "$prefix" >"$scratch/install.log" || { cat "$scratch/install.log"; exit 1; }
"$prefix/bin/rabit-tracker" --help | grep -q -- --num-workers
"$prefix/bin/dmlc-submit" --help | grep -q -- --num-workers

cmake -G Ninja -S "$here/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/build"
"$scratch/build/consumer"

pc=$(dirname "$(find "$prefix" -name warren.pc)")
# The installed .pc names the configured prefix; a moved tree is found by overriding it, as distributors do.
query() { PKG_CONFIG_PATH=$pc pkg-config --define-variable=prefix="$prefix" --static "$@" warren; }
# shellcheck disable=SC2046
"$compiler" -std=c++20 $flags "$here/consumer/main.cc" -o "$scratch/by-pkg-config" $(query --cflags --libs)
"$scratch/by-pkg-config"

#!/usr/bin/env bash
# check.sh <build folder> <compiler> <flags> <sanitizers>: installs the build into a scratch folder and uses it as other projects would.
set -euo pipefail
build=$1 compiler=$2 flags=$3 sanitize=$4
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix
[ -z "$sanitize" ] || flags="$flags -fsanitize=$sanitize"

cmake --install "$build" --prefix "$prefix" >"$scratch/install.log" || { cat "$scratch/install.log"; exit 1; }
"$prefix/bin/rabit-tracker" --help | grep -- --num-workers >/dev/null
"$prefix/bin/dmlc-submit" --help | grep -- --num-workers >/dev/null
for file in man/man1/{dmlc-submit,rabit-tracker}.1 bash-completion/completions/dmlc-submit zsh/site-functions/_dmlc-submit \
            fish/vendor_completions.d/dmlc-submit.fish; do
  test -s "$prefix/share/$file"
done
pc=$(dirname "$(find "$prefix" -name warren.pc)")
query() { PKG_CONFIG_PATH=$pc pkg-config "$@"; }

# Everything has the version in CMakeLists.txt and the same license.
version=$(sed -n 's/^project(warren VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")
differs() { echo "$1 has the version '$2', CMakeLists.txt '$version'" >&2; exit 1; }
for program in "$prefix"/bin/*; do
  said=$(LD_LIBRARY_PATH=$(dirname "$pc") "$program" --version)
  [[ $said =~ ^"$(basename "$program") (Warren) $version"($|\ with\ XGBoost\ ) ]] || differs "$program" "$said"
done
for package in "$pc"/*.pc; do
  said=$(query --modversion "$(basename "$package" .pc)")
  [ "$said" = "$version" ] || differs "$package" "$said"
  grep -qx 'License: Apache-2.0' "$package"
done
for library in "$prefix"/lib*/librabit{,_mpi,_mock,_xgboost}.so "$prefix"/lib/*/librabit{,_mpi,_mock,_xgboost}.so; do
  [ ! -e "$library" ] || [ "$(basename "$(realpath "$library")")" = "$(basename "$library").$version" ] ||
    differs "$library" "$(realpath "$library")"
done
grep -qx 'SPDX-License-Identifier: Apache-2.0' "$prefix/share/doc/warren/LICENSE"

cmake -G Ninja -S "$here/consumer" -B "$scratch/build" -DEXPECTED_VERSION="$version" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/build"
"$scratch/build/consumer"

for package in "$pc"/*.pc; do
  [ "$(realpath "$(query --variable=prefix "$(basename "$package" .pc)")")" = "$(realpath "$prefix")" ]
done
# shellcheck disable=SC2046
"$compiler" -std=c++20 $flags "$here/consumer/main.cc" -o "$scratch/by-pkg-config" $(query --static --cflags --libs warren)
"$scratch/by-pkg-config"

# The data reader without the rest of Warren.
cmake -G Ninja -S "$here/data_consumer" -B "$scratch/data-build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/data-build"
echo "1 1:2 3:4" >"$scratch/rows"
"$scratch/data-build/data_consumer" "$scratch/rows" | grep '^1 rows, 2 entries, 4 columns$'
"$prefix/bin/rabit-data" inspect "$scratch/rows" | grep '^rows: *1$' >/dev/null

# librabit, if it was built: with CMake and with pkg-config, shared and static, from C++ and C.
[ -e "$pc/rabit.pc" ] || exit 0
cmake --no-warn-unused-cli -G Ninja -S "$here/rabit_consumer" -B "$scratch/rabit-build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" >"$scratch/configure.log" || { cat "$scratch/configure.log"; exit 1; }
cmake --build "$scratch/rabit-build"
[ -z "$(query --print-requires --print-requires-private rabit)" ]
export LD_LIBRARY_PATH; LD_LIBRARY_PATH=$(dirname "$pc")
# shellcheck disable=SC2046
{
  "$compiler" -std=c++11 $flags "$here/rabit_consumer/main.cc" -o "$scratch/rabit-shared" $(query --cflags --libs rabit)
  "$compiler" -std=c++11 $flags "$here/rabit_consumer/main.cc" -o "$scratch/rabit-static" \
    $(query --static --cflags --libs rabit | sed 's/-lrabit/-l:librabit.a/')
  "$compiler" -x c -std=c99 $flags "$here/rabit_consumer/main.c" -x none -o "$scratch/rabit-c" $(query --cflags --libs rabit)
}
for program in "$scratch"/rabit-build/with_rabit "$scratch"/rabit-build/with_rabit_{static,mpi,mock_static} "$scratch"/rabit-{shared,static,c}; do
  # Open MPI leaks memory when it finalizes, so leaks are not reported.
  case $program in *with_rabit_mpi) leaks=0 ;; *) leaks=1 ;; esac
  ASAN_OPTIONS=detect_leaks=$leaks "$program"
  # Statically linked programs must not need the library at run time.
  case $program in *static) expected=0 ;; *) expected=1 ;; esac
  [ "$(readelf -d "$program" | grep -c 'NEEDED.*librabit')" = $expected ]
  WARREN_ENGINE=native "$prefix/bin/dmlc-submit" --cluster local --num-workers 1 --port 0 "$program"
done
"$prefix/bin/dmlc-submit" --cluster local --num-workers 3 --port 0 "$scratch/rabit-shared" | grep '2 of 3: 3'
# librabit_mock, and librabit_xgboost, of which the program uses no symbol.
("$prefix/bin/dmlc-submit" --cluster local --num-workers 2 "$scratch/rabit-build/with_rabit_mock_static" mock=0,0,0,0 2>&1 ||
  [ $? = 254 ]) | grep 'rank 0 ends before allreduce of version 0, call 0, as mock=0,0,0,0 says'
# shellcheck disable=SC2046
"$compiler" $flags -Wl,--as-needed "$here/rabit_consumer/empty.cc" -o "$scratch/seam" $(query --libs rabit_xgboost)
for program in "$scratch/seam" "$scratch/rabit-build/with_rabit_xgboost"; do
  readelf -d "$program" | grep 'NEEDED.*librabit_xgboost'
done
if [ -e "$prefix/bin/xgb-train" ]; then
  unset LD_LIBRARY_PATH
  ldd "$prefix/bin/xgb-train" | grep "librabit_xgboost.*=> $prefix"
fi

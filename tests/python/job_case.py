"""Shared by the tests of jobs that are started from Python."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

import warren
from warren_testing import BIN, wait_for

os.environ.setdefault("WARREN_NATIVE", str(BIN.parent))

try:
    import cloudpickle
except ImportError:
    cloudpickle = None
with_cloudpickle = unittest.skipIf(cloudpickle is None, "SKIPPED: no cloudpickle (Debian: python3-cloudpickle)")


def task():
    return int(os.environ["DMLC_TASK_ID"])


def run(function, *args, num_workers=2, **options):
    """Runs a job. Returns its results or its exception, then its standard output and its standard error."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            found = warren.run(function, *args, num_workers=num_workers, **{"port": 0, **options})
        except BaseException as raised:  # pylint: disable=broad-except
            found = raised
    return found, out.getvalue(), error.getvalue()


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def script(self, text, name="script.py"):
        """Writes a script; returns the command that runs it."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return [sys.executable, str(path)]

    def pids(self, count):
        """Waits until `count` processes run SLEEPER's `sleep` with this folder. Returns their pids."""
        wait_for(lambda: len(list(self.folder.glob("[0-9]*"))) == count, what=f"{count} processes")
        return [int(path.name) for path in self.folder.glob("[0-9]*")]


#: The beginning of a script. Its function `sleep` creates a file named after the pid, then sleeps.
SLEEPER = """
import os, pathlib, sys, time
import warren
folder = pathlib.Path(sys.argv[1])

def sleep(folder):
    (folder / str(os.getpid())).touch()
    time.sleep(600)
"""

"""Helpers for the tests of the example programs: the paths of the programs, a folder for each test, and functions that run programs."""
import os
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ["WARREN_BIN"]
XGB_TRAIN = os.path.join(BIN, "xgb-train")
SUBMIT = os.path.join(BIN, "dmlc-submit")
MAKE_LIBSVM = os.path.join(BIN, "make_libsvm")
XGBOOST = shutil.which("xgboost", path="/usr/bin")
LIMIT_S = 120


def environment() -> dict:
    """Returns this process's environment without a job's variables (DMLC_*), so that a program under test joins no job by accident."""
    return {key: value for key, value in os.environ.items() if not key.startswith("DMLC_")}


class ProgramTest(unittest.TestCase):
    """A test with its own folder, which is the current directory of the programs it runs."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="warren-examples-"))

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def write(self, name: str, content) -> str:
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(content)
        return name

    def read(self, name: str) -> bytes:
        with open(self.path(name), "rb") as file:
            return file.read()

    def files(self) -> list:
        return sorted(os.listdir(self.folder))

    def run_program(self, *command: str, **options) -> subprocess.CompletedProcess:
        return subprocess.run(command, **{"cwd": self.folder, "env": environment(), "capture_output": True, "timeout": LIMIT_S,
                                          "check": False, **options})

    def run_well(self, *command: str, **options) -> str:
        """Runs a program that must succeed; returns its standard output."""
        done = self.run_program(*command, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout.decode()

    def run_badly(self, code: int, *command: str, **options) -> str:
        """Runs a program that must fail with this exit code; returns its standard error."""
        done = self.run_program(*command, **options)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return done.stderr.decode(errors="replace")

    def make_data(self, name: str = "train.txt", **options) -> str:
        arguments = [part for key, value in options.items() for part in ("--" + key.replace("_", "-"), str(value))]
        self.run_well(MAKE_LIBSVM, "--output", name, *arguments)
        return name

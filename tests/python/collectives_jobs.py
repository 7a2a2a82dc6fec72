"""Runs jobs of programs that use warren.collectives."""
import os
import subprocess
import tempfile
import textwrap
import unittest

from warren_testing import BIN, SOURCE

LIMIT_S = 60
PYTHON = "/usr/bin/python3"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("DMLC_")}
BOTH_WAYS = ({}, {"WARREN_SHARED_MEMORY": "off"})


ENVIRONMENT = {**CLEAN, "PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent)}
HEAD = """
import os, re, sys, time
import numpy as np
from warren import collectives
from warren.collectives import Op

def same(got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape and np.array_equal(got, expected), (world.rank, got, expected)

def refuses(kind, text, function, *arguments, **more):
    # Returns the error.
    try:
        function(*arguments, **more)
    except kind as error:
        assert re.search(text, str(error)), (text, error)
        return error
    raise SystemExit(f"rank {world.rank}: '{text}' was not refused")

def until_all_have_spoken():
    # The first rank to end with an error ends the others.
    sys.stdout.flush()
    open(os.path.join(os.environ["MEETING"], str(world.rank)), "w").close()
    while len(os.listdir(os.environ["MEETING"])) < world.size:
        time.sleep(0.01)

"""


def submit(workers, *words, env=None, limit_s=LIMIT_S, **more):
    """Runs dmlc-submit with these arguments; returns its exit code and output. `more`: arguments for subprocess.run."""
    done = subprocess.run(
        [BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", str(workers), *words], capture_output=True,
        text=True, timeout=limit_s, check=False, env={**ENVIRONMENT, **(env or {})}, **more)
    return done.returncode, done.stdout + done.stderr


def run(workers, code, *options, env=None, python=(PYTHON,)):
    """Runs `code` on this many workers, with their communicator as `world`; returns the exit code and the output."""
    body = "with collectives.context([]) as world:\n" + textwrap.indent(textwrap.dedent(code), "    ")
    with tempfile.TemporaryDirectory() as meeting:
        return submit(workers, *options, *python, "-c", HEAD + body, env={"MEETING": meeting, **(env or {})})


class JobTest(unittest.TestCase):
    """A test whose jobs must succeed."""

    HEAD = ""  #: the beginning of each program
    python = (PYTHON,)

    def expect(self, workers, code, **env):
        """Runs `code` as `run` does; returns the output."""
        status, output = run(workers, self.HEAD + textwrap.dedent(code), env=env, python=self.python)
        self.assertEqual(status, 0, output)
        return output

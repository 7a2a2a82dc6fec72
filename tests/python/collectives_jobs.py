"""Runs jobs of programs that use warren.collectives."""
import os
import subprocess
import tempfile
import textwrap

from warren_testing import BIN, SOURCE

LIMIT_S = 60
PYTHON = "/usr/bin/python3"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("DMLC_")}


ENVIRONMENT = {**CLEAN, "PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent)}
HEAD = """
import os, sys, time
import numpy as np
from warren import collectives
from warren.collectives import Op

def until_all_have_spoken():
    # The first rank to end with an error ends the others.
    sys.stdout.flush()
    open(os.path.join(os.environ["MEETING"], str(world.rank)), "w").close()
    while len(os.listdir(os.environ["MEETING"])) < world.size:
        time.sleep(0.01)

"""


def submit(workers, *words, env=None):
    """Runs dmlc-submit with these arguments; returns its exit code and output."""
    done = subprocess.run(
        [BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", str(workers), *words], capture_output=True,
        text=True, timeout=LIMIT_S, check=False, env={**ENVIRONMENT, **(env or {})})
    return done.returncode, done.stdout + done.stderr


def run(workers, code, *options, env=None, python=(PYTHON,)):
    """Runs `code` on this many workers, with their communicator as `world`; returns the exit code and the output."""
    body = "with collectives.context([]) as world:\n" + textwrap.indent(textwrap.dedent(code), "    ")
    with tempfile.TemporaryDirectory() as meeting:
        return submit(workers, *options, *python, "-c", HEAD + body, env={"MEETING": meeting, **(env or {})})

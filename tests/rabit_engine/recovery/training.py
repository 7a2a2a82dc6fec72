"""Jobs of training_worker under dmlc-submit, whose workers die and are started again."""

import os
import pathlib
import re
import subprocess
import uuid

from warren_testing import BIN

SUBMIT = BIN / "dmlc-submit"
WORKER = BIN / "training_worker"
VERSIONS = 3
# Calls of one version: an allreduce, three broadcasts of a length and a text each, the places and the slices of an
# allgather, an allreduce; then the checkpoint.
CALLS = 10
LINE = re.compile(r"rank (\d+) of (\d+): ([0-9a-f]{16}) ([0-9a-f]{16})")


def command(num_workers, *words, attempts=0, versions=VERSIONS, elements=500, under=()):
    """`under`: the words of a command that starts the worker, which is appended to them."""
    return [str(SUBMIT), "--num-workers", str(num_workers), "--local-num-attempt", str(attempts), "--", *under,
            str(WORKER), str(versions), str(elements), *map(str, words)]


def digests(output):
    """What each rank printed at the end, by rank."""
    found = LINE.findall(output)
    return {int(rank): (global_model, local_model) for rank, _, global_model, local_model in found}


class Result:
    def __init__(self, code, output, errors):
        self.code, self.errors = code, errors
        self.digests = digests(output)


def processes_with(mark):
    """Living processes with this in their environment. What has no process has no socket and no segment either: those
    of the engine have no names that could outlive it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def train(num_workers, *words, attempts=0, env=None, seconds=60, **shape):
    mark = uuid.uuid4().hex
    segments = set(os.listdir("/dev/shm"))
    done = subprocess.run(command(num_workers, *words, attempts=attempts, **shape),
                          env={**os.environ, "WARREN_TEST_MARK": mark, **(env or {})}, capture_output=True, text=True,
                          timeout=seconds, check=False)
    if left := processes_with(mark):
        raise AssertionError(f"processes are left: {left}")
    if left := {name for name in set(os.listdir("/dev/shm")) - segments if "warren" in name or "rabit" in name}:
        raise AssertionError(f"shared memory is left: {left}")
    return Result(done.returncode, done.stdout, done.stderr)

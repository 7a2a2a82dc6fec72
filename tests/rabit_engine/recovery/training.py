"""Jobs of training_worker under dmlc-submit, whose workers die and are started again."""

import os
import re
import subprocess

from warren_testing import BIN

SUBMIT = BIN / "dmlc-submit"
WORKER = BIN / "training_worker"
VERSIONS = 3
# Calls of one version: an allreduce, three broadcasts of a length and a text each, the places and the slices of an
# allgather, an allreduce; then the checkpoint.
CALLS = 10
LINE = re.compile(r"rank (\d+) of (\d+): ([0-9a-f]{16}) ([0-9a-f]{16})")


def command(num_workers, *words, attempts=0, versions=VERSIONS, elements=500):
    return [str(SUBMIT), "--num-workers", str(num_workers), "--local-num-attempt", str(attempts), "--",
            str(WORKER), str(versions), str(elements), *map(str, words)]


def digests(output):
    """What each rank printed at the end, by rank."""
    found = LINE.findall(output)
    return {int(rank): (global_model, local_model) for rank, _, global_model, local_model in found}


class Result:
    def __init__(self, code, output, errors):
        self.code, self.errors = code, errors
        self.digests = digests(output)


def train(num_workers, *words, attempts=0, env=None, seconds=60, **shape):
    done = subprocess.run(command(num_workers, *words, attempts=attempts, **shape), env={**os.environ, **(env or {})},
                          capture_output=True, text=True, timeout=seconds, check=False)
    return Result(done.returncode, done.stdout, done.stderr)

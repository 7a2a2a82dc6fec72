"""Runs jobs of device_worker on the stand-in's GPUs, with and without dmlc-submit."""

import os
import re
import subprocess
import uuid

from warren_testing import BIN, Tracker, processes_with

SUBMIT = BIN / "dmlc-submit"
LIB = BIN.parent / "lib"
DIGEST = re.compile(r"digest ([0-9a-f]{16})")
STAND_IN = {
    "WARREN_CUDA_LIBRARY": str(LIB / "librabit_cuda_on_a_stand_in.so"),
    "WARREN_NCCL_PATH": str(LIB / "libstand_in_nccl.so"),
}


class Result:
    def __init__(self, done):
        self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr
        self.digests = DIGEST.findall(done.stdout)
        self.paths = set(re.findall(r"\bpath (.*)", done.stdout))

    def __str__(self):
        return f"exit code {self.code}\n{self.output}{self.errors}"


def run_one_by_one(num_workers, *words, gpus=1, env=None, seconds=60):
    """Like run(), but without dmlc-submit, which ends all ranks as soon as one has failed. Returns each rank's stderr and exit code."""
    with Tracker("--num-workers", num_workers) as tracker:
        environment = {**os.environ, **STAND_IN, **tracker.env, "STAND_IN_GPUS": str(gpus), **(env or {})}
        ranks = [subprocess.Popen([str(BIN / "device_worker_on_a_stand_in"), *map(str, words)],
                                  env={**environment, "DMLC_TASK_ID": str(number)}, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
                 for number in range(num_workers)]
        try:
            return [(rank.communicate(timeout=seconds)[1], rank.returncode) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()


def run(num_workers, *words, gpus=1, attempts=0, env=None, seconds=120, worker="device_worker_on_a_stand_in"):
    """Runs a job under dmlc-submit. `gpus` is the number of GPUs on this host; each rank selects one by its local rank."""
    mark = uuid.uuid4().hex
    command = [SUBMIT, "--num-workers", num_workers, "--local-num-attempt", attempts, "--", BIN / worker, *words]
    done = subprocess.run([str(word) for word in command],
                          env={**os.environ, **STAND_IN, "STAND_IN_GPUS": str(gpus), "WARREN_TEST_MARK": mark, **(env or {})},
                          capture_output=True, text=True, timeout=seconds, check=False)
    if left := processes_with(mark):
        raise AssertionError(f"processes remain: {left}")
    return Result(done)

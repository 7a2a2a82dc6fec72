"""Jobs of training_worker, whose workers die and are restarted, under dmlc-submit or by the test itself."""

import os
import re
import subprocess
import tempfile
import uuid

from warren_testing import BIN, processes_with, wait_for

SUBMIT = BIN / "dmlc-submit"
WORKER = BIN / "training_worker"
VERSIONS = 3
LIMIT_S = 60
# Calls per version: an allreduce, three broadcasts (a length and a text each), an allgather (positions and slices), and two allreduces. The
# checkpoint comes after these calls and is not counted.
CALLS = 11
LINE = re.compile(r"rank (\d+) of (\d+): ([0-9a-f]{16}) ([0-9a-f]{16})")


def command(num_workers, *words, attempts=0, versions=VERSIONS, elements=500, under=()):
    """Returns the command of a job. `under`: a command that starts the worker, to which the worker's command is appended."""
    return [str(SUBMIT), "--num-workers", str(num_workers), "--local-num-attempt", str(attempts), "--", *under,
            str(WORKER), str(versions), str(elements), *map(str, words)]


def digests(output):
    """Returns the digests that each rank printed at the end, by rank."""
    found = LINE.findall(output)
    return {int(rank): (global_model, local_model) for rank, _, global_model, local_model in found}


class Result:
    def __init__(self, code, output, errors):
        self.code, self.errors = code, errors
        self.digests = digests(output)


def train(num_workers, *words, attempts=0, env=None, seconds=60, **shape):
    mark = uuid.uuid4().hex
    segments = set(os.listdir("/dev/shm"))
    done = subprocess.run(command(num_workers, *words, attempts=attempts, **shape),
                          env={**os.environ, "WARREN_TEST_MARK": mark, **(env or {})}, capture_output=True, text=True,
                          timeout=seconds, check=False)
    if left := processes_with(mark):
        raise AssertionError(f"processes remain: {left}")
    if left := {name for name in set(os.listdir("/dev/shm")) - segments if "warren" in name or "rabit" in name}:
        raise AssertionError(f"shared memory is left: {left}")
    return Result(done.returncode, done.stdout, done.stderr)


class Job:
    """Workers that are started without dmlc-submit; the test itself kills and restarts them."""

    def __init__(self, tracker_env, ranks, versions, env=None, words=()):
        self.env = {**os.environ, **tracker_env, **(env or {})}
        self.ranks = ranks
        self.words = [str(versions), "500", "sleep=20", "tell", *words]
        self.processes = {}
        self.folder = tempfile.TemporaryDirectory()
        for task in range(ranks):
            self.start(task, 0)

    def start(self, task, attempt):
        name = os.path.join(self.folder.name, str(task))
        with open(name + ".out", "a") as out, open(name + ".err", "a") as err:
            self.processes[task] = subprocess.Popen(
                [WORKER, *self.words], stdout=out, stderr=err,
                env={**self.env, "DMLC_TASK_ID": str(task), "DMLC_NUM_ATTEMPT": str(attempt), "DMLC_MAX_ATTEMPT": "3"})

    def await_version(self, version):
        """Waits until all ranks have ended this version, and are thus past LoadCheckPoint."""
        told = rf"rank (\d): version {version}\b"
        wait_for(lambda: len(set(re.findall(told, self.text("err")))) == self.ranks, LIMIT_S, f"version {version}")

    def kill(self, task):
        self.processes[task].kill()
        self.processes[task].wait()

    def finish(self):
        """Waits for all ranks. Returns the exit codes, and the stdout and stderr of all ranks. Raises AssertionError if a rank does not end in
        time."""
        try:
            codes = [self.processes[task].wait(LIMIT_S) for task in range(self.ranks)]
        except subprocess.TimeoutExpired as error:
            codes = [self.processes[task].poll() for task in range(self.ranks)]
            raise AssertionError(f"not all workers have ended ({codes}): {self.text('err')}") from error
        return codes, self.text("out"), self.text("err")

    def text(self, kind):
        whole = ""
        for task in range(self.ranks):
            with open(os.path.join(self.folder.name, f"{task}.{kind}")) as file:
                whole += file.read()
        return whole

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.folder.cleanup()

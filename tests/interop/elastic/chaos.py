"""Runs elastic jobs whose workers are killed, terminated and stopped at random moments. Each job must end with the models and evaluations of
one undisturbed process.

    chaos.py [--jobs N] [--first SEED] [--form libsvm|parquet|csv|arrow] [--parallel N] [--verbose]

Starting Python and XGBoost takes most of such a job's time. So, except at night, the workers are forked from a process that has already
imported XGBoost (forking.py).

Run by ../elastic_test.py; XGBOOST_PYTHON and XGBOOST_PATH choose the version of XGBoost."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple, Optional

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent.parent)]

# pylint: disable=wrong-import-position
import forking  # noqa: E402
from any_xgboost_test import PYTHON, environment  # noqa: E402
from warren_testing import AT_NIGHT, BIN  # noqa: E402

#: The longest time that a job may take.
LIMIT_S = 120
#: The random faults begin within this time after the start of the job, which is long enough for all workers to start.
SPAN_S = 4 if AT_NIGHT else 2


class Event(NamedTuple):
    """A fault to inject."""

    at_s: float  #: seconds since the start of the job, or of the phase
    what: str  #: "kill", "end", "stop", or a phase in which the worker's first process kills itself: "joining" or "loading"
    worker: int


class Scenario(NamedTuple):
    """A job and the faults to inject into it."""

    seeds: tuple
    workers: int
    replace_within: int
    pause_s: float  #: after each round
    late_s: float  #: how long a process that replaces a lost one waits before it joins
    variables: dict
    events: list


def scenario(seed, form):
    """Draws the scenario of a seed."""
    chance = random.Random(f"{seed} {form}")
    seeds = [chance.randrange(100_000), chance.randrange(100_000)]
    workers = chance.choice([2, 2, 3, 3, 4, 5, 6])
    variables = chance.choice([{}, {}, {"WARREN_SHARED_MEMORY": "off"}, {"WARREN_XGBOOST_ENGINE": "own"}])
    kinds = ["kill", "kill", "kill", "end", "stop"]

    def worker():
        return chance.choice([0, chance.randrange(workers), chance.randrange(workers)])

    events = sorted(Event(chance.uniform(0, SPAN_S), chance.choice(kinds), worker()) for _ in range(chance.randint(1, 4)))
    if chance.random() < .2:  # two at once
        events += [Event(events[-1].at_s, "kill", worker())]
    events += [Event(chance.uniform(0, .1), phase, worker()) for phase in ("joining", "loading") if chance.random() < .25]
    return Scenario(tuple(seeds), workers, chance.choice([0, 1, 30]), chance.choice([.05, .1, .15]), chance.choice([0, 0, .5]), variables, events)


def disturb(event, folder):
    """Carries out an event. Returns what was done, for messages."""
    path = folder / f"pid-{event.worker}"
    try:
        pid = int(path.read_text(encoding="ascii"))
        if event.what == "stop":
            os.kill(pid, signal.SIGSTOP)
            time.sleep(.5)
            os.kill(pid, signal.SIGCONT)
        else:
            os.kill(pid, signal.SIGKILL if event.what == "kill" else signal.SIGTERM)
    except (OSError, ValueError) as error:
        return f"{event.what} {event.worker}: {error}"
    return f"{event.what} {event.worker} ({pid})"


def stacks(path):
    """Returns text for messages: the kernel functions in which a worker's threads wait, and their stacks if py-spy is installed, or a note
    that the worker has ended. `path`: the worker's pid file."""
    pid = path.read_text(encoding="ascii")
    try:
        tasks = sorted(pathlib.Path(f"/proc/{pid}/task").iterdir())
        waits = [f"thread {task.name} waits in {(task / 'wchan').read_text(encoding='ascii')}" for task in tasks]
    except OSError:
        return f"\n{path.name}: process {pid} has ended\n"
    spy = shutil.which("py-spy") or next(map(str, BIN.parent.glob("interop/py-spy/bin/py-spy")), None)
    done = subprocess.run(["timeout", "30", spy, "dump", "--native", "--pid", pid], stdout=subprocess.PIPE, text=True, check=False) if spy else None
    return f"\n{path.name}: process {pid}: {waits}\n{done.stdout if done else ''}"


def python():
    """The Python interpreter that runs the workers."""
    return forking.python(PYTHON, "numpy", "xgboost", path=os.environ.get("XGBOOST_PATH", ""))


def command(one, form, folder, pause_s):
    """The command line of a worker."""
    return [python(), str(HERE / "worker.py"), form, *map(str, one.seeds), str(folder), str(pause_s)]


def run_alone(one, form, folder):
    """Trains in one process, without a job. Returns its results."""
    subprocess.run(command(one, form, folder, 0), check=True, env=environment())
    return json.loads((folder / "result-alone.json").read_text(encoding="utf-8"))


def run_job(one, form, folder):
    """Runs the job and injects its faults. Returns its exit code (None if it did not end in time), its output, the faults, and the
    results."""
    submit = [str(BIN / "dmlc-submit"), "--port", "0", "--num-workers", f"1:{one.workers}", "--replace-within", str(one.replace_within),
              *command(one, form, folder, one.pause_s)]
    in_phases = [event for event in one.events if event.what in ("joining", "loading")]
    variables = {"LATE_S": str(one.late_s), **{f"KILLED_{event.what}_{event.worker}": str(event.at_s) for event in in_phases}}
    done = []
    with open(folder / "output", "w+", encoding="utf-8") as output:
        begun = time.monotonic()
        job = subprocess.Popen(submit, stdout=output, stderr=subprocess.STDOUT, env={**environment(), **one.variables, **variables})
        try:
            for event in (event for event in one.events if event not in in_phases):
                while time.monotonic() - begun < event.at_s and job.poll() is None:
                    time.sleep(.01)
                # Once a worker has written its results, workers may leave the job.
                if job.poll() is None and not any(folder.glob("result-[0-9]*")):
                    done.append(f"{time.monotonic() - begun:.2f} s: {disturb(event, folder)}")
            code: Optional[int] = job.wait(max(1, LIMIT_S - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            # SIGUSR2 would show the stacks of the programs that wait for the forked workers (forking.py).
            output.write("".join(stacks(path) for path in sorted(folder.glob("pid-[0-9]*"))))
            job.kill()
            code = None
        output.seek(0)
        text = output.read()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("result-[0-9]*.json"))]
    return code, text, done, results


def check(seed, form, verbose):
    """Runs the job of a seed. Returns a description of what went wrong, or ""."""
    one = scenario(seed, form)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expected = run_alone(one, form, folder)
        begun = time.monotonic()
        code, text, done, results = run_job(one, form, folder)
        story = f"job {seed} of {form}: {one}\n" + "\n".join(done)
        if verbose:
            print(f"{story}\n{time.monotonic() - begun:.1f} s, exit code {code}\n{text[-3000:] if verbose > 1 else ''}", flush=True)
        if code is None:
            return f"{story}\nthe job has not ended after {LIMIT_S} s:\n{text[:4000]}\n...\n{text[-12000:]}"
        # Documented behavior: a worker was lost between the last training and the end of the program, and not replaced.
        is_left_out = re.search(r"without it: worker \d has lost 3 workers within 10 minutes", text)
        has_lost_what_follows = ((one.replace_within == 0 or is_left_out)
                                 and "a worker was lost after the training, and no other one has come" in text)
        if code != 0 and not has_lost_what_follows:
            return f"{story}\nthe job failed with exit code {code}:\n{text[-8000:]}"
        if not results and not has_lost_what_follows:
            return f"{story}\nno worker has written a result:\n{text[-4000:]}"
        if any(json.dumps(found) != json.dumps(expected) for found in results):
            return f"{story}\nother models than those of one process:\n{expected}\n{results}\n{text[-4000:]}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--form", default="libsvm", choices=["libsvm", "parquet", "csv", "arrow"])
    parser.add_argument("--parallel", type=int, default=1, help="how many jobs run at a time")
    parser.add_argument("--verbose", "-v", action="count", default=0)
    given = parser.parse_args()
    wrong = 0
    python()  # starts the fork server before several threads need it
    with concurrent.futures.ThreadPoolExecutor(given.parallel) as jobs:
        for story in jobs.map(lambda seed: check(seed, given.form, given.verbose), range(given.first, given.first + given.jobs)):
            if story:
                wrong += 1
                print(story, flush=True)
    print(f"{given.jobs} jobs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

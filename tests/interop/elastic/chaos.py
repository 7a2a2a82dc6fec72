"""Elastic jobs whose workers are killed, asked to end and stopped at random moments. Each must end with the models and evaluations of one
undisturbed process.

    chaos.py [--jobs N] [--first SEED] [--form libsvm|parquet|csv|arrow] [--verbose]

Run by ../elastic_test.py; XGBOOST_PYTHON and XGBOOST_PATH choose the version of XGBoost."""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple, Optional

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parent.parent)]

# pylint: disable=wrong-import-position
from any_xgboost_test import PYTHON, environment  # noqa: E402
from warren_testing import BIN  # noqa: E402

#: No job may take longer, nor be silent for longer after the last disturbance than its rounds take.
LIMIT_S = 120


class Event(NamedTuple):
    """A disturbance."""

    at_s: float
    what: str  #: "kill", "end" or "stop"
    worker: int


class Scenario(NamedTuple):
    """A job, and what happens to it."""

    seeds: tuple
    workers: int
    replace_within: int
    pause_s: float
    variables: dict
    events: list


def scenario(seed, form):
    """The scenario of a seed."""
    chance = random.Random(f"{seed} {form}")
    seeds = [chance.randrange(100_000), chance.randrange(100_000)]
    workers = chance.randint(2, 4)
    variables = chance.choice([{}, {}, {"WARREN_SHARED_MEMORY": "off"}, {"WARREN_XGBOOST_ENGINE": "own"}])
    kinds = ["kill", "kill", "kill", "end", "stop"]
    events = sorted(Event(chance.uniform(0, 4), chance.choice(kinds), chance.randrange(workers)) for _ in range(chance.randint(1, 4)))
    if chance.random() < .2:  # several at once
        events += [Event(events[-1].at_s, "kill", chance.randrange(workers))]
    return Scenario(tuple(seeds), workers, chance.choice([0, 1, 30]), chance.choice([.1, .2, .3]), variables, events)


def disturb(event, folder):
    """Carries out an event. Returns what was done, for messages."""
    path = folder / f"pid-{event.worker}"
    try:
        pid = int(path.read_text(encoding="ascii"))
        if event.what == "stop":
            os.kill(pid, signal.SIGSTOP)
            time.sleep(.7)
            os.kill(pid, signal.SIGCONT)
        else:
            os.kill(pid, signal.SIGKILL if event.what == "kill" else signal.SIGTERM)
    except (OSError, ValueError) as error:
        return f"{event.what} {event.worker}: {error}"
    return f"{event.what} {event.worker} ({pid})"


def run_alone(one, form, folder):
    """The results of one process."""
    subprocess.run([PYTHON, str(HERE / "worker.py"), form, *map(str, one.seeds), str(folder), "0"], check=True, env=environment())
    return json.loads((folder / "result-alone.json").read_text(encoding="utf-8"))


def run_job(one, form, folder):
    """Runs the job with its disturbances. Returns its exit code, its output, what was done, and the results."""
    command = [str(BIN / "dmlc-submit"), "--port", "0", "--num-workers", f"1:{one.workers}", "--replace-within", str(one.replace_within),
               PYTHON, str(HERE / "worker.py"), form, *map(str, one.seeds), str(folder), str(one.pause_s)]
    done = []
    with open(folder / "output", "w+", encoding="utf-8") as output:
        begun = time.monotonic()
        job = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**environment(), **one.variables})
        try:
            for event in one.events:
                while time.monotonic() - begun < event.at_s and job.poll() is None:
                    time.sleep(.01)
                # Whoever has written its results may have left the job.
                if job.poll() is None and not any(folder.glob("result-[0-9]*")):
                    done.append(f"{time.monotonic() - begun:.2f} s: {disturb(event, folder)}")
            code: Optional[int] = job.wait(max(1, LIMIT_S - (time.monotonic() - begun)))
        except subprocess.TimeoutExpired:
            job.send_signal(signal.SIGUSR2)
            time.sleep(5)
            job.kill()
            code = None
        output.seek(0)
        text = output.read()
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("result-[0-9]*.json"))]
    return code, text, done, results


def check(seed, form, verbose):
    """Runs the job of a seed. Returns what was wrong with it, or ""."""
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
            return f"{story}\nthe job has not ended after {LIMIT_S} s:\n{text[-8000:]}"
        # As documented: a worker that is lost between the last training and the end of the program, and not replaced.
        has_lost_what_follows = one.replace_within == 0 and "a worker was lost after the training, and no other one has come" in text
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
    parser.add_argument("--verbose", "-v", action="count", default=0)
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.first, given.first + given.jobs):
        story = check(seed, given.form, given.verbose)
        if story:
            wrong += 1
            print(story, flush=True)
    print(f"{given.jobs} jobs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

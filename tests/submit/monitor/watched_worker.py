"""A worker with Warren's engine for watched_job_test.py and traces_test.py. Usage: python watched_worker.py WHAT ..."""

import os
import pathlib
import signal
import sys
import time

import numpy as np

import warren
from warren import rabit

what, words = sys.argv[1], sys.argv[2:]


def call():
    rabit.allreduce(np.ones(8), rabit.Op.SUM)


def sleeps_here():
    time.sleep(600)


def reads():
    from warren.data._progress import Progress  # pylint: disable=import-outside-toplevel

    progress = Progress("rows.parquet", 2000, 200_000_000)
    for _ in range(2):
        time.sleep(0.2)
        progress(500, 50_000_000)
    time.sleep(3)
    progress.close()


def main():
    late = os.environ["DMLC_TASK_ID"] == "1"
    if what == "joins-late" and late:
        time.sleep(600)
    rabit.init()
    rank = rabit.get_rank()
    if what in ("late-rank", "rounds"):
        rounds, pause = int(words[0]), float(words[1])
        for number in range(1, rounds + 1):
            time.sleep(pause if what == "rounds" or rank == 1 else pause / 4)
            call()
            warren.progress(number, rounds, rmse=1 / (1 + number))
    elif what == "reads":
        reads()
    else:
        for _ in range(5):
            call()
    if rank == 1 and what == "stops":
        pathlib.Path("part").write_text(str(os.getpid()))
        os.rename("part", "stopped")
        os.kill(os.getpid(), signal.SIGSTOP)
    if what == "stops":
        for _ in range(20):
            call()
            time.sleep(0.2)
    if rank == 1 and what == "sleeps":
        sleeps_here()
    if rank == 1 and what == "fails":
        sys.exit(3)
    if what == "computes":
        end = time.monotonic() + 8
        while time.monotonic() < end:
            np.ones(1000).sum()
    if rank == 1 and what in ("writes-dots", "prints-by-tracker"):
        end = time.monotonic() + 8
        while time.monotonic() < end:
            if what == "writes-dots":
                print(".", end="", flush=True)
            else:
                rabit.tracker_print("still here\n")
            time.sleep(0.25)
    if what == "waits-for":
        if rank == 0:
            pathlib.Path("all-called").write_text("x")
        while not pathlib.Path(words[0]).exists():
            time.sleep(0.02)
    call()
    print("the last words of rank", rank, flush=True)
    rabit.finalize()


main()

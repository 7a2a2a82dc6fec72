"""`warren cancel`: ends a running job through its dmlc-submit."""
import argparse
import shlex
import signal
from typing import Sequence

from warren._system.printable import printable
from warren._tools import one_job as _one_job


def parser() -> argparse.ArgumentParser:
    """Returns the parser for `warren cancel`'s arguments."""
    made = _one_job.make_parser(
        "cancel", "Sends SIGTERM to a running job's dmlc-submit, which ends all processes of the job, and waits for its end. The exit code "
        "is 0 if the job has ended, now or before. If its dmlc-submit was killed, ends what the cluster keeps of the job.")
    made.add_argument("--no-wait", action="store_true", help="do not wait for the job's end")
    return made


def _cancel(one: _one_job.OneJob, options: argparse.Namespace) -> int:
    job = one.job
    kept = _one_job.kept_jobs(one)
    how = "".join(f"; the cluster may still have {found.name}: {found.how()}" for found in kept)
    if kept and _one_job.runs_kept(one):
        return _cancel_kept(one, kept)
    if kept and job.state == "killed":
        raise ValueError(f"job {job.id} {_one_job.outcome(job)}{how}; others may have written its record, so this is not done here")
    if job.state not in ("running", "unknown"):
        print(printable(f"job {job.id} had already ended: it {_one_job.outcome(job)}"))
        return 0
    try:
        launcher = _one_job.Launcher(one)
    except ValueError as error:
        if one.again().job.state == job.state:
            raise ValueError(f"{error}{how}") from None
        return _cancel(one.again(), options)  # it has ended since its record was read
    launcher.send(signal.SIGTERM)
    if options.no_wait:
        print(f"sent SIGTERM to dmlc-submit (pid {launcher.pid}) of job {job.id}; `warren wait {job.id}` waits for its end")
        return 0
    print(printable(f"job {job.id} {_one_job.outcome(_one_job.wait_for_end(one, launcher))}"))
    return 0


def _cancel_kept(one: _one_job.OneJob, kept: Sequence[_one_job.Kept]) -> int:
    """Ends everything that the cluster keeps of a job whose launcher is gone. Returns the exit code: 1 if any part could not be ended."""
    failed = 0
    for found in kept:
        code, said = _one_job.run_kept(one, found.cancel)
        failed |= code != 0
        print(printable(f"job {one.job.id} {_one_job.outcome(one.job)}; {shlex.join(found.cancel)} {'ended' if code == 0 else 'failed for'} "
                        f"{found.name}{': ' if said else ''}{said}"))
    return int(failed)


def run(words: Sequence[str]) -> int:
    """Runs `warren cancel ...`; returns the exit code: 0 if the job has ended or, with --no-wait, if the signal was sent, else 1."""
    return _one_job.run(parser(), words, _cancel)

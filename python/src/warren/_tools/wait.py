"""`warren wait`: waits for a job's end and exits with the job's own exit code."""
import argparse
import sys
from typing import Sequence

from warren._system.printable import printable
from warren._tools import one_job as _one_job


def parser() -> argparse.ArgumentParser:
    """Returns the parser for `warren wait`'s arguments."""
    return _one_job.make_parser(
        "wait", "Waits until a job has ended, says how, and exits with the job's exit code: 1 if its launcher was killed or its machine "
        "was restarted.")


def _wait(one: _one_job.OneJob, _: argparse.Namespace) -> int:
    job = _one_job.wait_for_end(one, _one_job.launcher_here(one))
    ended = "how" in job.values
    print(printable(f"{'' if ended else 'warren wait: '}job {job.id} {_one_job.outcome(job)}"), file=sys.stdout if ended else sys.stderr)
    return _one_job.exit_code(job)


def run(words: Sequence[str]) -> int:
    """Runs `warren wait ...`; returns the job's exit code, or 1 if its record has none."""
    return _one_job.run(parser(), words, _wait)

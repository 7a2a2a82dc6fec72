"""`warren status`: shows how a job is doing, on one screen."""
import argparse
import datetime
import json
from typing import List, Sequence, Tuple

from warren._system.printable import printable
from warren._tools import jobs as _jobs
from warren._tools import logs as _logs
from warren._tools import one_job as _one_job

_LINES = 10


def parser() -> argparse.ArgumentParser:
    """Returns the parser for `warren status`'s arguments."""
    made = _one_job.make_parser("status", "Shows how a job is doing, and its last output. The exit code is 0 if it is running or has "
                                "succeeded, and 1 otherwise.")  # fmt: skip
    made.add_argument("--json", action="store_true", help="print JSON: the record's fields, with id, state, outcome and output")
    return made


def _last_output(one: _one_job.OneJob) -> Tuple[str, List[str]]:
    """Returns a heading or an error message, and the last lines of the job's combined output, or of rank 0's output if only the output of
    single processes was kept."""
    combined = one.job.values.get("detached") is True or not one.job.values.get("log_dir")
    what = "output" if combined else "output of rank 0"
    try:
        output = _logs.last_lines(_one_job.log_file(one, None if combined else 0), _LINES)
    except (OSError, ValueError) as error:
        return str(error), []
    return what + (", last lines:" if output else " is empty"), output


def _kept(one: _one_job.OneJob) -> List[Tuple[str, str]]:
    """Returns the names of the parts of the job that the cluster may keep, each with the cluster's description of its state or, if Warren
    must not run the commands in the record, with the commands that the user can type."""
    runs = _one_job.runs_kept(one)
    return [(kept.name, kept.how() if not runs else _one_job.run_kept(one, kept.ask)[1] if kept.ask else "it may still run")
            for kept in _one_job.kept_jobs(one)]


def _show(one: _one_job.OneJob, options: argparse.Namespace) -> int:
    job, values = one.job, one.job.values
    what, output = _last_output(one)
    kept = _kept(one)
    if options.json:
        print(json.dumps({"id": job.id, "state": job.state, "outcome": _one_job.outcome(job), "output": output, "kept": kept, **values}, indent=2))
    else:
        now = datetime.datetime.now(datetime.timezone.utc)
        age = (now - job.began).total_seconds()
        state = f"running for {_jobs.duration(age)}" if job.state == "running" else _one_job.outcome(job)
        print(_jobs.lines([("job", f"{job.id} ({_jobs.name_of(job)})"), ("state", state),
                           ("began", f"{values['began']} ({_jobs.ago(age)})"), ("workers", f"{values['workers']} on {values['cluster']}"),
                           ("from", f"{values['host']}, pid {values['pid']}"), ("logs", values.get("log_dir")),
                           ("page", _jobs.page(job)),
                           *(("kept", " ".join(f"{name}: {said}".split())) for name, said in kept)]), end="")  # fmt: skip
        if kept and _one_job.runs_kept(one):
            print(f"`warren cancel {job.id}` ends what {values['cluster']} keeps of it")
        print(printable(what) + "".join(f"\n  {printable(line)}" for line in output))
    return 0 if job.state in ("running", "succeeded") else 1


def run(words: Sequence[str]) -> int:
    """Runs `warren status ...`; returns the exit code: 0 if the job is running or has succeeded, otherwise 1."""
    return _one_job.run(parser(), words, _show)

"""The common part of the commands for a single job: its record, its launcher (the dmlc-submit process), and its output files."""
import argparse
import dataclasses
import os
import pathlib
import select
import shlex
import signal
import socket
import subprocess
import sys
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from warren._system import locks as _locks
from warren._system.printable import printable
from warren._tools import jobs as _jobs

_NAME = "the job: its ID, a prefix of it, the pid of its dmlc-submit, or the --jobname of the only running job, else of the newest"

#: The time limit, in seconds, for a command of a Kept.
_ASK_S = 20


@dataclasses.dataclass(frozen=True)
class OneJob:
    """A job and the file of its record."""
    job: _jobs.Job
    record: pathlib.Path
    is_own: bool = False  # whether the record is in the user's own folder of jobs, not in a --log-dir

    def again(self) -> "OneJob":
        """Reads the record once more. Raises BrokenRecord or OSError."""
        return dataclasses.replace(self, job=_jobs.read_file(self.record))


def make_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Returns a parser for the arguments that all commands for a single job have."""
    made = argparse.ArgumentParser(prog=f"warren {name}", description=description)
    made.add_argument("name", metavar="NAME", help=_NAME)
    made.add_argument("--log-dir", metavar="DIR", help="search the jobs with this --log-dir. Default: your jobs on this machine")
    return made


def run(parser: argparse.ArgumentParser, words: Sequence[str], act: Callable[[OneJob, argparse.Namespace], int]) -> int:
    """Calls `act` with the job that the words name and with the options; returns its exit code, or 1 after an error message."""
    options = parser.parse_args(words)
    try:
        folder = _jobs.folder_of(options.log_dir)
        jobs, errors = _jobs.read_folder(folder)
        try:
            job = _jobs.find(jobs, options.name)
        except ValueError as error:
            raise ValueError("; ".join([str(error), *errors])) from None
        return act(OneJob(job, folder / f"{job.id}.json", options.log_dir is None), options)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return 1


def outcome(job: _jobs.Job) -> str:
    """Describes how the job ended, or that it is running, e.g. 'failed with exit code 3 after 1:23: worker 3 exited with code 3'."""
    values = job.values
    if job.state == "running":
        return "is running"
    if job.state == "killed":
        return f"did not end by itself: {_jobs.lost(job)}"
    if job.state == "unknown":
        return f"is in an unknown state: {_why_unknown(job)}"
    how = "ended" if job.state == "interrupted" else job.state  # the story contains the cause of the interruption
    code = f" with exit code {values['exit_code']}" if values["exit_code"] else ""
    story = f": {values['story']}" if values["story"] else ""
    return f"{how}{code} after {_jobs.duration(values['seconds'])}{story}"


def _why_unknown(job: _jobs.Job) -> str:
    host = job.values["host"]
    if host != socket.gethostname():
        return f"it was started on {host}; give the command there"
    return f"the file system of its record has no locks; `ps -p {job.values['pid']}` shows whether its dmlc-submit still runs"


def exit_code(job: _jobs.Job) -> int:
    """The job's own exit code; 1 if its record has none."""
    return int(job.values["exit_code"]) if "how" in job.values else 1


class Kept(NamedTuple):
    """A part of a job that the cluster keeps even without the job's launcher. `ask`, which may be empty, is the command that shows its state,
    and `cancel` the command that ends it."""
    name: str
    ask: List[str]
    cancel: List[str]

    def how(self) -> str:
        """The commands that a user can type, as text."""
        return (f"`{shlex.join(self.ask)}` asks about it, " if self.ask else "") + f"`{shlex.join(self.cancel)}` ends it"


def kept_jobs(one: OneJob) -> List[Kept]:
    """The parts that the cluster may keep of a job whose launcher is gone or in an unknown state; none for other jobs."""
    if one.job.state not in ("killed", "unknown"):
        return []
    return [Kept(kept["name"], kept["ask"], kept["cancel"]) for kept in one.job.values.get("kept_jobs", [])]


def runs_kept(one: OneJob) -> bool:
    """Whether the commands in the job's record may be run: the record is in the user's own folder of jobs, nobody else can have written it, and
    the job's launcher is gone. Raises OSError."""
    status = one.record.lstat()
    return one.is_own and one.job.state == "killed" and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def run_kept(one: OneJob, words: Sequence[str]) -> Tuple[int, str]:
    """Runs a command of a Kept, in the job's directory if this exists. Returns the exit code and the output, or 1 and an error message if the
    command cannot be run or takes too long."""
    directory = one.job.values["directory"]
    try:
        done = subprocess.run(words, cwd=directory if os.path.isdir(directory) else None, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_ASK_S, check=False)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout.decode(errors="replace").strip()


class Launcher:
    """The dmlc-submit of a running job on this machine. It is identified by the record that it has open, so that no other process with its pid
    receives the signal."""

    def __init__(self, one: OneJob) -> None:
        """Raises ValueError if the launcher cannot be identified from here; the message contains the reason and, if there is one, a
        remedy."""
        job, values = one.job, one.job.values
        here = values["host"] == socket.gethostname() or values.get("boot") == _locks.boot() != ""
        if not here:
            raise ValueError(f"job {job.id} was started on {values['host']}; type there: warren cancel {job.id}")
        self.pid = int(values["pid"])
        self._pidfd: Optional[int] = None
        try:
            self._pidfd = os.pidfd_open(self.pid)  # opened before the check below, which detects a reused pid
        except (AttributeError, OSError):
            pass  # an old kernel, another system, or no such process
        try:
            holds = _locks.has_open(self.pid, one.record)
        except PermissionError:
            raise ValueError(f"job {job.id}: its dmlc-submit (pid {self.pid}) belongs to another user, who can cancel it") from None
        except FileNotFoundError:
            holds = False
        if not holds:
            where = (f"it runs in another container of this machine ({values['host']}); type there: warren cancel {job.id}"
                     if job.state == "running" else "it was killed, or runs in another container of this machine")  # fmt: skip
            raise ValueError(f"job {job.id}: pid {self.pid} is not its dmlc-submit here: {where}")

    def send(self, number: signal.Signals) -> None:
        """Sends the signal. Does nothing if the launcher has just ended."""
        try:
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def wait(self) -> None:
        """Waits until the process has exited; returns at once on a system without pidfds."""
        if self._pidfd is not None:
            select.select([self._pidfd], [], [])


def wait_for_end(one: OneJob, launcher: Optional[Launcher] = None) -> _jobs.Job:
    """Waits while the job is running, and then for the exit of `launcher`. Returns the job as it ended. Raises OSError or BrokenRecord if
    the record is gone or broken."""
    while one.job.state == "running":
        _locks.wait_for_release(one.record)
        one = one.again()
    if launcher is not None:
        launcher.wait()
        one = one.again()
    return one.job


def launcher_here(one: OneJob) -> Optional[Launcher]:
    """The launcher, or None if the job has ended or its launcher cannot be identified from here."""
    if one.job.state not in ("running", "unknown"):
        return None
    try:
        return Launcher(one)
    except ValueError:
        return None


def log_file(one: OneJob, rank: Optional[int]) -> pathlib.Path:
    """Returns the file with the output of a rank or, for None, with the launcher's output, which contains the output of all ranks. Raises
    ValueError if this file was not kept, was replaced by a later job's, or is missing."""
    job, values = one.job, one.job.values
    if not values.get("log_dir"):
        raise ValueError(f"the output of job {job.id} was not kept: start jobs with --detach, or with --log-dir DIR")
    folder = _folder_of_logs(job)
    if rank is None:
        if values.get("detached") is not True:
            raise ValueError(f"job {job.id} printed its combined output where it was started; --rank R shows that of one worker, and jobs "
                             "started with --detach keep both")  # fmt: skip
        file = folder / "launcher.log"
    else:
        by_rank = folder / f"rank-{rank}.log"  # a link, if the worker's number is not its rank
        file = by_rank if by_rank.is_symlink() else folder / f"worker-{rank}.log"
    if not file.exists():
        where = "" if values["host"] == socket.gethostname() else f", which may be on {values['host']} only"
        wrong = f"it has {values['workers']} workers; " if rank is not None and not 0 <= rank < values["workers"] else ""
        raise ValueError(f"job {job.id}: {wrong}there is no file '{file}'{where}")
    return file


def _folder_of_logs(job: _jobs.Job) -> pathlib.Path:
    """The job's log folder or, if the next job in it has moved the files, the folder to which they were moved. Raises ValueError if they
    were replaced by later jobs' files."""
    folder = pathlib.Path(job.values["log_dir"])
    try:
        newer = sorted(name for name in _jobs.names_in(folder / "jobs") if name > f"{job.id}.json")
    except FileNotFoundError:
        newer = []
    if len(newer) > 1:
        raise ValueError(f"the logs of job {job.id} were replaced by those of later jobs in '{folder}'; give each job its own --log-dir")
    return folder / "earlier" if newer else folder

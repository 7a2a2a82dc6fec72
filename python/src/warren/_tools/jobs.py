"""`warren jobs`: dmlc-submit's records of running and past jobs, a JSON file for each (docs/how-to/warren.md lists the fields)."""
import argparse
import dataclasses
import datetime
import functools
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import socket
import stat
import sys
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Type, Union

from warren._system import locks as _locks
from warren._system.printable import printable

_FORMAT = 1
#: Larger files are not read. The longest field is the command line, which Linux limits to 2 MiB by default.
_MOST_BYTES = 16 << 20
_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISDIR, "a folder"), (stat.S_ISSOCK, "a socket"))
_NAME = re.compile(r"\d{8}T\d{6}Z-\d+\.json")
_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
#: The fields that each file must have, and those that it must have once the job has ended.
_FIELDS: Dict[str, Union[Type[Any], Tuple[Type[Any], ...]]] = {
    "command": list,
    "directory": str,
    "host": str,
    "pid": int,
    "cluster": str,
    "workers": int,
    "began": str
}
_END_FIELDS: Dict[str, Union[Type[Any], Tuple[Type[Any], ...]]] = {
    "seconds": (int, float),
    "exit_code": int,
    "how": str,
    "story": str,
    "restarts": int
}
_ENDS = ("succeeded", "failed", "interrupted")


class BrokenRecord(ValueError):
    """Raised for a record that is malformed, or that a newer dmlc-submit has written."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A job. `values` are the fields of its file."""
    id: str
    began: datetime.datetime
    state: str  # one of _ENDS, "running", "killed", or "unknown" if it cannot be determined on this host
    values: Dict[str, Any]
    restarted: bool = False  # whether the machine was restarted since a "killed" job began

    @property
    def seconds(self) -> Optional[float]:
        return self.values.get("seconds")


#: A function that returns whether dmlc-submit still holds its lock on the record, or None if that is unknown.
IsHeld = Callable[[], Optional[bool]]


def read(name: str, text: str, here: Tuple[str, str], is_held: IsHeld) -> Job:
    """Returns the job recorded in `text`, the contents of file `name`, as seen from the machine `here` (host name, boot ID). Raises
    BrokenRecord if the text is malformed."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenRecord(f"{name}: it is not JSON: {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("format"), int):
        raise BrokenRecord(f"{name}: it has no format; dmlc-submit did not write it")
    if values["format"] > _FORMAT:
        raise BrokenRecord(f"{name}: it has format {values['format']}, and this Warren reads formats up to {_FORMAT}: use a newer Warren")
    has_ended = "how" in values
    for field, kind in {**_FIELDS, **(_END_FIELDS if has_ended else {})}.items():
        if not isinstance(values.get(field), kind) or isinstance(values[field], bool):
            raise BrokenRecord(f"{name}: '{field}' is {values.get(field)!r}" if field in
                               values else f"{name}: it has no '{field}'")
    if not isinstance(values.get("failed_by") or {}, dict):
        raise BrokenRecord(f"{name}: 'failed_by' is {values['failed_by']!r}")
    if not _are_kept_jobs(values.get("kept_jobs", [])):
        raise BrokenRecord(f"{name}: 'kept_jobs' is {values['kept_jobs']!r}")
    if has_ended and not math.isfinite(values["seconds"]):
        raise BrokenRecord(f"{name}: 'seconds' is {values['seconds']!r}")
    try:
        began = datetime.datetime.strptime(values["began"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        raise BrokenRecord(f"{name}: 'began' is {values['began']!r}, expected a time such as 2026-11-27T01:02:03Z") from None
    if has_ended and values["how"] not in _ENDS:
        raise BrokenRecord(f"{name}: it ended as {values['how']!r}; expected one of {', '.join(_ENDS)}")
    state = _state(values, here, is_held)
    restarted = state == "killed" and values.get("boot") not in (None, "", here[1]) and here[1] != ""
    return Job(name[:-len(".json")] if name.endswith(".json") else name, began, state, values, restarted)


def _are_kept_jobs(found: Any) -> bool:
    """Whether `found` is a list of objects, each with a name, a command `ask`, which may be empty, and a command `cancel`."""
    def is_command(words: Any) -> bool:
        return isinstance(words, list) and all(isinstance(word, str) for word in words)

    return isinstance(found, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) and is_command(one.get("ask")) and
                                           is_command(one.get("cancel")) and one["cancel"] for one in found)


def _state(values: Dict[str, Any], here: Tuple[str, str], is_held: IsHeld) -> str:
    if "how" in values:
        return str(values["how"])
    held = is_held() if values.get("locked") is True else None
    if held:
        return "running"
    # Locks of another machine may be invisible here.
    return "killed" if held is False and (values["host"] == here[0] or values.get("boot") == here[1] != "") else "unknown"


def ago(seconds: float) -> str:
    """Formats an age, e.g. '3 hours ago'."""
    for length, unit in _UNITS:
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "now"


def duration(seconds: Optional[float]) -> str:
    """Formats a duration, e.g. '1:02:03', '2:03' or '3.2 s'."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _command(job: Job) -> str:
    return " ".join(shlex.quote(str(word)) for word in job.values["command"])


def name_of(job: Job) -> str:
    """The job's name, without the arguments or code of its command, which `details` shows."""
    name = job.values.get("name")
    if isinstance(name, str) and name:
        return name
    program = str(next(iter(job.values["command"]), "")).split()  # an older dmlc-submit has recorded no name
    return os.path.basename(program[0]) if program else "job"


def _by(job: Job) -> str:
    failed_by = job.values.get("failed_by") or {}
    host = failed_by.get("host")
    return f"{failed_by.get('worker', '')}{f' on {host}' if host else ''}"


def lost(job: Job) -> str:
    """The reason why the record of a "killed" job has no end."""
    return "this machine was restarted since" if job.restarted else "the launcher (dmlc-submit) was killed"


def _how(job: Job) -> str:
    if job.state == "failed":
        return f"failed, code {job.values['exit_code']}" + (f", {_by(job)}" if _by(job) else "")
    return f"unknown, ask {job.values['host']}" if job.state == "unknown" else job.state


def table(jobs: Sequence[Job], now: datetime.datetime, width: int) -> str:
    """Returns a table with one line for each job, cut to `width` characters."""
    rows: List[Tuple[str, ...]] = [("ID", "BEGAN", "TOOK", "ENDED", "WORKERS", "NAME")]
    for job in jobs:
        took = (now - job.began).total_seconds() if job.state == "running" else job.seconds
        workers = f"{job.values['workers']} {job.values['cluster']}"
        rows.append((job.id, ago((now - job.began).total_seconds()), duration(took), _how(job), workers, name_of(job)))
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "".join(("  ".join(cell.ljust(size) for cell, size in zip(row, [*widths, 0])))[:width].rstrip() + "\n" for row in rows)


def details(job: Job, now: datetime.datetime) -> str:
    """Returns the main fields of a job's record as text, one per line."""
    values = job.values
    rows = [("job", job.id), ("name", name_of(job)), ("command", _command(job)), ("directory", values["directory"]),
            ("workers", f"{values['workers']} on {values['cluster']}"), ("from", f"{values['host']}, pid {values['pid']}"),
            ("began", f"{values['began']} ({ago((now - job.began).total_seconds())})"), ("took", duration(job.seconds)),
            ("ended", f"killed: {lost(job)}" if job.state == "killed" else _how(job)), ("story", values.get("story")),
            ("restarts", values.get("restarts")), ("logs", values.get("log_dir")), ("page", page(job))]
    return lines(rows)


def page(job: Job) -> Optional[str]:
    """Returns the address of a running job's page, or the file of an ended job's page; None if there is no page."""
    return job.values.get("dashboard") if job.state == "running" else job.values.get("page")


def lines(rows: Iterable[Tuple[str, Any]]) -> str:
    """Formats names and values, one pair per line, and omits pairs without a value."""
    return "".join(f"{name:10} {printable(str(value))}\n" for name, value in rows if value not in (None, "", "-"))


def folder_of(log_dir: Optional[str]) -> pathlib.Path:
    """Returns the folder of the records. Raises FileNotFoundError if it cannot be determined."""
    if log_dir is not None:
        return pathlib.Path(log_dir) / "jobs"
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return pathlib.Path(state) / "warren" / "jobs"
    if not os.environ.get("HOME"):
        raise FileNotFoundError("neither XDG_STATE_HOME nor HOME is set: give the --log-dir DIR of the jobs")
    return pathlib.Path(os.environ["HOME"]) / ".local" / "state" / "warren" / "jobs"


def _text_of(file: pathlib.Path) -> str:
    """Returns the file's text, without blocking: anyone who may write to the folder could have put a pipe there. Raises BrokenRecord if it is
    not a regular file or is too large, or OSError."""
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        mode = os.fstat(opened).st_mode
        if not stat.S_ISREG(mode):
            raise BrokenRecord(f"{file.name}: it is not a file but {next((name for test, name in _KINDS if test(mode)), 'a device')}")
        with open(opened, "rb", closefd=False) as binary:
            text = binary.read(_MOST_BYTES + 1)
    finally:
        os.close(opened)
    if len(text) > _MOST_BYTES:
        raise BrokenRecord(f"{file.name}: it has more than {_MOST_BYTES >> 20} MiB; dmlc-submit did not write it")
    return text.decode(errors="replace")


def names_in(folder: pathlib.Path) -> List[str]:
    """Returns the names of the records in a folder. Raises FileNotFoundError if there is no such folder."""
    return [name for name in os.listdir(folder) if _NAME.fullmatch(name)]


def read_file(file: pathlib.Path) -> Job:
    """Returns the job recorded in the file. Raises BrokenRecord or OSError."""
    here = (socket.gethostname(), _locks.boot())
    job = read(file.name, _text_of(file), here, functools.partial(_locks.is_held, file))
    if job.state != "killed":
        return job
    # The job may have ended after the record was read and before its lock was checked: the file was then replaced by one that records the end.
    return read(file.name, _text_of(file), here, functools.partial(_locks.is_held, file))


def read_folder(folder: pathlib.Path, last: Optional[int] = None) -> Tuple[List[Job], List[str]]:
    """Returns the `last` newest jobs (None means all), newest first, and an error message for each file that could not be read."""
    try:
        names = sorted(names_in(folder), reverse=True)
    except FileNotFoundError:
        return [], []
    jobs, errors = [], []
    for name in names[:last]:
        try:
            jobs.append(read_file(folder / name))
        except FileNotFoundError:
            continue  # removed by a job that has just ended, because there are too many records
        except (BrokenRecord, OSError) as error:
            errors.append(f"{folder}/{error}" if isinstance(error, BrokenRecord) else str(error))
    return jobs, errors


def find(jobs: Sequence[Job], words: str) -> Job:
    """Returns the job with the ID `words`, or else the only job whose ID begins with `words` or whose dmlc-submit had that pid. If there is
    none, returns the only running job with that name or, if no such job is running, the newest one with that name (`jobs` begins with the
    newest). Raises ValueError if there is no such job, or more than one."""
    if not words:
        raise ValueError("the name of the job is empty; `warren jobs` lists the jobs")
    found = [job for job in jobs if job.id.startswith(words) or job.id.endswith(f"-{words}")]
    if not found:
        named = [job for job in jobs if name_of(job) == words]
        found = [job for job in named if job.state == "running"] or named[:1]
    exact = [job for job in found if job.id == words] or found
    if len(exact) == 1:
        return exact[0]
    if not found:
        raise ValueError(f"there is no job '{words}'; `warren jobs` lists the jobs")
    raise ValueError(f"'{words}' is ambiguous: it may be {', '.join(job.id for job in found[:5])}{' and others' if len(found) > 5 else ''}")


def parser() -> argparse.ArgumentParser:
    """Returns the parser for `warren jobs`'s arguments."""
    made = argparse.ArgumentParser(prog="warren jobs", description="Lists past jobs of dmlc-submit, the newest first.")
    made.add_argument("id", nargs="?", metavar="ID", help="show everything about one job: its ID, a prefix of it, its pid, or its name")
    made.add_argument("--log-dir", metavar="DIR", help="list the jobs with this --log-dir. Default: your jobs on this machine")
    made.add_argument("--last", type=int, default=20, metavar="N", help="list at most N jobs; 0: all. Default: 20")
    made.add_argument("--json", action="store_true", help="print JSON: a list of the contents of the files, with id and state")
    return made


def run(words: Sequence[str]) -> int:
    """Runs `warren jobs ...`; returns the exit code: 1 if a file is broken, or if there is no such job."""
    options = parser().parse_args(words)
    try:
        folder = folder_of(options.log_dir)
        jobs, errors = read_folder(folder, None if options.id or options.last <= 0 else options.last)
        if options.id:
            jobs = [find(jobs, options.id)]
    except (OSError, ValueError) as error:
        print(f"warren jobs: {printable(str(error))}", file=sys.stderr)
        return 1
    now = datetime.datetime.now(datetime.timezone.utc)
    if options.json:
        print(json.dumps([{"id": job.id, "state": job.state, **job.values} for job in jobs], indent=2))
    elif options.id:
        print(details(jobs[0], now), end="")
    elif jobs:
        width = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 10_000
        print(table(jobs, now, width), end="")
    elif not errors:
        print(f"no jobs in {folder}")
    for error_text in errors:
        print(f"warren jobs: {printable(error_text)}", file=sys.stderr)
    return 1 if errors else 0

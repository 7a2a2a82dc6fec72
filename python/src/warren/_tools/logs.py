"""`warren logs`: shows the output of a job or of one of its workers."""
import argparse
import os
import pathlib
import sys
import time
from typing import Iterator, List, Optional, Sequence

from warren._system import locks as _locks
from warren._tools import one_job as _one_job

_POLL_SECONDS = 0.2
_PIECE_BYTES = 1 << 16


def parser() -> argparse.ArgumentParser:
    """Returns the parser for `warren logs`'s arguments."""
    made = _one_job.make_parser("logs", "Shows the output of a job: all of it if the job was started with --detach, or that of one worker "
                                "if it was started with --detach or --log-dir.")  # fmt: skip
    made.add_argument("--rank", type=int, metavar="R", help="show the output of this rank only")
    made.add_argument("--follow", "-f", action="store_true", help="go on as output comes, until the job ends")
    return made


def last_lines(file: pathlib.Path, count: int) -> List[str]:
    """Returns up to `count` last lines of a file. Only the last 64 KiB are read, so there may be fewer, and the first may lack its beginning."""
    with open(file, "rb") as binary:
        binary.seek(max(0, os.fstat(binary.fileno()).st_size - _PIECE_BYTES))
        return binary.read(_PIECE_BYTES).decode(errors="replace").splitlines()[-count:]


class Tail:
    """Reads a growing file. After the file is truncated, or replaced by another file of the same name, reading starts at the beginning again."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    def new(self) -> Iterator[bytes]:
        """Yields everything written since the last call."""
        yield from self._rest()
        if self._reopened():
            yield from self._rest()

    def _rest(self) -> Iterator[bytes]:
        if os.fstat(self._fd).st_size < os.lseek(self._fd, 0, os.SEEK_CUR):
            os.lseek(self._fd, 0, os.SEEK_SET)
        while piece := os.read(self._fd, _PIECE_BYTES):
            yield piece

    def _reopened(self) -> bool:
        try:
            if os.path.samestat(os.stat(self._path), os.fstat(self._fd)):
                return False
            opened = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False  # moved, and not yet replaced
        os.close(self._fd)
        self._fd = opened
        return True


def follow(file: pathlib.Path, record: Optional[pathlib.Path]) -> Iterator[bytes]:
    """Yields the contents of `file` and, if `record` is given, everything appended while a process holds the lock on `record`."""
    tail = Tail(file)
    try:
        while True:
            goes_on = record is not None and _locks.is_held(record)  # checked first, so that the last output is read after the job's end
            yield from tail.new()
            if not goes_on:
                return
            time.sleep(_POLL_SECONDS)
    finally:
        tail.close()


def _show(one: _one_job.OneJob, options: argparse.Namespace) -> int:
    file = _one_job.log_file(one, options.rank)
    followed = one.record if options.follow and one.job.state == "running" else None
    for piece in follow(file, followed):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    job = one.again().job if followed else one.job
    if job.state in ("killed", "unknown"):
        print(f"warren logs: job {job.id} {_one_job.outcome(job)}", file=sys.stderr)
    return 0


def run(words: Sequence[str]) -> int:
    """Runs `warren logs ...`; returns the exit code."""
    return _one_job.run(parser(), words, _show)

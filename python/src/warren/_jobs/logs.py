"""The folder with a job's logs. A temporary folder is removed with its job, or, if the program was killed, when the same user's next job
makes its own: the program holds a lock on a file in the folder, which is released when the program ends."""
import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
import time
import weakref
from typing import IO, Any, Callable, Iterator

from warren._system import forks as _forks

#: The prefixes of the names of temporary folders, once their locks are held, and before.
_READY, _NEW = "warren-job-", "warren-new-"
_LOCK = "lock"
_POLL_S = 0.1


class Folder:
    """The folder `log_dir`, or, if this is None, a temporary folder, which is removed by `close` or with this object."""

    def __init__(self, log_dir: Any) -> None:
        if log_dir is not None:
            self.path = pathlib.Path(log_dir)
            self.path.mkdir(parents=True, exist_ok=True)
            return
        _remove_left_ones(pathlib.Path(tempfile.gettempdir()))
        new = pathlib.Path(tempfile.mkdtemp(prefix=_NEW))
        lock = open(new / _LOCK, "wb")
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.path = new.rename(new.with_name(new.name.replace(_NEW, _READY, 1)))
        _forks.closed.add(lock)
        self._remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Removes the folder if it is a temporary one."""
        if hasattr(self, "_remove"):
            self._remove()


def _remove(folder: pathlib.Path, lock: IO[bytes], owner: int) -> None:
    """Removes a folder, unless this process is a fork of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
    lock.close()


def _remove_left_ones(place: pathlib.Path) -> None:
    """Removes this user's temporary folders whose programs have ended."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if (entry.name.startswith(_READY) and entry.is_dir(follow_symlinks=False)
                        and entry.stat(follow_symlinks=False).st_uid == os.getuid()):
                    with open(os.path.join(entry.path, _LOCK), "rb") as lock:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError while the program runs
                        shutil.rmtree(entry.path, ignore_errors=True)


def followed(path: pathlib.Path, has_ended: Callable[[], bool]) -> Iterator[str]:
    """Yields the lines of a growing file, which may not exist yet, until has_ended() is true and the file has been read completely."""
    rest = ""
    while not path.exists() and not has_ended():
        time.sleep(_POLL_S)
    if not path.exists():
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        while True:
            was_last = has_ended()
            piece = file.read()
            *lines, rest = (rest + piece).split("\n")
            yield from lines
            if not piece and was_last:
                break
            if not piece:
                time.sleep(_POLL_S)
    if rest:
        yield rest

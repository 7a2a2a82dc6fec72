"""File locks (flock). The kernel releases them when their holder ends, for whatever reason, so they show whether the process that made a file
or a folder is still alive. A pid does not: another container that shares the folder, and perhaps the host name, has its own pids."""
import contextlib
import errno
import fcntl
import os
import re
import shutil
import sys
import tempfile
from typing import Optional

#: flock's errors on file systems without locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_OWNER_BYTES = 4096
_LOCK = "lock"  # the locked file in a LockedFolder


def try_lock(fd: int) -> Optional[bool]:
    """Tries to lock an open file. Returns True if that succeeded, False if the file is locked elsewhere, and None if its file system does not support
    locks. The lock is released when the file is closed, here and in processes forked since. Raises OSError for any other error."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


class InUse(Exception):
    """Raised if another process, or another part of this one, holds the lock."""

    def __init__(self, owner: str) -> None:
        """`owner` is the holder's description of itself."""
        super().__init__(owner)
        self.owner = owner


class Lock:
    """Exclusive use of the resource for which the file `path` stands, until `release`. The file contains the owner's description of itself,
    and is removed by `release`. A file left by a killed owner is not locked, and is taken over."""

    def __init__(self, path: str, owner: str) -> None:
        """`owner` is a line shown to processes that are refused. Raises InUse with the other owner's line, and OSError if the file cannot
        be created."""
        self.path = path
        while True:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                #: Whether the file system has locks; without them, use is not exclusive.
                self.is_locked = bool(locked := try_lock(self._fd))
                if locked is False:
                    raise InUse(os.pread(self._fd, _OWNER_BYTES, 0).decode(errors="replace").strip())
                if os.fstat(self._fd).st_nlink > 0:
                    break
            except BaseException:
                os.close(self._fd)
                raise
            os.close(self._fd)  # the owner removed the file after it was opened here, and before it was locked
        #: The line of a previous owner that did not release the lock: it was killed, or it is running on a host whose locks this file system
        #: does not show here. Empty if there was no such owner.
        self.before = os.pread(self._fd, _OWNER_BYTES, 0).decode(errors="replace").strip()
        with contextlib.suppress(OSError):  # a full disk: the lock works without the line
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, owner.encode(), 0)

    def release(self) -> None:
        """Releases the lock. To be called only once."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        os.close(self._fd)


def boot() -> str:
    """Returns the id of this machine's current boot, which all containers on the machine share. Empty without /proc."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def is_held(path: "str | os.PathLike[str]") -> Optional[bool]:
    """Whether a process holds an exclusive lock on the file; None if unknown."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError as error:
        return True if error.errno == errno.EWOULDBLOCK else None
    finally:
        os.close(file)


def wait_for_release(path: "str | os.PathLike[str]") -> None:
    """Blocks while any process holds an exclusive lock on the file. Raises OSError if the file cannot be opened or its file system does not support
    locks."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


def has_open(pid: int, path: "str | os.PathLike[str]") -> bool:
    """Whether the process has the file open. Raises PermissionError if the process belongs to another user, and FileNotFoundError if there
    is no such process or file, or no /proc."""
    wanted = os.stat(path)
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            if os.path.samestat(os.stat(os.path.join(folder, name)), wanted):
                return True
    return False


class LockedFolder:
    """A new folder `path` in `place`, whose name is `prefix` and random characters. It is removed with this object. A folder with that
    prefix whose process was killed on this machine, since the machine was started, is removed when the next folder is made. A folder that
    may belong to a live process is never removed; a message on standard error names folders for which this is unknown. Raises
    FileNotFoundError if `place` is not a folder."""

    def __init__(self, place: str, prefix: str) -> None:
        if not os.path.isdir(place):
            raise FileNotFoundError(f"{place!r}: there is no such folder")
        self._boot = boot()
        self._remove, self._close, self._getpid = shutil.rmtree, os.close, os.getpid  # modules may be gone when the interpreter exits
        self._owner = os.getpid()
        self._remove_leftovers(place, prefix)
        self._lock = -1
        while self._lock < 0:
            self.path = tempfile.mkdtemp(prefix=prefix, dir=place)
            self._lock = self._locked()

    def __del__(self) -> None:
        # A forked process has a copy of this object and must not remove the folder. Without a lock, `path` may be another process's folder.
        if getattr(self, "_lock", -1) >= 0 and self._getpid() == self._owner:
            self._remove(self.path, ignore_errors=True)
            self._close(self._lock)

    def _locked(self) -> int:
        """Creates and locks the folder's lock file. Returns its descriptor, or -1 if the file was removed before it was locked."""
        name = os.path.join(self.path, _LOCK)
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.write(file, self._boot.encode())
            if os.fstat(file).st_nlink > 0:
                return file
        except OSError as error:
            # Without the file, no process takes the folder for a leftover.
            os.unlink(name)
            print(f"{self.path}: this file system has no locks ({os.strerror(error.errno or 0)}): if this process is killed, remove the "
                  "folder by hand", file=sys.stderr)  # fmt: skip
            return file
        os.close(file)
        return -1

    def _remove_leftovers(self, place: str, prefix: str) -> None:
        unknown = []
        for name in os.listdir(place):
            folder = os.path.join(place, name)
            if not re.fullmatch(re.escape(prefix) + r"\w+", name) or not os.path.isdir(folder) or os.path.islink(folder):
                continue
            try:
                file = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue  # its process is about to make the lock, cannot have one, or belongs to another user
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Another machine's lock may be invisible here: network file systems can keep locks local to one machine.
                where = os.read(file, 100).decode(errors="replace")
                if where and where == self._boot:
                    self._remove(folder, ignore_errors=True)
                elif where:  # if empty, its process is about to write it
                    unknown.append(name)
            except OSError:
                pass  # its process is alive
            finally:
                os.close(file)
        if unknown:
            print(f"{place}: has {len(unknown)} folder{'s' if len(unknown) > 1 else ''} that processes of another machine use, or that "
                  f"processes left there before this machine was started: if none is in use, remove {', '.join(sorted(unknown)[:3])}"
                  f"{', ...' if len(unknown) > 3 else ''}", file=sys.stderr)  # fmt: skip

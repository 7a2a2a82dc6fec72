"""Output files that appear complete or not at all."""
import contextlib
import io
import os
import re
import tempfile
from typing import IO, Any, Iterator

from warren._system import locks as _locks
from warren.data._files.names import Options, Path, shown
from warren.data._files.retry import Retry, persist
from warren.data._files.stores import Local, locate
from warren.data._files.stores.interface import unfinished_name


@contextlib.contextmanager
def open_output(uri: Path, *, storage_options: Options = None) -> Iterator[IO[bytes]]:
    """Yields a seekable binary file to write to. It appears complete under its name at the end of the block; after an exception in the
    block or a failed write, the previous contents stay.

    For local files, the data are written to a temporary file in the same folder, which is flushed to disk (fsync) and renamed. Temporary files
    left by killed writers of the same file are removed. For stores, the data are written to a temporary file on this host ($TMPDIR), and then
    uploaded, because pyarrow's uploads cannot be canceled: closing one, even after an exception, completes it.

    Raises FileNotFoundError if the folder of a local file is missing; ValueError if the store cannot be written to, if the name ends in
    "/", or if the block closes the file; ImportError if the store needs a package that is missing; and OSError for errors of the store. The
    message of a disk error (such as a full disk) contains the file's name."""
    text = os.fspath(uri)
    store, name = locate(text, storage_options)
    if not name or name.endswith("/"):
        raise ValueError(f"{shown(text)}: expected the name of a file to write, not of a folder")
    if isinstance(store, Local):
        with _local_output(name) as file:
            yield file
        return
    if not store.writes:
        raise ValueError(f"{shown(store.uri(name))}: http and https are for reading; write to a folder or an object store")
    place = f"{shown(text)} (its temporary file in {tempfile.gettempdir()})"
    with tempfile.TemporaryFile() as temporary, _writer(os.dup(temporary.fileno()), place) as spool:
        yield spool
        _check_open(spool, shown(text))
        size = spool.seek(0, os.SEEK_END)

        def step() -> None:
            spool.seek(0)
            store.put(name, spool, size)

        persist(step, f"{shown(text)}: to write {size} bytes", Retry())


def remove(uri: Path, *, storage_options: Options = None) -> None:
    """Removes a file, if there is one with this name. Raises OSError for errors of the store."""
    text = os.fspath(uri)
    store, name = locate(text, storage_options)
    with contextlib.suppress(FileNotFoundError):
        persist(lambda: store.remove(name), f"{shown(text)}: to remove it", Retry())


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Adds the file's name to errors that lack one, such as those of calls that take a descriptor."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), name) from None


class _Named(io.FileIO):
    """A file whose name appears in the errors of its writes."""

    def __init__(self, fd: int, shown_name: str) -> None:
        super().__init__(fd, "r+")
        self._shown_name = shown_name

    def write(self, data: Any) -> int:
        """Like FileIO.write, but errors contain the file's name."""
        with _naming(self._shown_name):
            return super().write(data)


@contextlib.contextmanager
def _writer(fd: int, shown_name: str) -> Iterator["io.BufferedRandom"]:
    file = io.BufferedRandom(_Named(fd, shown_name))
    try:
        yield file
    except BaseException:
        file.raw.close()  # without flushing the buffer, which could fail on a full disk
        raise
    file.close()


def _check_open(file: IO[bytes], name: str) -> None:
    if file.closed:
        raise ValueError(f"{name}: the file was closed inside the `with` block, which closes it at its end")


def _aside(goal: str) -> "tuple[str, int]":
    """Creates a new file in the folder of `goal`, locked while it is open if the file system supports locks. Returns the file's name and
    descriptor."""
    while True:
        name = unfinished_name(goal)
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        # Another writer may have removed the file as a leftover before it was locked.
        if _locks.try_lock(fd) is not False and os.fstat(fd).st_nlink > 0:
            return name, fd
        os.close(fd)


def _remove_leftovers(goal: str) -> None:
    """Removes the temporary files that killed writers of `goal` have left. The files of live writers are locked. If the file system does
    not support locks, nothing is removed."""
    folder, name = os.path.split(goal)
    leftover = re.compile(re.escape(f".{name}.") + r"\d+\.[0-9a-f]{8}\.unfinished")
    for found in os.listdir(folder):
        if leftover.fullmatch(found):
            path = os.path.join(folder, found)
            with contextlib.suppress(OSError):  # for example, another writer has removed it
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if _locks.try_lock(fd):
                        os.unlink(path)
                finally:
                    os.close(fd)


@contextlib.contextmanager
def _local_output(name: str) -> Iterator[IO[bytes]]:
    goal = os.path.realpath(name)  # a symbolic link is kept, and its target is replaced
    folder = os.path.dirname(goal)
    if os.path.isdir(goal):
        raise IsADirectoryError(f"{name}: it is a folder; expected the name of a file to write")
    if os.path.exists(goal) and not os.path.isfile(goal):
        raise ValueError(f"{name}: it is a device, a pipe or a socket, which a file would replace; expected the name of a file to write")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name}: there is no folder {folder}; create it first")
    _remove_leftovers(goal)
    with _naming(name):
        unfinished, fd = _aside(goal)
    try:
        with _writer(fd, name) as file:
            yield file
            _check_open(file, name)
            file.flush()
            with _naming(name):
                os.fsync(fd)
            os.rename(unfinished, goal)  # while the lock is held, so that no other writer removes the file as a leftover
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems do not support fsync for folders; the file already has its name
            os.fsync(folder_fd)  # flushes the new name to disk, too
    finally:
        os.close(folder_fd)

"""Files that appear whole or not at all."""
import contextlib
import os
import tempfile
from typing import IO, Iterator

from warren.data._files.names import Options, Path, shown
from warren.data._files.retry import Retry, persist
from warren.data._files.stores import Local, locate
from warren.data._files.stores.interface import unfinished_name


@contextlib.contextmanager
def open_output(uri: Path, *, storage_options: Options = None) -> Iterator[IO[bytes]]:
    """A binary file to write to, which can seek. It appears under its name whole, at the end of the block; after an exception in
    the block or a failed write, whatever was there before is there still.

    Local: written beside it, flushed to the disk (fsync), renamed. Stores: written to a temporary file of this host ($TMPDIR),
    then uploaded, since pyarrow's uploads cannot be called off: closing one, even after an exception, completes it.

    Raises FileNotFoundError where the folder is missing, ValueError where it cannot be written, OSError for what the store says.
    """
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
    with tempfile.TemporaryFile() as spool:
        yield spool
        if spool.closed:
            raise ValueError(f"{shown(text)}: the file was closed inside of the block; leave that to the block's end")
        size = spool.seek(0, os.SEEK_END)

        def step() -> None:
            spool.seek(0)
            store.put(name, spool, size)

        persist(step, f"{shown(text)}: to write {size} bytes", Retry())


@contextlib.contextmanager
def _local_output(name: str) -> Iterator[IO[bytes]]:
    goal = os.path.realpath(name)  # a link stays one
    folder = os.path.dirname(goal)
    if os.path.isdir(goal):
        raise IsADirectoryError(f"{name}: a folder; expected the name of a file to write")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{name}: there is no folder {folder}; make it first")
    unfinished = unfinished_name(goal)
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(fd, "w+b") as file:
            yield file
            if file.closed:
                raise ValueError(f"{name}: the file was closed inside of the block; leave that to the block's end")
            file.flush()
            os.fsync(file.fileno())
        os.rename(unfinished, goal)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_fd)  # the name, too, is on the disk
    finally:
        os.close(folder_fd)

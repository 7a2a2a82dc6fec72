"""Reads byte ranges of files."""
import concurrent.futures
import io
import os
import threading
from typing import TYPE_CHECKING, List, Optional, Tuple

from warren.data._files.listing import File, find
from warren.data._files.names import Options, shown
from warren.data._files.retry import Changed, Cut, Retry, persist, words
from warren.data._files.stores import Handle, Local, locate
from warren.data._files.stores.interface import PIECE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

#: The number of pieces that are read at the same time: one connection to an object store transfers only about 100 MB/s.
PIECES_AT_ONCE = 4


def pieces(offset: int, size: int, most: int) -> List[Tuple[int, int]]:
    """Splits a range into pieces (offset, size) of at most `most` bytes each, all of about the same size."""
    count = -(-size // most)
    cuts = [offset + size * k // count for k in range(count + 1)] if count else []
    return [(begin, end - begin) for begin, end in zip(cuts, cuts[1:])]


class Ranges:
    """Byte ranges of a file listed by `find`. Thread-safe. Not usable after a fork: create it in the process that reads.

    Each range is retried after transient errors: from the last byte received if the store supports it (http, https, local), else from the
    start of a piece of up to PIECE_BYTES. Size and tag are compared with the listed ones on opening, after each failure, and with each
    local read and http response."""

    def __init__(self, file: File, *, storage_options: Options = None, retry: Retry = Retry()) -> None:
        """Raises FileNotFoundError if the file has been deleted since it was listed, OSError if it has changed or the store fails."""
        self.file = file
        self._retry = retry
        self._store, self._name = locate(file.uri, storage_options)
        self._lock = threading.Lock()
        self._closed = False
        self._retired: List[Handle] = []
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._etag = ""
        self._handle: Handle = persist(self._open, f"{shown(file.uri)}: to open it", retry)
        self._etag = self._handle.etag

    def _open(self) -> Handle:
        try:
            handle = self._store.open(self._name)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"it was deleted since it was listed: {words(error)}") from error
        try:
            self._check(handle)
        except BaseException:
            handle.close()
            raise
        return handle

    def _check(self, handle: Handle) -> None:
        listed = self.file
        if handle.size != listed.size or (listed.tag and handle.tag and handle.tag != listed.tag):
            raise Changed(f"{shown(listed.uri)}: it changed since it was listed: was {listed.size} bytes with the tag "
                           f"'{listed.tag}', is {handle.size} bytes with the tag '{handle.tag}'. Start again, and make sure that nothing "
                           "writes to it meanwhile")
        etag, first = handle.etag, self._etag
        if etag and first and etag != first:
            raise Changed(f"{shown(listed.uri)}: it changed while it was read: its ETag was {first}, is {etag}. Start again, and make "
                          "sure that nothing writes to it meanwhile")

    def check(self) -> None:
        """Checks with the store once more that the file is still the listed one. Call it after the last read: a store does not report that an
        object was overwritten between two reads. Raises the same errors as the constructor."""
        handle = persist(self._open, f"{shown(self.file.uri)}: to check it", self._retry)
        handle.close()

    def read_at(self, offset: int, size: int) -> bytes:
        """Returns exactly `size` bytes from `offset` on. Raises ValueError if the range is outside the file or the file is closed, Changed
        if the file has changed, and OSError with the file, byte range, number of attempts and the store's message if the store fails."""
        if offset < 0 or size < 0 or offset + size > self.file.size:
            raise ValueError(f"{shown(self.file.uri)}: {size} bytes from offset {offset} are not within a file of {self.file.size} "
                             "bytes")
        with self._lock:
            if self._closed:
                raise ValueError(f"{shown(self.file.uri)}: closed")
        if size == 0:
            return b""
        if isinstance(self._store, Local) or size <= PIECE_BYTES:
            return self._read_piece(offset, size)
        with self._lock:
            if self._pool is None:
                self._pool = concurrent.futures.ThreadPoolExecutor(PIECES_AT_ONCE, "warren-read")
            pool = self._pool
        futures = [pool.submit(self._read_piece, *piece) for piece in pieces(offset, size, PIECE_BYTES)]
        try:
            return b"".join(future.result() for future in futures)
        finally:
            for future in futures:
                future.cancel()

    def _read_piece(self, offset: int, size: int) -> bytes:
        parts: List[bytes] = []
        have = 0
        failed = False

        def keep(data: bytes) -> None:
            nonlocal have
            if data:
                parts.append(data)
                have += len(data)

        def step() -> None:
            nonlocal failed
            if failed:
                self._reopen()
            handle = self._handle
            failed = True
            # A local read returns at most 2 GiB at a time, so a short local read is not a failure.
            while have < size:
                before = have
                try:
                    keep(handle.read(offset + have, size - have))
                except Cut as error:
                    keep(error.data)
                    raise
                self._check(handle)
                if have < size and (have == before or not isinstance(self._store, Local)):
                    raise Cut(b"", f"a short read: {have} of {size} bytes")

        persist(step, f"{shown(self.file.uri)}: bytes {offset}-{offset + size - 1} of {self.file.size}", self._retry)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _reopen(self) -> None:
        """Reopens the same file after a failure, or raises an error. Other threads may still use the old handle, which close() closes."""
        handle = self._open()
        with self._lock:
            self._retired.append(self._handle)
            self._handle = handle

    def close(self) -> None:
        """Closes the file. Waits for the pieces of large reads from stores; other reads must have ended. May be called repeatedly."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._pool is not None:
            self._pool.shutdown()
        for handle in (*self._retired, self._handle):
            handle.close()

    def __enter__(self) -> "Ranges":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Raw(io.RawIOBase):
    """A Python file object that reads from Ranges."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__()
        self._ranges, self._at = ranges, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._ranges.file.size}[whence]
        if at < 0:
            raise ValueError(f"{shown(self._ranges.file.uri)}: byte {at} is before its first")
        self._at = at
        return at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._ranges.file.size

    def read(self, size: Optional[int] = -1) -> bytes:
        left = max(0, self._ranges.file.size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        data = self._ranges.read_at(self._at, count) if count else b""
        self._at += count
        return data

    def close(self) -> None:
        if not self.closed:
            self._ranges.close()
        super().close()


def open_arrow(file: File, *, storage_options: Options = None) -> "pa.NativeFile":
    """Opens the file for pyarrow's readers; the caller closes it. pyarrow itself reads local files; reads from stores go through `Ranges`, one
    at a time. Read Parquet with pre_buffer=True: pyarrow then requests few large ranges instead of many small ones.

    Raises ImportError without pyarrow, and the errors of `Ranges`."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"{shown(file.uri)}: reading it needs pyarrow: pip install pyarrow. Importing it failed: {error}") from error
    ranges = Ranges(file, storage_options=storage_options)
    store, name = locate(file.uri, storage_options)
    if isinstance(store, Local):
        # The file is not memory-mapped: if it were truncated, reading the mapping would kill the process.
        try:
            native = pa.OSFile(name, "r")
            ranges.check()  # raises an error unless the name still refers to the listed file
        finally:
            ranges.close()
        return native
    return pa.PythonFile(_Raw(ranges), mode="r")


def read_whole(uri: str, *, storage_options: Options = None) -> Optional[bytes]:
    """Returns the content of the file `uri`, or None if it does not exist. Raises OSError for errors of the store."""
    try:
        file, = find([uri], storage_options=storage_options)
    except FileNotFoundError:
        return None
    with Ranges(file, storage_options=storage_options) as ranges:
        return ranges.read_at(0, file.size)

"""Data sets of LibSVM, libfm and CSV text as arrays: Warren's reader (libwarren_data) for Python.

The reader reads remote files (s3://...) in ranges, through callbacks into Python: _RemoteFiles. Such a read runs in a separate thread, so
that the caller's thread can be interrupted."""
import collections
import contextlib
import ctypes
import functools
import operator
import os
import queue
import re
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from warren._engine import native as _native
from warren.data import _files, _peers
from warren.data._peers import Greatest

_REDUCE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t)
_ADD_FILE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)
_LIST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, _ADD_FILE, ctypes.c_void_p, ctypes.c_void_p,
                         ctypes.c_size_t)
_READ_AT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t,
                            ctypes.c_void_p, ctypes.c_size_t)

T = TypeVar("T")
Uri = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]

#: Matches a path with a scheme, except file://, which the reader handles itself.
_REMOTE = re.compile(rb"(?!file://)[A-Za-z0-9+.-]*://")
#: Matches the start of a data set's options. Any other '?' is a wildcard in a path.
_OPTIONS = re.compile(rb"\?[a-z_]+=")
#: Matches a password in a URI, which must not appear in messages.
_PASSWORD = re.compile(r"(://[^/@:\s]*):[^/@\s]*@")
#: The maximum number of open files, unless more are in use. Opening a file costs a request; an open file holds no connection.
_MOST_OPEN_FILES = 1024


class _Arrays(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_uint64), ("entries", ctypes.c_uint64), ("columns", ctypes.c_uint64),
                ("offsets", ctypes.c_void_p), ("indices", ctypes.c_void_p), ("values", ctypes.c_void_p),
                ("labels", ctypes.c_void_p), ("labels_of_a_row", ctypes.c_uint64), ("weights", ctypes.c_void_p),
                ("group_sizes", ctypes.c_void_p), ("groups", ctypes.c_uint64), ("bad_rows", ctypes.c_uint64),
                ("first_bad_row", ctypes.c_char_p)]


class _Files(ctypes.Structure):
    _fields_ = [("context", ctypes.c_void_p), ("list", _LIST), ("read_at", _READ_AT)]


class _DataSet(ctypes.Structure):
    _fields_ = [("uri", ctypes.c_char_p), ("paths", ctypes.POINTER(ctypes.c_char_p)), ("path_count", ctypes.c_size_t),
                ("options", ctypes.c_char_p), ("files", ctypes.POINTER(_Files)), ("threads", ctypes.c_int)]


class _Queries(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("queries", ctypes.POINTER(ctypes.c_uint64)), ("count", ctypes.c_uint64)]


_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Queries))
#: The number of values that `shape` returns.
_SHAPE_WORDS = 10


class Rows(NamedTuple):
    """A share of a data set in CSR form. The entries e of row r are offsets[r] <= e < offsets[r + 1]: values[e] in column indices[e],
    counted from 0; all other values are missing."""

    offsets: NDArray[Any]  #: int64, rows + 1
    indices: NDArray[Any]  #: int32, or int64 for more than 2^31 columns
    values: NDArray[Any]  #: float32
    columns: int  #: the number of columns of the whole data set
    labels: NDArray[Any]  #: float32, (rows) or (rows, labels); all shares have the same number of labels per row
    weights: Optional[NDArray[Any]]  #: float32, one for each row, or for each query; None if no row of the data set has one: all weigh 1
    group_sizes: Optional[NDArray[Any]]  #: uint32, rows of each query; None if the data set has no queries
    bad_rows: int  #: rows left out with bad_rows=skip
    first_bad_row: Optional[str]  #: the position of the first of these rows, and the error in it


class _Owner:
    """Keeps the library's memory alive while an array refers to it."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._free = library.warren_data_free
        self._handle = handle

    def __del__(self) -> None:
        self._free(self._handle)

    def array(self, address: Optional[int], count: int, kind: Any, dtype: str) -> NDArray[Any]:
        """Returns an array that refers to the library's memory at `address`. `kind` is a simple ctypes type."""
        if not address or count == 0:
            return np.empty(0, dtype)
        memory = (kind * count).from_address(address)
        memory.warren_owner = self
        return np.frombuffer(memory, dtype)


class _OpenFile:
    def __init__(self, file: Any) -> None:
        self.file = file
        self.lock = threading.Lock()  #: held while the file is opened
        self.ranges: Any = None
        self.users = 0


class _OpenFiles:
    """Opens files when they are first read. Keeps at most `most` of them open, unless more are in use; closes the least recently used ones
    first. Thread-safe."""

    def __init__(self, open_one: Callable[[Any], Any], most: int) -> None:
        self._open_one = open_one
        self._most = most
        self._lock = threading.Lock()
        self._files: "collections.OrderedDict[str, _OpenFile]" = collections.OrderedDict()

    @contextlib.contextmanager
    def opened(self, file: Any) -> Iterator[Any]:
        """Yields the result of `open_one(file)`, which stays open within the block. Opening one file does not block users of another."""
        with self._lock:
            entry = self._files.setdefault(file.uri, _OpenFile(file))
            entry.users += 1
            self._files.move_to_end(file.uri)
        try:
            with entry.lock:
                if entry.ranges is None:
                    entry.ranges = self._open_one(file)
            yield entry.ranges
        finally:
            with self._lock:
                entry.users -= 1
            self._close_all_but(self._most)

    def close(self) -> None:
        """Closes all files; none may be in use."""
        self._close_all_but(0)

    def _close_all_but(self, most: int) -> None:
        with self._lock:
            idle = [uri for uri, entry in self._files.items() if entry.users == 0]
            closing = [self._files.pop(uri) for uri in idle[:max(len(self._files) - most, 0)]]
        for entry in closing:
            if entry.ranges is not None:
                entry.ranges.close()


class _RemoteFiles:
    """Callbacks with which the reader finds and reads remote files, from its own threads. With `exact`, paths are not patterns. `failure`
    is the first exception of any callback. After `stop`, new calls fail immediately; running calls end by the store's deadlines."""

    def __init__(self, storage_options: Optional[Mapping[str, Any]], exact: bool) -> None:
        self._exact = exact
        self._find: Callable[[Any], List[Any]] = functools.partial(_files.find, storage_options=storage_options)
        self._open_files = _OpenFiles(functools.partial(_files.Ranges, storage_options=storage_options),
                                      _MOST_OPEN_FILES)
        self._found: Dict[bytes, Any] = {}
        self._stopped = False
        self.failure: Optional[BaseException] = None
        self.callbacks = _Files(None, _LIST(self._list), _READ_AT(self._read_at))

    def stop(self) -> None:
        """Makes further calls fail. May be called from any thread."""
        self._stopped = True

    def close(self) -> None:
        """Closes all files. Call it when the reader is done."""
        self._open_files.close()

    def _try(self, action: Callable[[], None]) -> int:
        if self._stopped:
            return -1
        try:
            action()
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            # The reader stops, and `_with_files` raises the error.
            self.failure = self.failure or error
            return -1

    def _list(self, _: object, path: bytes, add: Any, files: int, _message: int, _message_bytes: int) -> int:
        def find() -> None:
            uri = os.fsdecode(path)
            for file in self._find([uri] if self._exact else uri):
                name = os.fsencode(file.uri)
                self._found[name] = file
                add(files, name, file.size)
        return self._try(find)

    def _read_at(self, _: object, name: bytes, offset: int, to: int, size: int, _message: int,
                 _message_bytes: int) -> int:
        def read_range() -> None:
            with self._open_files.opened(self._found[name]) as ranges:
                content = ranges.read_at(offset, size)
            if len(content) != size:
                raise OSError(f"{_shown(name)}: got {len(content)} bytes at byte {offset}, expected {size}")
            ctypes.memmove(to, content, size)
        return self._try(read_range)


def _library() -> ctypes.CDLL:
    library = _native.library("libwarren_data.so")
    library.warren_data_read_set.argtypes = [ctypes.POINTER(_DataSet), ctypes.c_int, ctypes.c_int, _REDUCE, ctypes.c_void_p,
                                             ctypes.POINTER(ctypes.c_void_p)]
    library.warren_data_queries.argtypes = [ctypes.c_void_p, _TAKE, ctypes.c_void_p]
    library.warren_data_queries.restype = None
    library.warren_data_shape.argtypes = [ctypes.POINTER(_DataSet), ctypes.POINTER(ctypes.c_uint64)]
    library.warren_data_last_error.restype = ctypes.c_char_p
    library.warren_data_free.argtypes = [ctypes.c_void_p]
    library.warren_data_free.restype = None
    return library


class _Named:
    """A data set in the form that the text reader takes. `uri`: a str is path[;path...][?key=value...]; a Path, and each element of a list,
    is one file or folder. `options` are additional options, key=value[&key=value...]. Raises ValueError for a name that no file can have,
    for an invalid number of threads, and for storage options without a path that needs them."""

    def __init__(self, uri: Uri, options: str, threads: int, storage_options: Optional[Mapping[str, Any]]) -> None:
        if not -2**31 <= operator.index(threads) < 2**31:
            raise ValueError(f"threads is {threads}, which is not a number of threads")
        self.exact = not isinstance(uri, str)
        self.names = [os.fsencode(one) for one in ([uri] if isinstance(uri, (str, os.PathLike)) else uri)]
        if any(b"\0" in one for one in self.names):
            raise ValueError(f"{uri!r}: a path cannot contain a null character")
        self.options, self.threads, self.storage_options = options.encode(), threads, storage_options
        self.is_remote = any(_REMOTE.match(path) for one in self.names for path in ([one] if self.exact else one.split(b";")))
        if storage_options and not self.is_remote:
            raise ValueError(f"{self.shown()}: storage_options are given, but no path has a scheme, such as s3://, that would use them; "
                             "omit them")

    def shown(self) -> str:
        """The name for messages."""
        return _shown(b"; ".join(self.names))

    def names_format(self) -> bool:
        """Whether the options or the name say the format, which is otherwise LibSVM."""
        return b"format=" in self.options or (not self.exact and b"format=" in self.names[0].partition(b"?")[2])

    def struct(self, files: Optional[_Files]) -> _DataSet:
        """Returns a struct that refers to this object's bytes."""
        found = _DataSet(threads=self.threads, files=None if files is None else ctypes.pointer(files))
        if self.exact:
            found.paths = (ctypes.c_char_p * len(self.names))(*self.names)
            found.path_count, found.options = len(self.names), self.options
        else:
            head, hash_, cache = self.names[0].partition(b"#")
            more = (b"&" if _OPTIONS.search(head) else b"?") + self.options if self.options else b""
            found.uri = head + more + hash_ + cache
        return found

    def call(self, function: Callable[[_DataSet], int], files: Optional[_Files]) -> None:
        """Calls `function`, a function of the library. Raises ValueError with the reader's message if it fails."""
        if function(self.struct(files)) == 0:
            return
        words = _shown(_library().warren_data_last_error())
        missing = [os.fsdecode(one) for one in self.names if self.exact and "No such file" in words and not os.path.exists(one)]
        raise ValueError(words + (_files.hint_of_exact(missing[0]) if missing else ""))


def read(uri: Uri, part: Optional[int] = None, parts: Optional[int] = None, *, options: str = "", threads: int = 0,
         allreduce_max: Optional[Greatest] = None, storage_options: Optional[Mapping[str, Any]] = None) -> Rows:
    """Reads part `part` of `parts`, or the part that `uri` names. Without these, reads this worker's share in a job, where all workers call
    it together, and everything outside a job.

    `uri`: a str is "path[;path...][?key=value[&key=value...]]", see docs/how-to/data-text.md. A Path, and each element of a list, is the
    name of one file or folder, whatever characters it has. `options`: key=value[&key=value...], as after the "?".

    All parts have the same columns, and the same kinds of labels, weights and queries. `allreduce_max` makes the workers agree on them: it
    takes an array of uint64 and returns the elementwise maximum over all workers; it is called in this thread. Without it, or if `uri`
    names a part, the whole data set is read once more to find them, unless there is only one part. `storage_options` are for the stores of
    paths with a scheme (s3://...), as in pandas. Raises ValueError with the file, line and column of the problem, any error of a store
    unchanged (OSError: FileNotFoundError, ...), and RuntimeError if `part` and `parts` are left out in one of several processes of a job or
    launcher that has not joined it. KeyboardInterrupt ends the read of remote files; pending requests continue until they are answered or
    time out."""
    def read_part(number: int, of: int, greatest: Optional[Greatest]) -> Rows:
        return read_share(uri, number, of, options=options, threads=threads, allreduce_max=greatest, storage_options=storage_options)[0]

    if part is None and parts is None and allreduce_max is None:
        peers = _peers.current()
        if peers.world > 1:
            return _peers.with_greatest(peers, lambda greatest: read_part(peers.rank, peers.world, greatest))
    return read_part(0 if part is None else part, 1 if parts is None else parts, allreduce_max)


def read_share(uri: Uri, part: int, parts: int, *, options: str, threads: int, allreduce_max: Optional[Greatest],
               storage_options: Optional[Mapping[str, Any]]) -> Tuple[Rows, Dict[str, NDArray[Any]]]:
    """Like `read` for one part. Also returns the distinct queries of its rows, uint64, by file name."""
    for name, number in (("part", part), ("parts", parts)):
        if not -2**31 <= operator.index(number) < 2**31:
            raise ValueError(f"{name} is {number}, which is not a number of parts")
    named = _Named(uri, options, threads, storage_options)
    return _with_files(named, allreduce_max, lambda files, allreduce: _read(named, part, parts, allreduce, files))


def shape(uri: Uri, *, options: str = "", threads: int = 0, storage_options: Optional[Mapping[str, Any]] = None) -> NDArray[Any]:
    """Reads a whole data set, and returns the array that `allreduce_max` would return to workers that read all of its parts. For callers
    that read several parts without a job. The arguments and errors are those of `read`."""
    named = _Named(uri, options, threads, storage_options)

    def find(files: Optional[_Files], _: Optional[Greatest]) -> NDArray[Any]:
        words = np.zeros(_SHAPE_WORDS, "uint64")
        named.call(lambda data_set: int(_library().warren_data_shape(data_set, words.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64)))),
                   files)
        return words
    return _with_files(named, None, find)


def _with_files(named: _Named, allreduce_max: Optional[Greatest],
                work: Callable[[Optional[_Files], Optional[Greatest]], T]) -> T:
    """Returns the result of `work`, which is called with the callbacks that read remote files (None if all files are local) and with
    `allreduce_max`."""
    if not named.is_remote:
        return work(None, allreduce_max)
    remote = _RemoteFiles(named.storage_options, named.exact)

    def with_remote_files(allreduce: Optional[Greatest]) -> T:
        try:
            return work(remote.callbacks, allreduce)
        except ValueError:
            if remote.failure is not None:
                raise remote.failure from None
            raise
        finally:
            remote.close()
    return _in_another_thread(with_remote_files, allreduce_max, remote.stop)


def _read(named: _Named, part: int, parts: int, allreduce_max: Optional[Greatest],
          files: Optional[_Files]) -> Tuple[Rows, Dict[str, NDArray[Any]]]:
    failure = []

    def reduce(_: object, values: "ctypes._Pointer[ctypes.c_uint64]", count: int) -> int:
        try:
            assert allreduce_max is not None
            array = np.ctypeslib.as_array(values, (count,))
            array[:] = allreduce_max(array.copy())
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            failure.append(error)
            return -1

    library, handle = _library(), ctypes.c_void_p()
    callback = _REDUCE(0) if allreduce_max is None else _REDUCE(reduce)
    try:
        named.call(lambda data_set: int(library.warren_data_read_set(data_set, part, parts, callback, None, ctypes.byref(handle))), files)
    except ValueError:
        if failure:
            raise failure[0] from None
        raise
    rows = _rows(library, handle, named)
    # CSV is valid LibSVM text: each row is a list of labels.
    if rows.columns == 0 and rows.labels.ndim > 1 and not named.names_format():
        raise ValueError(f"{named.shown()}: read as LibSVM, it has {rows.labels.shape[1]} labels in a row and no features: it looks like "
                         "CSV: add ?format=csv&label_column=0 to the name (docs/how-to/data-text.md), or give format='csv' if it has a "
                         "header line, or format='libsvm' if it is meant")
    queries: Dict[str, NDArray[Any]] = {}

    def take(_: object, of_file: "ctypes._Pointer[_Queries]") -> None:
        found = of_file.contents
        queries[os.fsdecode(found.path)] = np.ctypeslib.as_array(found.queries, (found.count,)).copy()

    library.warren_data_queries(handle, _TAKE(take), None)
    return rows, queries


def _shown(text: bytes) -> str:
    """A library message, without the passwords in its URIs."""
    return _PASSWORD.sub(r"\1:***@", text.decode(errors="replace"))


def _rows(library: ctypes.CDLL, handle: ctypes.c_void_p, named: _Named) -> Rows:
    owner = _Owner(library, handle)
    arrays = _Arrays()
    if library.warren_data_arrays(handle, ctypes.byref(arrays)) != 0:
        raise ValueError(f"{named.shown()}: {_shown(library.warren_data_last_error())}")
    labels = owner.array(arrays.labels, arrays.rows * arrays.labels_of_a_row, ctypes.c_float, "float32")
    if arrays.labels_of_a_row != 1:
        labels = labels.reshape(arrays.rows, arrays.labels_of_a_row)
    groups = owner.array(arrays.group_sizes, arrays.groups, ctypes.c_uint32, "uint32") if arrays.group_sizes else None
    return Rows(
        owner.array(arrays.offsets, arrays.rows + 1, ctypes.c_uint64, "int64"),
        # SciPy accepts int32 without a copy. int64 is used only if the range of int32 is too small.
        owner.array(arrays.indices, arrays.entries, ctypes.c_uint32, "int32") if arrays.columns <= 2**31
        else owner.array(arrays.indices, arrays.entries, ctypes.c_uint32, "uint32").astype("int64"),
        owner.array(arrays.values, arrays.entries, ctypes.c_float, "float32"), int(arrays.columns), labels,
        owner.array(arrays.weights, arrays.rows if groups is None else arrays.groups, ctypes.c_float, "float32")
        if arrays.weights else None, groups, int(arrays.bad_rows),
        _shown(arrays.first_bad_row) if arrays.first_bad_row else None)


def _in_another_thread(work: Callable[[Optional[Greatest]], T], allreduce_max: Optional[Greatest],
                       stop: Callable[[], None]) -> T:
    """Runs `work` in another thread and returns its result. The function that `work` receives calls `allreduce_max` in this thread, since
    communicators belong to threads. A signal's exception (KeyboardInterrupt) is raised immediately: `stop` makes `work` end soon, and the
    process waits for its end only when it exits."""
    asked: "queue.SimpleQueue[Any]" = queue.SimpleQueue()  # arrays to reduce, and None at the end
    answers: "queue.SimpleQueue[Any]" = queue.SimpleQueue()  # arrays, or an exception
    results: List[T] = []
    failures: List[BaseException] = []

    def ask(values: NDArray[Any]) -> NDArray[Any]:
        asked.put(values)
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        reduced: NDArray[Any] = answer
        return reduced

    def run() -> None:
        try:
            results.append(work(None if allreduce_max is None else ask))
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)
        finally:
            asked.put(None)

    thread = threading.Thread(target=run, name="warren.data.read")
    try:
        thread.start()  # inside the try block: a running thread must always be stopped
        while (values := asked.get()) is not None:
            assert allreduce_max is not None
            answers.put(allreduce_max(values))
    except BaseException as error:
        stop()
        answers.put(error)
        if isinstance(error, Exception) and thread.is_alive():
            thread.join()  # takes little time, because all files have been read before the first reduction
        raise
    if failures:
        raise failures[0]
    return results[0]

"""Rows in the driver's memory, for the processes of its job: each receives its share.

If all processes are on the driver's machine and there is enough memory, the rows are written once into files that exist in memory only
(memfd_create), which all processes map. The kernel frees them when the last process that has them ends, however it ends. Otherwise, a
process requests its rows from the driver over their connection, and receives the features in pieces, which are never pickled as a whole.
The other columns of a table (labels, weights, queries, ...), which have one value per row, are mapped as well, or sent in one message."""
import dataclasses
import os
from typing import IO, Any, Callable, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from warren._jobs.channel import Channel
from warren.data import _memory
from warren.data._table import OF_ROWS, Table

#: The fraction of the available memory that the features of a set of rows may take to be mapped.
_MOST_OF_MEMORY = 0.5
#: The approximate maximum size of a piece of rows.
_PIECE_BYTES = 32 << 20
#: The size of a NumPy file of an empty array.
_HEADER_BYTES = 128


@dataclasses.dataclass(frozen=True)
class RowsHere:
    """Rows in the driver's memory. `features(begin, end)` returns the features of a range of them: a two-dimensional array, or a SciPy CSR
    matrix. `like` is a table without rows."""

    count: int
    bytes_of_row: int  #: approximate
    features: Callable[[int, int], Any]
    like: Table
    of_rows: Dict[str, NDArray[Any]]  #: the columns in OF_ROWS that the table has, with all rows

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a CSR matrix."""
        return not isinstance(self.like.features, np.ndarray)

    def pieces(self, begin: int, end: int) -> "List[Tuple[int, int]]":
        """Splits a range of rows into pieces: the first row of each, and the one after its last."""
        step = max(1, _PIECE_BYTES // max(1, self.bytes_of_row))
        return [(first, min(first + step, end)) for first in range(begin, end, step)]


def rows_of(table: Table, features: Optional[Callable[[int, int], Any]] = None, count: Optional[int] = None) -> RowsHere:
    """Returns the rows of a table. For a table whose features have no rows, `features` and `count` provide them."""
    count = len(table) if count is None else count
    found = {name: getattr(table, name) for name in OF_ROWS if getattr(table, name) is not None}
    whole = table.features
    is_sparse = not isinstance(whole, np.ndarray)
    size = 12 * (whole.nnz // max(1, count) + 1) if is_sparse else whole.dtype.itemsize * whole.shape[1]
    like = dataclasses.replace(table, features=whole[:0], **dict.fromkeys(OF_ROWS))
    return RowsHere(count, size, features or (lambda begin, end: whole[begin:end]), like, found)


@dataclasses.dataclass(frozen=True)
class Rows:
    """The description of a set of the driver's rows, for the processes of its job."""

    number: int  #: the number of this set of rows in RowsForJob
    count: int
    like: Table
    columns: List[str]  #: the columns in OF_ROWS that the table has
    ends_of_queries: Optional[NDArray[Any]]  #: the end of each query, because queries are not split; None without queries
    files: Optional[Dict[str, str]]  #: the files of the arrays, by name; None if the rows are requested from the driver

    def share(self, rank: int, world: int, ask: Callable[[], Channel]) -> Table:
        """Returns this rank's rows. `ask` returns the connection to the driver."""
        begin, end = (self._bound(part, world) for part in (rank, rank + 1))
        if self.files is None:
            return self._received(begin, end, ask())
        features = _mapped(self.files, "features", begin, end)
        return dataclasses.replace(self.like, features=features, **{name: _mapped(self.files, name, begin, end) for name in self.columns})

    def leaves_out_a_rank(self, world: int) -> bool:
        """Whether there are too few rows or queries for each of the ranks to get some."""
        bounds = [self._bound(part, world) for part in range(world + 1)]
        return any(begin == end for begin, end in zip(bounds, bounds[1:]))

    def _bound(self, part: int, world: int) -> int:
        bound = self.count * part // world
        if self.ends_of_queries is None or bound in (0, self.count):
            return bound
        return int(self.ends_of_queries[np.searchsorted(self.ends_of_queries, bound)])

    def _received(self, begin: int, end: int, channel: Channel) -> Table:
        channel.send({"kind": "asked", "request": (self.number, begin, end)})
        fields = channel.receive()
        pieces: List[Any] = []
        while (piece := channel.receive()) is not None:
            pieces.append(piece)
        if not pieces:
            features = self.like.features
        elif isinstance(pieces[0], np.ndarray):
            features = np.empty((end - begin, pieces[0].shape[1]), pieces[0].dtype)
            place = 0
            for number, piece in enumerate(pieces):
                features[place:place + len(piece)] = piece
                place += len(piece)
                pieces[number] = None  # frees the piece
        else:
            import scipy.sparse  # pylint: disable=import-outside-toplevel
            features = scipy.sparse.vstack(pieces, format="csr")
        return dataclasses.replace(self.like, features=features, **fields)


class RowsForJob:
    """Serves the driver's rows to the processes of a job, until `close`."""

    def __init__(self, is_local: bool) -> None:
        """`is_local`: whether the processes are on this machine."""
        self._is_local = is_local
        self._rows: List[RowsHere] = []
        self._open: List[IO[bytes]] = []

    def add(self, rows: RowsHere) -> Rows:
        """Adds rows to be served, and returns their description for the processes of the job."""
        number = len(self._rows)
        self._rows.append(rows)
        qid = rows.of_rows.get("qid")
        ends = None if qid is None else np.append(np.flatnonzero(qid[1:] != qid[:-1]) + 1, len(qid))
        return Rows(number, rows.count, rows.like, list(rows.of_rows), ends, self._written(rows))

    def serve(self, request: Any, channel: Channel) -> None:
        """Answers a request of Rows.share."""
        number, begin, end = request
        rows = self._rows[number]
        channel.send({name: values[begin:end] for name, values in rows.of_rows.items()})
        for first, last in rows.pieces(begin, end):
            channel.send(rows.features(first, last))
        channel.send(None)

    def close(self) -> None:
        """Frees the memory into which the rows were written. Processes that have mapped it keep it until they end."""
        for file in self._open:
            file.close()

    def _written(self, rows: RowsHere) -> Optional[Dict[str, str]]:
        """Writes the rows into memory that the processes can map. Returns the files by the names of their arrays; None if the rows must be
        requested."""
        if not self._is_local or not hasattr(os, "memfd_create") or not _fits(rows.count * rows.bytes_of_row):
            return None
        files: Dict[str, str] = {}

        def file_for(name: str) -> IO[bytes]:
            file = os.fdopen(os.memfd_create(f"warren {name}"), "w+b")
            self._open.append(file)
            files[name] = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            return file
        try:
            _write(rows, file_for)
        except OSError:
            return None  # there is not enough memory after all; the processes request the rows
        return files


def _fits(size: int) -> bool:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next((int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:")), 0)
    except OSError:
        return False
    return size < _MOST_OF_MEMORY * min(available, _memory.limit())


def _write(rows: RowsHere, file_for: Callable[[str], IO[bytes]]) -> None:
    """Writes one file for each array."""
    def save(name: str, array: NDArray[Any]) -> None:
        with_name = file_for(name)
        np.save(with_name, array)
        with_name.flush()

    for name, values in rows.of_rows.items():
        save(name, values)
    if rows.is_sparse:
        matrix = rows.features(0, rows.count)
        for part in ("data", "indices", "indptr"):
            save(f"features.{part}", getattr(matrix, part))
        save("features.shape", np.array(matrix.shape))
        return
    columns, dtype = rows.like.features.shape[1], rows.like.features.dtype
    if rows.count == 0 or columns == 0:
        save("features", np.empty((rows.count, columns), dtype))
        return
    file = file_for("features")
    np.lib.format.write_array_header_2_0(file, {"descr": np.lib.format.dtype_to_descr(dtype),  # type: ignore[no-untyped-call]
                                                "fortran_order": False, "shape": (rows.count, columns)})
    for begin, end in rows.pieces(0, rows.count):
        file.write(np.ascontiguousarray(rows.features(begin, end), dtype).data.cast("B"))
    file.flush()


def _mapped(files: Dict[str, str], name: str, begin: int, end: int) -> Any:
    """Returns a range of the rows of an array, without copying them."""
    def read(array_name: str) -> NDArray[Any]:
        path = files[array_name]
        # An empty array cannot be mapped.
        found: NDArray[Any] = np.load(path)[:0] if os.path.getsize(path) <= _HEADER_BYTES else np.load(path, mmap_mode="r")
        return np.asarray(found)
    if f"{name}.shape" not in files:
        return read(name)[begin:end]
    import scipy.sparse  # pylint: disable=import-outside-toplevel
    offsets = read(f"{name}.indptr")[begin:end + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    return scipy.sparse.csr_matrix((read(f"{name}.data")[first:last], read(f"{name}.indices")[first:last], offsets - offsets[0]),
                                   shape=(end - begin, int(read(f"{name}.shape")[1])))

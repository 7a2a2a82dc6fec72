"""Writes the predictions for all workers' rows to files, in row order: a folder with a file for each worker, or one file.

`write` is a collective call. No file becomes visible until all workers have written theirs."""
import contextlib
import os
import posixpath
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from warren.data import _files, _peers
from warren.data._exchange.pieces import TableBuilder
from warren.data._exchange.transfer import PIECE_BYTES, Transfer
from warren.data._files.names import Options, Path


class _Sink:
    """A file object for pyarrow's writer. The writer writes once more when it is destroyed, which must succeed even after an error, and it must
    not close the file, which the caller owns."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.drops = False

    def write(self, data: Any) -> int:
        """Writes the data, or drops it after `drops` has been set."""
        return len(data) if self.drops else int(self._file.write(data))

    def flush(self) -> None:
        """Does nothing: the owner flushes the file."""

    def close(self) -> None:
        """Does nothing: the owner closes the file."""


class _Writer:
    """Writes one file."""

    def add(self, rows: NDArray[Any]) -> None:
        """Writes further rows."""
        raise NotImplementedError

    def finish(self) -> None:
        """Writes anything that follows the last row."""

    def abandon(self) -> None:
        """Makes sure that nothing is written after this call."""


class _Parquet(_Writer):
    """A Parquet file with the column `prediction`, or `prediction_0`, `prediction_1`, ...; each `add` writes one or more row groups."""

    def __init__(self, file: Any, dtype: "np.dtype[Any]", row_shape: Tuple[int, ...], rows: int) -> None:
        try:
            import pyarrow as pa  # pylint: disable=import-outside-toplevel
            import pyarrow.parquet as pq  # pylint: disable=import-outside-toplevel
        except ImportError as error:
            raise ImportError(f"writing Parquet needs pyarrow, which is not installed ({error}): pip install pyarrow, or use a name that "
                              "ends in .csv or .npy") from error
        self._pa, kind = pa, pa.from_numpy_dtype(dtype)
        self._schema = pa.schema([(name, kind) for name in _names(row_shape)])
        self._sink = _Sink(file)
        self._writer = pq.ParquetWriter(self._sink, self._schema)

    def add(self, rows: NDArray[Any]) -> None:
        columns = rows.reshape(len(rows), len(self._schema.names))
        arrays = [self._pa.array(np.ascontiguousarray(column)) for column in columns.T]
        self._writer.write_table(self._pa.Table.from_arrays(arrays, schema=self._schema))

    def finish(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        self._sink.drops = True
        self._writer.close()


class _Csv(_Writer):
    """A CSV file: a header line, and a line for each row; floats have enough digits to be read back exactly."""

    def __init__(self, file: Any, dtype: "np.dtype[Any]", row_shape: Tuple[int, ...], rows: int) -> None:
        self._file = file
        self._format = "%d" if dtype.kind in "iub" else "%.9g" if dtype.itemsize <= 4 else "%.17g"
        file.write((",".join(_names(row_shape)) + "\n").encode())

    def add(self, rows: NDArray[Any]) -> None:
        np.savetxt(self._file, rows, self._format, delimiter=",")


class _Npy(_Writer):
    """NumPy's own format, for any shape."""

    def __init__(self, file: Any, dtype: "np.dtype[Any]", row_shape: Tuple[int, ...], rows: int) -> None:
        self._file = file
        form: Any = np.lib.format
        header = {"descr": form.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, *row_shape)}
        form.write_array_header_1_0(file, header)

    def add(self, rows: NDArray[Any]) -> None:
        self._file.write(np.ascontiguousarray(rows).data.cast("B") if rows.size else b"")


_FORMATS: Dict[str, Callable[..., _Writer]] = {"parquet": _Parquet, "csv": _Csv, "npy": _Npy}


def _names(row_shape: Tuple[int, ...]) -> List[str]:
    return ["prediction"] if not row_shape else [f"prediction_{place}" for place in range(row_shape[0])]


def format_of(path: str, named: Optional[str]) -> str:
    """Returns `parquet`, `csv` or `npy`, as named, or else by the path's suffix. Raises ValueError for any other name or suffix."""
    suffix = posixpath.splitext(path.rstrip("/"))[1].lstrip(".").lower()
    found = suffix if named is None else named
    if found not in _FORMATS:
        raise ValueError(f"{path}: found " + (f"the suffix {suffix!r}" if named is None else f"format={named!r}") +
                         ", expected .parquet, .csv or .npy, or one of format='parquet', 'csv', 'npy'")
    return found


def _check_place(path: str, whole: bool, overwrite: bool, own: Sequence[str], storage_options: Any) -> List[str]:
    """Returns the names of another run's files that this run does not overwrite and must therefore remove. Raises FileExistsError if there are
    files and `overwrite` is false, or if such files would have to be removed from a store."""
    found = _files.existing(path, whole=whole, storage_options=storage_options)
    if found and not overwrite:
        what = "already exists" if whole else f"holds {len(found)} parts of another run, such as {found[0]}"
        raise FileExistsError(f"{path} {what}: choose another path, remove it, or use overwrite=True")
    stale = [name for name in found if name not in own] if not whole else []
    if stale and _files.on_disk(path) is None:
        raise FileExistsError(f"{path} holds {len(stale)} parts of a run with another number of workers, such as {stale[0]}, "
                              "which this run would not overwrite: remove them first")
    return stale


def _layout(peers: _peers.Peers, found: NDArray[Any], path: str) -> Tuple[Any, Tuple[int, ...], List[int]]:
    """A collective call. Returns the element type, the shape of a row, and the row count of each rank. Raises ValueError if types or shapes
    differ between ranks; those of ranks without rows are ignored."""
    told = peers.allgather((len(found), found.dtype, found.shape[1:]))
    with_rows = [(rank, dtype, shape) for rank, (rows, dtype, shape) in enumerate(told) if rows]
    first, dtype, shape = with_rows[0] if with_rows else (0, told[0][1], told[0][2])
    for rank, one, row_shape in with_rows:
        if (one, row_shape) != (dtype, shape):
            raise ValueError(f"{path}: predictions differ: {dtype} with rows of the shape {shape} on rank {first}, {one} with "
                             f"rows of the shape {row_shape} on rank {rank}")
    return dtype, shape, [rows for rows, _, _ in told]


def _predicted(predict: Callable[[], Any], path: str, form: str) -> NDArray[Any]:
    found = np.asarray(predict())
    if found.ndim == 0 or found.dtype.kind not in "fiub":
        raise ValueError(f"{path}: a prediction of {found.dtype} with {found.ndim} dimensions, expected an array of numbers with "
                         "a row for each row of the matrix")
    if found.ndim > 2 and form != "npy":
        raise ValueError(f"{path}: predictions of {found.ndim} dimensions cannot be written as {form}, expected 1 or 2: use .npy")
    return found


def write(path: Path, predict: Callable[[], Any], *, whole: bool, overwrite: bool, form: Optional[str], storage_options: Options) -> None:
    """Writes the result of `predict` on each rank, as documented for `warren.xgboost.predict_to`."""
    peers = _peers.current()
    # Each step may fail on some ranks, so all ranks agree on its outcome before the next step.
    step = Transfer(peers, PIECE_BYTES)
    place = _files.in_full(os.fspath(path)).rstrip("/") or "/"
    suffix = step.attempt(format_of, place, form)
    step.agree()
    said = peers.allgather((place, suffix, whole, overwrite))
    for rank, one in enumerate(said):
        if one != said[0]:
            raise ValueError(f"predict_to: rank 0 and rank {rank} differ in path, format, whole, overwrite: {said[0]} and {one}")
    own = [_files.part_name(rank, peers.world, suffix) for rank in range(peers.world)]
    # A path on disk is checked by all ranks, since each host may have its own disks; a store is checked by rank 0 alone.
    stale = step.attempt(_check_place, place, whole, overwrite, own, storage_options) if _files.on_disk(place) is not None or peers.rank == 0 else []
    step.agree()
    found = step.attempt(_predicted, predict, place, suffix)
    step.agree()
    dtype, row_shape, counts = _layout(peers, found, place)
    found = found.astype(dtype, copy=False) if len(found) else np.empty((0, *row_shape), dtype)

    with contextlib.ExitStack() as output:
        writer: Any = None
        if not whole or peers.rank == 0:
            target = place if whole else f"{place}/{own[peers.rank]}"
            file = step.attempt(_opened, output, target, storage_options)
            writer = step.attempt(_FORMATS[suffix], file, dtype, row_shape, sum(counts) if whole else len(found))
            if writer is not None:
                output.callback(writer.abandon)
        step.agree()
        if whole:
            _write_whole(step, found, writer)
        else:
            rows = max(1, PIECE_BYTES // max(1, found[:1].nbytes))
            for begin in range(0, len(found), rows):
                step.attempt(writer.add, found[begin:begin + rows])
        if writer is not None:
            step.attempt(writer.finish)
            step.attempt(_flushed, file)
        step.agree()  # if any rank has an error, this raises it, and no file becomes visible
        step.attempt(output.close)
    step.agree()
    for name in stale:
        with contextlib.suppress(FileNotFoundError):  # another rank on this host does the same
            os.unlink(os.path.join(_files.on_disk(place) or "", name))


def _opened(output: contextlib.ExitStack, target: str, storage_options: Any) -> Any:
    path = _files.on_disk(target)
    if path is not None:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    return output.enter_context(_files.open_output(target, storage_options=storage_options))


def _flushed(file: Any) -> None:
    """Flushes the file to disk, the last chance to detect a full disk: after this step, the files of other ranks may already have their
    names."""
    file.flush()
    os.fsync(file.fileno())


def _write_whole(step: Transfer, found: NDArray[Any], writer: Any) -> None:
    """A collective call. Rank 0 writes the rows of all ranks, in rank order."""
    specs: List[Any] = []

    def take(rows: int, piece: Any) -> None:
        builder = TableBuilder(specs[0], rows, [0])
        builder.add(rows, piece)
        writer.add(builder.finish())

    step.gather(found, 0, lambda spec, *_: specs.append(spec), take)

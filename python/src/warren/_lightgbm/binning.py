"""Finds the bins of features from a sample of the rows of all workers.

By itself, LightGBM divides the features among the workers, and each one finds the bins of its features from its own rows. If the rows are in
an order, such as that of time, the bins of a feature then cover only the values that one worker has, and the model is much worse than that of
one process. Here, the workers exchange the rows that one process would sample, so that they find its bins.

How: while a block of `of_all_rows` is active, the functions with which lightgbm.Dataset passes a matrix to the library are replaced. They call
LGBM_DatasetCreateFromSampledColumn with the sample of all workers, in which LightGBM finds the bins, and then push this worker's rows."""
import contextlib
import ctypes
import inspect
import re
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import lightgbm
import numpy as np
import scipy.sparse
from lightgbm.basic import _LIB, _c_str, _ConfigAliases, _safe_call
from numpy.typing import NDArray

from warren._frameworks.replacing import replaced
from warren._system import callers as _callers
from warren.data import _peers
from warren.data._peers import Peers

#: The most values in a sample; a larger one is thinned out. A value takes 12 bytes, three times while the columns are made.
MOST_VALUES = 1 << 24
#: LightGBM takes smaller values for 0.
_ZERO = 1e-35
#: The number of rows that are converted at a time.
_BLOCK = 1 << 16
#: The first version whose Datasets can be told the number of rows of all workers.
_FIRST = (4, 0)
#: LightGBM's numbers of types.
_FLOAT32, _FLOAT64, _INT32, _INT64 = 0, 1, 2, 3
#: The parameters that may differ between workers.
_OF_WORKER = ("num_threads", "verbosity", "local_listen_port", "machines", "machine_list_filename", "gpu_device_id", "gpu_platform_id", "output_model",
              "seed", "bagging_seed", "feature_fraction_seed", "extra_seed", "drop_seed", "objective_seed")


class _Dense:
    """Rows that can be read in blocks: an array, a lightgbm.Sequence, or a table of Arrow or narwhals."""

    def __init__(self, count: int, columns: int, block: Callable[[int, int], NDArray[Any]], rows: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        """`block` returns the rows from one position to another, and `rows` those at positions in rising order, as matrices of numbers."""
        self.shape = count, columns
        self._block, self._rows = block, rows

    def values(self, positions: NDArray[Any]) -> int:
        """Returns the greatest number of values that these rows may have in a sample."""
        return len(positions) * self.shape[1]

    def sample(self, positions: NDArray[Any]) -> "scipy.sparse.csr_matrix":
        """Returns these rows, with the values that LightGBM does not take for 0."""
        found = np.asarray(self._rows(positions), np.float64).reshape(len(positions), self.shape[1])
        return scipy.sparse.csr_matrix(np.where(np.abs(found) <= _ZERO, 0, found))

    def push(self, handle: Any, begin: int) -> None:
        """Pushes all rows to a Dataset, from position `begin` on."""
        for start in range(0, self.shape[0], _BLOCK):
            block = _floats(np.asarray(self._block(start, min(start + _BLOCK, self.shape[0]))))
            _safe_call(_LIB.LGBM_DatasetPushRows(
                handle, block.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(_type_of(block)), ctypes.c_int32(block.shape[0]),
                ctypes.c_int32(block.shape[1]), ctypes.c_int32(begin + start)))


class _Sparse:
    """Rows of a sparse matrix."""

    def __init__(self, rows: "scipy.sparse.csr_matrix") -> None:
        self.shape = rows.shape
        self._rows = rows

    def values(self, positions: NDArray[Any]) -> int:
        """See _Dense."""
        return int(np.diff(self._rows.indptr)[positions].sum())

    def sample(self, positions: NDArray[Any]) -> "scipy.sparse.csr_matrix":
        """See _Dense."""
        found = self._rows[positions].astype(np.float64)
        found.data[np.abs(found.data) <= _ZERO] = 0
        found.eliminate_zeros()
        return found

    def push(self, handle: Any, begin: int) -> None:
        """See _Dense."""
        rows = self._rows
        starts = np.ascontiguousarray(rows.indptr) if rows.indptr.dtype in (np.int32, np.int64) else rows.indptr.astype(np.int64)
        indices, values = np.ascontiguousarray(rows.indices, np.int32), _floats(rows.data)
        _safe_call(_LIB.LGBM_DatasetPushRowsByCSR(
            handle, starts.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(_INT32 if starts.dtype == np.int32 else _INT64),
            indices.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(_type_of(values)),
            ctypes.c_int64(len(starts)), ctypes.c_int64(len(values)), ctypes.c_int64(rows.shape[1]), ctypes.c_int64(begin)))


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    """Returns a contiguous array of a type that LightGBM reads; it converts all others to float32, too."""
    return np.ascontiguousarray(values, None if values.dtype in (np.float32, np.float64) else np.float32)


def _type_of(values: NDArray[Any]) -> int:
    return _FLOAT32 if values.dtype == np.float32 else _FLOAT64


def _of_array(array: NDArray[Any]) -> _Dense:
    if array.ndim != 2:
        raise ValueError("Input numpy.ndarray must be 2 dimensional")
    return _Dense(array.shape[0], array.shape[1], lambda begin, end: array[begin:end], lambda positions: _floats(array[positions]))


def _of_sequence(rows: Any) -> _Dense:
    return _Dense(len(rows), len(rows[0]) if len(rows) else 0, lambda begin, end: np.asarray(rows[begin:end]),
                  lambda positions: np.array([rows[int(place)] for place in positions]))


def _of_table(table: Any) -> _Dense:
    """Describes a table of Arrow or of narwhals, whose missing values become NaN."""
    def matrix(part: Any) -> NDArray[Any]:
        columns = [part[name] for name in part.columns] if hasattr(part, "implementation") else part.columns
        return np.column_stack([_column(one) for one in columns])

    cut = getattr(table, "slice", lambda begin, count: table[begin:begin + count])
    take = getattr(table, "take", lambda positions: table[positions.tolist()])
    rows, columns = table.shape
    return _Dense(rows, columns, lambda begin, end: matrix(cut(begin, end - begin)), lambda positions: matrix(take(positions)))


def _column(values: Any) -> NDArray[Any]:
    return np.asarray(values.to_numpy()).astype(np.float64)


#: The functions of lightgbm.Dataset that pass a matrix to the library, with their argument, and a description of its rows.
_PASSING: Dict[str, Tuple[str, Callable[[Any], List[Any]]]] = {
    "np2d": ("mat", lambda array: [_of_array(array)]),
    "list_np2d": ("mats", lambda arrays: list(map(_of_array, arrays))),
    "csr": ("csr", lambda rows: [_Sparse(rows)]),
    "csc": ("csc", lambda rows: [_Sparse(rows.tocsr())]),
    "seqs": ("seqs", lambda sequences: list(map(_of_sequence, sequences))),
    "pyarrow_table": ("table", lambda table: [_of_table(table)]),
    "narwhals": ("data", lambda table: [_of_table(table)]),
}


def _is_new_enough() -> bool:
    return tuple(int(part) for part in lightgbm.__version__.split(".")[:2]) >= _FIRST


@contextlib.contextmanager
def of_all_rows() -> Iterator[None]:
    """Within the block, the Datasets that this thread constructs without a reference have the bins of all workers' rows, in the order of the
    ranks. Constructing one is a collective call, as it is in LightGBM itself. It raises ValueError on all workers if one of them has no rows,
    other columns, other categories or other parameters than rank 0."""
    known = {name: passing for name, passing in _PASSING.items() if hasattr(lightgbm.Dataset, f"_Dataset__init_from_{name}")}
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced("_lazy_init", _warning_of_files, lightgbm.Dataset))
        if _is_new_enough() and {"np2d", "csr"} <= set(known):
            for name, (argument, described) in known.items():
                stack.enter_context(replaced(f"_Dataset__init_from_{name}", _passing(argument, described), lightgbm.Dataset))
        else:
            warnings.warn(f"LightGBM {lightgbm.__version__} finds the bins of each feature from the rows of one worker: if the rows are in an order, "
                          "permute them, or use LightGBM 4", stacklevel=_callers.stacklevel())
        yield


def _warning_of_files(inner: Callable[..., Any]) -> Callable[..., Any]:
    def lazy_init(self: Any, *more: Any, **named: Any) -> Any:
        given = inspect.signature(inner).bind(self, *more, **named).arguments
        if isinstance(given.get("data"), (str, Path)) and given.get("reference") is None:
            warnings.warn(f"lightgbm.Dataset({str(given['data'])!r}) finds the bins of each feature from the rows of one worker: if the rows are in an "
                          "order, the model is worse than that of one process; read them with warren.lightgbm.load_dataset",
                          stacklevel=_callers.stacklevel())
        return inner(self, *more, **named)
    return lazy_init


def _passing(argument: str, described: Callable[[Any], List[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(inner: Callable[..., Any]) -> Callable[..., Any]:
        def init_from(self: Any, *more: Any, **named: Any) -> Any:
            given = inspect.signature(inner).bind(self, *more, **named).arguments
            params = given.get("params_str")
            text = lightgbm.basic._param_dict_to_str(self.get_params()) if params is None else params  # pylint: disable=protected-access
            # LightGBM keeps the original values for linear trees, and cannot when rows are pushed in blocks.
            if given.get("ref_dataset") is not None or re.search(r"\blinear_trees?=(1|true|\+)", text, re.IGNORECASE):
                return inner(self, *more, **named)
            try:
                _construct(self, described(given[argument]), text, _peers.current())
            except RuntimeError as error:
                raise lightgbm.basic.LightGBMError(str(error)) from error
            return self
        return init_from
    return make


def _construct(dataset: "lightgbm.Dataset", pieces: List[Any], params: str, peers: Peers) -> None:
    """Constructs a Dataset of these rows, with the bins of all workers' rows. A collective call."""
    counts, columns = _agreed(dataset, pieces, params, peers)
    ends = np.cumsum([0, *counts])
    positions = sampled_positions(sum(counts), params)
    own = _within(positions, *ends[peers.rank:peers.rank + 2])
    sizes = peers.allgather(sum(piece.values(here) for piece, here in _by_piece(pieces, own)))
    positions = positions[::-(-sum(sizes) // MOST_VALUES) or 1]
    own = _within(positions, *ends[peers.rank:peers.rank + 2])
    sample = _gathered(_sample(pieces, own, columns), [len(_within(positions, *ends[rank:rank + 2])) for rank in range(peers.world)], peers)
    handle = ctypes.c_void_p()
    places = sample.indptr
    values = (ctypes.POINTER(ctypes.c_double) * columns)()
    indices = (ctypes.POINTER(ctypes.c_int32) * columns)()
    for column in range(columns):
        values[column] = sample.data[places[column]:].ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        indices[column] = sample.indices[places[column]:].ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
    lengths = np.diff(places).astype(np.int32)
    _safe_call(_LIB.LGBM_DatasetCreateFromSampledColumn(
        ctypes.cast(values, ctypes.POINTER(ctypes.POINTER(ctypes.c_double))), ctypes.cast(indices, ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ctypes.c_int32(columns), lengths.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), ctypes.c_int32(sample.shape[0]),
        ctypes.c_int32(counts[peers.rank]), ctypes.c_int64(sum(counts)), _c_str(params), ctypes.byref(handle)))
    dataset._handle = handle  # pylint: disable=protected-access
    start = 0
    for piece in pieces:
        piece.push(handle, start)
        start += piece.shape[0]


def _agreed(dataset: "lightgbm.Dataset", pieces: List[Any], params: str, peers: Peers) -> Tuple[List[int], int]:
    """Returns the numbers of rows of all ranks, and the number of columns. Raises ValueError as `of_all_rows` says."""
    of_worker = _ConfigAliases.get(*_OF_WORKER)
    given = dict(part.partition("=")[::2] for part in params.split(" "))
    columns = max(piece.shape[1] for piece in pieces)
    is_sparse = all(isinstance(piece, _Sparse) for piece in pieces)
    names = getattr(dataset.data, "columns", None) if hasattr(dataset.data, "iloc") else dataset.feature_name
    count = sum(piece.shape[0] for piece in pieces)
    told = peers.allgather((count, columns, is_sparse))
    for rank, (rows, theirs, sparse) in enumerate(told):
        if rows == 0:
            raise ValueError(f"rank {rank} of {peers.world} has no rows, and LightGBM cannot train without any: use fewer workers")
        if theirs != told[0][1] and not (sparse and told[0][2]):
            raise ValueError(f"rank 0 has rows of {told[0][1]} columns, and rank {rank} of {theirs}: all workers need the same columns")
    _peers.same_on_all(peers, {
        **({} if is_sparse and isinstance(names, str) else {"columns": names if isinstance(names, str) else list(names)}),
        "categories": getattr(dataset, "pandas_categorical", None) or [],
        **{name: _Text(value) for name, value in given.items() if name not in of_worker}})
    return [rows for rows, _, _ in told], max(theirs for _, theirs, _ in told)


class _Text(str):
    """A parameter's value, shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def sampled_positions(count: int, params: str) -> NDArray[np.int64]:
    """Returns the positions of the rows that one process would sample among `count` rows, in rising order."""
    if count > np.iinfo(np.int32).max:
        raise ValueError(f"LightGBM finds bins of at most {np.iinfo(np.int32).max} rows, and the workers have {count}")
    size = ctypes.c_int()
    _safe_call(_LIB.LGBM_GetSampleCount(ctypes.c_int32(count), _c_str(params), ctypes.byref(size)))
    found, number = np.empty(size.value, np.int32), ctypes.c_int32()
    _safe_call(_LIB.LGBM_SampleIndices(ctypes.c_int32(count), _c_str(params), found.ctypes.data_as(ctypes.c_void_p), ctypes.byref(number)))
    return found[:number.value].astype(np.int64)


def _within(positions: NDArray[np.int64], begin: int, end: int) -> NDArray[np.int64]:
    """The positions from `begin` to `end`, counted from `begin`."""
    return positions[int(np.searchsorted(positions, begin)):int(np.searchsorted(positions, end))] - begin


def _by_piece(pieces: List[Any], positions: NDArray[np.int64]) -> Iterator[Tuple[Any, NDArray[np.int64]]]:
    """Yields each piece with its positions among these, counted from its first row."""
    begin = 0
    for piece in pieces:
        yield piece, _within(positions, begin, begin + piece.shape[0])
        begin += piece.shape[0]


def _sample(pieces: List[Any], positions: NDArray[np.int64], columns: int) -> "scipy.sparse.csr_matrix":
    """Returns these rows of all pieces, in order."""
    found = [scipy.sparse.csr_matrix((0, columns))]
    for piece, here in _by_piece(pieces, positions):
        if len(here):
            rows = piece.sample(here)
            rows.resize(rows.shape[0], columns)
            found.append(rows)
    return scipy.sparse.vstack(found, format="csr")


def _gathered(own: "scipy.sparse.csr_matrix", counts: Sequence[int], peers: Peers) -> "scipy.sparse.csc_matrix":
    """Returns the samples of all ranks, which have these numbers of rows, one after the other, by columns. A collective call."""
    sizes = peers.allgather(int(own.nnz))
    parts = []
    for root, (rows, size) in enumerate(zip(counts, sizes)):
        arrays = [np.ascontiguousarray(one, kind) for one, kind in ((own.indptr, np.int32), (own.indices, np.int32), (own.data, np.float64))
                  ] if root == peers.rank else [np.empty(rows + 1, np.int32), np.empty(size, np.int32), np.empty(size, np.float64)]
        for one in arrays:
            peers.broadcast_bytes(one.view(np.uint8), root)
        parts.append(scipy.sparse.csr_matrix((arrays[2], arrays[1], arrays[0]), shape=(rows, own.shape[1])))
    whole = scipy.sparse.vstack(parts, format="csr")
    parts.clear()
    return whole.tocsc()

"""Data sets of LibSVM, libfm and CSV text as arrays: Warren's reader (libwarren_data) for Python."""
import ctypes
import operator
import os
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np
from numpy.typing import NDArray

from warren import _native

_REDUCE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t)


class _Arrays(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_uint64), ("entries", ctypes.c_uint64), ("columns", ctypes.c_uint64),
                ("offsets", ctypes.c_void_p), ("indices", ctypes.c_void_p), ("values", ctypes.c_void_p),
                ("labels", ctypes.c_void_p), ("labels_of_a_row", ctypes.c_uint64), ("weights", ctypes.c_void_p),
                ("group_sizes", ctypes.c_void_p), ("groups", ctypes.c_uint64), ("bad_rows", ctypes.c_uint64),
                ("first_bad_row", ctypes.c_char_p)]


class Rows(NamedTuple):
    """A share of a data set in CSR form. Entry e of row r is offsets[r] <= e < offsets[r + 1]: values[e] in column
    indices[e], counted from 0; what is not there is missing."""

    offsets: NDArray[Any]  #: int64, rows + 1
    indices: NDArray[Any]  #: int32; int64 where there are more than 2^31 columns
    values: NDArray[Any]  #: float32
    columns: int  #: of the whole data set
    labels: NDArray[Any]  #: float32, (rows) or (rows, labels)
    weights: Optional[NDArray[Any]]  #: float32, one a row, or a query; None: all weigh 1
    group_sizes: Optional[NDArray[Any]]  #: uint32, rows of each query; None: there are no queries
    bad_rows: int  #: left out with bad_rows=skip
    first_bad_row: Optional[str]  #: where, and what was wrong with it


class _Owner:
    """Keeps the library's memory as long as an array refers to it."""

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._free = library.warren_data_free
        self._handle = handle

    def __del__(self) -> None:
        self._free(self._handle)

    def array(self, address: Optional[int], count: int, kind: Any, dtype: str) -> NDArray[Any]:
        """Without a copy. `kind`: a simple type of ctypes."""
        if not address or count == 0:
            return np.empty(0, dtype)
        memory = (kind * count).from_address(address)
        memory.warren_owner = self
        return np.frombuffer(memory, dtype)


def read(uri: Union[str, "os.PathLike[str]"], part: int = 0, parts: int = 1, *, threads: int = 0,
         allreduce_max: Optional[Callable[[NDArray[Any]], NDArray[Any]]] = None) -> Rows:
    """Reads part `part` of `parts`, or the one that `uri` names.

    `allreduce_max` makes the workers agree on the columns: it takes an array of uint64 and returns it with the greatest of
    all workers for each element. Raises ValueError with file, line and column of what is wrong.
    """
    library = _native.library("libwarren_data.so")
    library.warren_data_read.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, _REDUCE, ctypes.c_void_p,
                                         ctypes.POINTER(ctypes.c_void_p)]
    library.warren_data_last_error.restype = ctypes.c_char_p
    library.warren_data_free.argtypes = [ctypes.c_void_p]
    library.warren_data_free.restype = None
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

    for name, number in (("part", part), ("parts", parts), ("threads", threads)):
        if not -2**31 <= operator.index(number) < 2**31:
            raise ValueError(f"{name} is {number}, which is no number of parts or threads")
    path = os.fsencode(uri)
    if b"\0" in path:
        raise ValueError(f"{uri!r}: no path has a null character")
    handle = ctypes.c_void_p()
    code = library.warren_data_read(path, part, parts, threads, _REDUCE(0) if allreduce_max is None
                                    else _REDUCE(reduce), None, ctypes.byref(handle))
    if failure:
        raise failure[0]
    if code != 0:
        raise ValueError(library.warren_data_last_error().decode(errors="replace"))
    owner = _Owner(library, handle)
    arrays = _Arrays()
    if library.warren_data_arrays(handle, ctypes.byref(arrays)) != 0:
        raise ValueError(f"{uri}: {library.warren_data_last_error().decode(errors='replace')}")
    labels = owner.array(arrays.labels, arrays.rows * arrays.labels_of_a_row, ctypes.c_float, "float32")
    if arrays.labels_of_a_row != 1:
        labels = labels.reshape(arrays.rows, arrays.labels_of_a_row)
    groups = owner.array(arrays.group_sizes, arrays.groups, ctypes.c_uint32, "uint32") if arrays.group_sizes else None
    return Rows(
        owner.array(arrays.offsets, arrays.rows + 1, ctypes.c_uint64, "int64"),
        # What SciPy takes without a copy, and where that has too few, what has enough.
        owner.array(arrays.indices, arrays.entries, ctypes.c_uint32, "int32") if arrays.columns <= 2**31
        else owner.array(arrays.indices, arrays.entries, ctypes.c_uint32, "uint32").astype("int64"),
        owner.array(arrays.values, arrays.entries, ctypes.c_float, "float32"), int(arrays.columns), labels,
        owner.array(arrays.weights, arrays.rows if groups is None else arrays.groups, ctypes.c_float, "float32")
        if arrays.weights else None, groups, int(arrays.bad_rows),
        arrays.first_bad_row.decode(errors="replace") if arrays.first_bad_row else None)

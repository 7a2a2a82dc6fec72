"""Columns of NumPy arrays and SciPy CSR matrices."""
import dataclasses
from typing import Any, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from warren.data._exchange.columns import Buffer, Builder, Column, Spec, must_equal


@dataclasses.dataclass(frozen=True)
class ArraySpec(Spec):
    """The spec of an array's rows."""

    dtype: Any
    row_shape: Tuple[int, ...]

    @property
    def name(self) -> str:
        return f"an array of {self.dtype}"

    def merged(self, other: "ArraySpec") -> "ArraySpec":
        must_equal(self.where, self.dtype, other.dtype)
        must_equal(self.where, self.row_shape, other.row_shape, "rows of the shape ")
        return self

    def builder(self, rows: int, entries: int) -> "ArrayBuilder":
        return ArrayBuilder(np.empty((rows, *self.row_shape), self.dtype))


class ArrayBuilder(Builder):
    """Fills an array from its start."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self._filled = array, 0

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        into = self._array[self._filled:self._filled + rows]
        if into.size and into.dtype.itemsize:
            into[...] = np.frombuffer(buffers[0], into.dtype).reshape(into.shape)
        self._filled += rows

    def finish(self) -> Any:
        return self._array


class ArrayColumn(Column):
    """An array of one or more dimensions."""

    def __init__(self, array: NDArray[Any], where: str) -> None:
        super().__init__(ArraySpec(where, array.dtype, array.shape[1:]), len(array))
        self._array = array
        self._row_bytes = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize

    def nbytes(self, begin: int, end: int) -> int:
        return (end - begin) * self._row_bytes

    def encode(self, begin: int, end: int) -> List[Buffer]:
        return [raw(self._array[begin:end])]


def raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Returns the array's bytes; a copy if it is not contiguous."""
    contiguous = np.ascontiguousarray(array)
    return contiguous.reshape(-1).view(np.uint8) if contiguous.size and contiguous.dtype.itemsize else np.empty(0, np.uint8)


@dataclasses.dataclass(frozen=True)
class CsrSpec(Spec):
    """The spec of a CSR matrix's rows."""

    kind: str
    dtype: Any
    index_dtype: Any
    columns: int
    buffers = 3
    name = "a CSR matrix"

    def merged(self, other: "CsrSpec") -> "CsrSpec":
        """Returns the spec for the rows of both specs, with the wider of the index types. Raises Differs."""
        must_equal(self.where, self.kind, other.kind)
        must_equal(self.where, self.dtype, other.dtype)
        must_equal(self.where, self.columns, other.columns, "columns: ")
        wider = max(self.index_dtype, other.index_dtype, key=lambda dtype: int(dtype.itemsize))
        return dataclasses.replace(self, index_dtype=wider)

    def builder(self, rows: int, entries: int) -> "CsrBuilder":
        return CsrBuilder(self, rows, entries)


class CsrBuilder(Builder):
    """Fills a CSR matrix from its first row."""

    def __init__(self, spec: CsrSpec, rows: int, entries: int) -> None:
        self._spec = spec
        index_dtype = np.dtype(np.int64) if entries > np.iinfo(np.int32).max else spec.index_dtype
        self._offsets = np.zeros(rows + 1, index_dtype)
        self._indices, self._values = np.empty(entries, index_dtype), np.empty(entries, spec.dtype)
        self._rows = 0

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        begin = int(self._offsets[self._rows])
        ends, indices = (np.frombuffer(buffer, self._spec.index_dtype) for buffer in buffers[:2])
        self._offsets[self._rows + 1:self._rows + rows + 1] = ends.astype(self._offsets.dtype, copy=False) + begin
        self._indices[begin:begin + len(indices)] = indices
        self._values[begin:begin + len(indices)] = np.frombuffer(buffers[2], self._spec.dtype)
        self._rows += rows

    def finish(self) -> Any:
        import scipy.sparse  # pylint: disable=import-outside-toplevel
        matrix = getattr(scipy.sparse, self._spec.kind)((len(self._offsets) - 1, self._spec.columns), dtype=self._spec.dtype)
        # SciPy's constructor would convert 64-bit indices that fit to 32 bits, perhaps on some ranks only.
        matrix.data, matrix.indices, matrix.indptr = self._values, self._indices, self._offsets
        return matrix


class CsrColumn(Column):
    """A CSR matrix of the class `kind`."""

    def __init__(self, matrix: Any, where: str, kind: str) -> None:
        super().__init__(CsrSpec(where, kind, matrix.dtype, matrix.indptr.dtype, matrix.shape[1]), int(matrix.shape[0]))
        self._matrix = matrix

    def entries(self, begin: int, end: int) -> int:
        return int(self._matrix.indptr[end]) - int(self._matrix.indptr[begin])

    def nbytes(self, begin: int, end: int) -> int:
        index = int(self.spec.index_dtype.itemsize)
        return (end - begin) * index + self.entries(begin, end) * (index + int(self.spec.dtype.itemsize))

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """Returns the row ends, indices and values."""
        matrix, index_dtype = self._matrix, self.spec.index_dtype
        first, last = matrix.indptr[begin], matrix.indptr[end]
        ends = (matrix.indptr[begin + 1:end + 1] - first).astype(index_dtype, copy=False)
        return [raw(ends), raw(matrix.indices[first:last].astype(index_dtype, copy=False)), raw(matrix.data[first:last])]


def of_numpy(array: NDArray[Any], where: str) -> ArrayColumn:
    """Returns the column of an array. Raises ValueError if the array cannot be sent."""
    if isinstance(array, (np.ma.MaskedArray, np.matrix)):
        raise ValueError(f"{where} is a {type(array).__name__}, expected a plain array: use .filled() or numpy.asarray()")
    if array.ndim == 0:
        raise ValueError(f"{where} is a single value, which has no rows: use numpy.array([value])")
    if array.dtype.hasobject:
        raise ValueError(f"{where} is an array of Python objects ({array.dtype}), expected numbers: use .astype()")
    return ArrayColumn(np.asarray(array), where)


def of_scipy(matrix: Any, where: str, kind: str) -> CsrColumn:
    """Returns the column of a matrix. Raises ValueError unless the matrix is CSR."""
    if getattr(matrix, "format", "") != "csr":
        raise ValueError(f"{where} is a {type(matrix).__name__} of SciPy's, expected CSR: use .tocsr()")
    return CsrColumn(matrix, where, kind)

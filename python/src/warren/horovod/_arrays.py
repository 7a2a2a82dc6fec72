"""Horovod's operations on NumPy arrays, for frameworks whose tensors can be viewed as NumPy arrays. Results are always new arrays."""
from typing import Any, List, Sequence, Tuple

import numpy as np

from warren.collectives import Array
from warren.horovod._job import ProcessSet
from warren.horovod._named import Memory, Pending, ReduceOp, is_integer, memory_of, shares_of


def _scaled(array: Array, factor: float) -> Array:
    """Scales an array. Computes integers in float64, truncating the result, and 16-bit floats in float32."""
    if factor == 1.0:
        return array
    wide: Any = np.float64 if is_integer(array.dtype.name) else np.float32 if array.itemsize == 2 else array.dtype
    scaled: Array = (array.astype(wide) * np.asarray(factor, wide)).astype(array.dtype)
    return scaled


def _finished(array: Array, op: int, factor: float, size: int) -> Array:
    """Completes an average of integers, which the engine does not compute, and scales the result."""
    if op == ReduceOp.Average and is_integer(array.dtype.name):
        if factor == 1.0:
            return _divided(array, size)
        factor /= size
    return _scaled(array, factor)


def _divided(array: Array, size: int) -> Array:
    """Divides integers, rounding towards zero."""
    wide = array if size <= np.iinfo(array.dtype).max else array.astype(np.int64)
    quotient, rest = np.divmod(wide, np.asarray(size, wide.dtype))
    divided: Array = (quotient + ((quotient < 0) & (rest != 0)).astype(wide.dtype)).astype(array.dtype, copy=False)
    return divided


def allreduce(arrays: Sequence[Array], name: str, op: int, before: float, after: float,
              process_set: ProcessSet) -> "Pending[List[Array]]":
    """Starts an allreduce of the arrays, which are reduced together."""
    named = process_set.named(name)
    sources = [_scaled(array, before) for array in arrays]
    targets = [np.empty_like(source, order="C") for source in sources]
    handles = named.allreduce(name, [memory_of(source) for source in sources], [memory_of(target) for target in targets], op)
    return Pending(handles, lambda _: [_finished(target, op, after, named.size) for target in targets])


def reducescatter(arrays: Sequence[Array], name: str, op: int, before: float, after: float,
                  process_set: ProcessSet) -> "Pending[List[Array]]":
    named = process_set.named(name)
    sources = [_scaled(_with_rows(array, name), before) for array in arrays]
    targets = [np.empty((shares_of(len(source), named.size)[named.rank], *source.shape[1:]), source.dtype) for source in sources]
    handles = named.reduce_scatter(name, [memory_of(source) for source in sources], [memory_of(target) for target in targets], op)
    return Pending(handles, lambda _: [_finished(target, op, after, named.size) for target in targets])


def allgather(arrays: Sequence[Array], name: str, process_set: ProcessSet) -> "Pending[List[Array]]":
    def allocate(shape: Tuple[int, ...], index: int) -> Memory:
        return memory_of(np.empty(shape, arrays[index].dtype))

    gathering = process_set.named(name).allgather(name, [memory_of(_with_rows(array, name)) for array in arrays], allocate)
    return Pending([gathering], lambda results: list(results[0]))


def broadcast(array: Array, name: str, root_rank: int, process_set: ProcessSet) -> "Pending[Array]":
    named, root = process_set.named(name), process_set.place_of(root_rank, name)
    data = array.copy() if named.rank == root else np.empty_like(array, order="C")
    return Pending([named.broadcast(name, memory_of(data), root)], lambda _: data)


def alltoall(array: Array, splits: Any, name: str, process_set: ProcessSet) -> "Pending[Tuple[Array, Array]]":
    """Sends splits[r] rows to rank r. Without `splits`, all parts are equal."""
    named = process_set.named(name)

    def allocate(shape: Tuple[int, ...], _: int) -> Memory:
        return memory_of(np.empty(shape, array.dtype))

    exchange = named.all_to_all(name, memory_of(_with_rows(array, name)), splits_of(array.shape[0], splits, named.size), allocate)
    return Pending([exchange], lambda results: (results[0][0][0], results[0][0][1].astype(np.int32)))


def splits_of(rows: int, splits: Any, size: int) -> List[int]:
    """Returns the number of rows for each rank. Raises ValueError if the splits are invalid."""
    if splits is None:
        if rows % size:
            raise ValueError(f"alltoall: {rows} rows cannot be divided equally among {size} ranks; give splits")
        return [rows // size] * size
    kind = getattr(splits, "dtype", None)
    if kind is not None and "int" not in str(kind):
        raise ValueError(f"alltoall: splits must be integers, not {kind}")
    counts = [int(count) for count in splits]
    if len(counts) != size or min(counts) < 0:
        raise ValueError(f"alltoall: {size} splits are needed, one for each rank, not {counts}")
    if sum(counts) > rows:
        raise ValueError(f"alltoall: the splits {counts} are of {sum(counts)} rows, but there are {rows}")
    return counts


def _with_rows(array: Array, what: str) -> Array:
    if array.ndim == 0:
        raise ValueError(f"{what}: this tensor is a single number and has no rows")
    return array

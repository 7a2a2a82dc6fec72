"""Prepares the C call behind each method of warren.collectives.Communicator, which runs the call, and of Coordinator, which submits it by
name."""
import ctypes
import operator
from typing import Any, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike

from warren._engine import c_api as _c
from warren._engine.calls import (Array, Call, Combine, Custom, DeviceCall, Op, c_int_of, c_sizes, check_result, contiguous,
                                  device_arrays, on_device, result_array, type_code)

T = TypeVar("T")


class CollectiveCalls:
    """Prepares the calls of this rank in one group of ranks: checks their arguments and allocates their results. Each method corresponds to
    the method of Communicator with the same name."""

    def __init__(self, comm: Optional[int], rank: int, size: int) -> None:
        """`comm` is a communicator of warren/c_api.h. It may be None if all calls are submitted to a coordinator."""
        self.comm, self.rank, self.size = comm, rank, size

    def end(self) -> None:
        """To be called when the communicator is freed; later calls fail."""
        self.comm, self.size = None, 0

    def allreduce(self, data: ArrayLike, op: Union[int, Combine], out: Optional[Array], stream: Any = None) -> Call[Array]:
        if on_device(data, stream, "allreduce"):
            arrays, kind, on = self._device_pair("allreduce", op, data, out, stream)
            if arrays[0].size != arrays[1].size:
                raise ValueError(f"allreduce of {arrays[0].size} elements into {arrays[1].size}")
            return self._device_call("WarrenDeviceAllreduce", arrays, arrays[0].size, (kind, op, on), out)
        array = contiguous(data, "allreduce")
        result = result_array(out, array.shape, array.dtype, "allreduce")
        place = (self.comm, array.ctypes.data, result.ctypes.data, array.size)
        return self._reduction("WarrenAllreduce", "allreduce", op, place, result, array)

    def reduce(self, data: ArrayLike, root: int, op: Union[int, Combine]) -> Call[Optional[Array]]:
        root = c_int_of(root, "root")
        array = contiguous(data, "reduce")
        result = np.empty_like(array) if self.rank == root else None
        place = (self.comm, array.ctypes.data, None if result is None else result.ctypes.data, array.size)
        return self._reduction("WarrenReduce", "reduce", op, place, result, array, root)

    def reduce_scatter(self, data: ArrayLike, op: Union[int, Combine], counts: Optional[Sequence[int]],
                        out: Optional[Array] = None, stream: Any = None) -> Call[Array]:
        if on_device(data, stream, "reduce_scatter"):
            arrays, kind, on = self._device_pair("reduce_scatter", op, data, out, stream)
            if counts is not None or arrays[0].size != arrays[1].size * self.size:
                raise ValueError("reduce_scatter on a GPU needs equal parts: `data` must have the size of `out` times the number of ranks")
            return self._device_call("WarrenDeviceReduceScatter", arrays, arrays[1].size, (kind, op, on), out)
        array = contiguous(data, "reduce_scatter")
        rows = self._rows(array, counts, "reduce_scatter")
        result = result_array(out, (rows[self.rank], *array.shape[1:]), array.dtype, "reduce_scatter")
        elements = c_sizes([row * self._row(array) for row in rows])
        place = (self.comm, array.ctypes.data, result.ctypes.data, elements)
        return self._reduction("WarrenReduceScatterV", "reduce_scatter", op, place, result, array)

    def broadcast(self, data: Array, root: int, stream: Any = None) -> Call[Array]:
        root = c_int_of(root, "root")
        if on_device(data, stream, "broadcast"):
            (one,), kind, on = device_arrays("broadcast", stream, data)
            return self._device_call("WarrenDeviceBroadcast", [one, one], one.size, (kind, root, on), data)
        array = data if self.rank != root else contiguous(data, "broadcast")
        if self.rank != root:
            check_result(data, "broadcast")
        return Call("WarrenBroadcast", (self.comm, array.ctypes.data, array.nbytes, _c.BYTES, root), data, array)

    def allgather(self, data: ArrayLike, counts: Optional[Sequence[int]], out: Optional[Array] = None,
                   stream: Any = None) -> Call[Array]:
        if on_device(data, stream, "allgather"):
            arrays, kind, on = self._device_pair("allgather", Op.SUM, data, out, stream)
            if counts is not None or arrays[1].size != arrays[0].size * self.size:
                raise ValueError("allgather on a GPU needs equal parts: `out` must have the size of `data` times the number of ranks")
            return self._device_call("WarrenDeviceAllgather", arrays, arrays[0].size, (kind, on), out)
        self._check_open("allgather")
        rows = None if counts is None else self._checked(counts, "allgather")
        array = self._slice(data, "allgather", None if rows is None else rows[self.rank])
        rows = [len(array)] * self.size if rows is None else rows
        result = result_array(out, (sum(rows), *array.shape[1:]), array.dtype, "allgather")
        place = (self.comm, array.ctypes.data, result.ctypes.data, self._bytes(array, rows), _c.BYTES)
        return Call("WarrenAllgatherV", place, result, array)

    def gather(self, data: ArrayLike, root: int, counts: Optional[Sequence[int]]) -> Call[Optional[Array]]:
        root = c_int_of(root, "root")
        array = self._slice(data, "gather", None)
        own = (self.comm, array.ctypes.data, array.nbytes)
        if self.rank != root:
            return Call("WarrenGatherV", (*own, None, None, _c.BYTES, root), None, array)
        rows = [len(array)] * self.size if counts is None else self._checked(counts, "gather")
        result = np.empty((sum(rows), *array.shape[1:]), array.dtype)
        return Call("WarrenGatherV", (*own, result.ctypes.data, self._bytes(array, rows), _c.BYTES, root), result, array)

    def scatter(self, data: Optional[ArrayLike], root: int, out: Array, counts: Optional[Sequence[int]]) -> Call[Array]:
        root = c_int_of(root, "root")
        check_result(out, "scatter")
        own = (out.ctypes.data, out.nbytes, _c.BYTES, root)
        if self.rank != root:
            return Call("WarrenScatterV", (self.comm, None, None, *own), out)
        array = contiguous(data if data is not None else np.empty(0), "scatter")
        if array.dtype != out.dtype:
            raise TypeError(f"scatter of {array.dtype} into {out.dtype}")
        sizes = self._bytes(array, self._rows(array, counts, "scatter"))
        return Call("WarrenScatterV", (self.comm, array.ctypes.data, sizes, *own), out, array)

    def all_to_all(self, data: ArrayLike, send_counts: Optional[Sequence[int]],
                    recv_counts: Optional[Sequence[int]]) -> Call[Array]:
        array = contiguous(data, "all_to_all")
        sent = self._rows(array, send_counts, "all_to_all")
        received = sent if recv_counts is None else self._checked(recv_counts, "all_to_all")
        result = np.empty((sum(received), *array.shape[1:]), array.dtype)
        place = (self.comm, array.ctypes.data, self._bytes(array, sent), result.ctypes.data, self._bytes(array, received))
        return Call("WarrenAllToAllV", (*place, _c.BYTES), result, array)

    def barrier(self) -> Call[None]:
        return Call("WarrenBarrier", (self.comm,), None)

    def send(self, data: ArrayLike, to: int) -> Call[None]:
        to = c_int_of(to, "rank")
        array = contiguous(data, "send")
        return Call("WarrenSend", (self.comm, array.ctypes.data, array.nbytes, _c.BYTES, to), None, array)

    def recv(self, out: Array, source: int) -> Call[Array]:
        source = c_int_of(source, "rank")
        check_result(out, "recv")
        return Call("WarrenRecv", (self.comm, out.ctypes.data, out.nbytes, _c.BYTES, source), out)

    def sendrecv(self, data: ArrayLike, to: int, out: Array, source: int) -> Call[Array]:
        to, source = c_int_of(to, "rank"), c_int_of(source, "rank")
        array = contiguous(data, "sendrecv")
        check_result(out, "sendrecv")
        place = (self.comm, array.ctypes.data, array.nbytes, to, out.ctypes.data, out.nbytes, source, _c.BYTES)
        return Call("WarrenSendRecv", place, out, array)

    @staticmethod
    def _reduction(name: str, what: str, op: Union[int, Combine], place: Tuple[Any, ...], result: T, array: Array, *rest: Any) -> Call[T]:
        """The call of function `name`, or of its variant for user-defined operations. `place` and `rest`: the arguments before and after the
        operation."""
        if callable(op):
            custom = Custom(op, array.dtype)
            return Call(f"{name}Custom", (*place, ctypes.byref(custom.op), *rest), result, array, custom)
        return Call(name, (*place, type_code(array, op, what), int(op), *rest), result, array)

    # --- arrays on a GPU ---

    def _device_call(self, name: str, arrays: Sequence[Any], count: int, rest: Tuple[Any, ...], out: Any) -> DeviceCall[Array]:
        return DeviceCall(name, (self.comm, arrays[0].pointer, arrays[1].pointer, count, *rest), out, *arrays)

    @staticmethod
    def _device_pair(what: str, op: Union[int, Combine], data: Any, out: Any, stream: Any) -> Tuple[List[Any], int, Any]:
        if callable(op):
            raise TypeError(f"{what} on a GPU takes an Op")
        if out is None:
            raise TypeError(f"{what} on a GPU needs an array for its result (`out`)")
        return device_arrays(what, stream, data, out)

    # --- rows of arrays ---

    @staticmethod
    def _row(array: Array) -> int:
        """The number of elements in one row."""
        return int(np.prod(array.shape[1:], dtype=np.int64))

    def _bytes(self, array: Array, rows: Sequence[int]) -> Any:
        return c_sizes([row * self._row(array) * array.itemsize for row in rows])

    def _check_open(self, what: str) -> None:
        if self.size == 0:
            raise ValueError(f"{what}: this is not a communicator, or it was freed")

    def _checked(self, counts: Sequence[int], what: str) -> List[int]:
        rows = [operator.index(count) for count in counts]
        self._check_open(what)
        if len(rows) != self.size or any(row < 0 for row in rows):
            raise ValueError(f"{what} needs {self.size} counts of rows, one for each rank, not {rows}")
        return rows

    def _rows(self, array: Array, counts: Optional[Sequence[int]], what: str) -> List[int]:
        """The number of rows of each rank's part."""
        if array.ndim == 0:
            raise ValueError(f"{what} needs an array with a row for each rank, not a single number")
        self._check_open(what)
        if counts is None:
            if len(array) % self.size:
                raise ValueError(f"{what}: {len(array)} rows cannot be divided equally among {self.size} ranks; give counts")
            return [len(array) // self.size] * self.size
        rows = self._checked(counts, what)
        if sum(rows) != len(array):
            raise ValueError(f"{what}: the counts {rows} sum to {sum(rows)} rows, but there are {len(array)}")
        return rows

    @staticmethod
    def _slice(data: ArrayLike, what: str, rows: Optional[int]) -> Array:
        array = np.atleast_1d(contiguous(data, what))
        if rows is not None and len(array) != rows:
            raise ValueError(f"{what}: this rank has {len(array)} rows, but its count is {rows}")
        return array

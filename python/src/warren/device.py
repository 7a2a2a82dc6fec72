"""Collectives on GPU memory, in a job that `warren.rabit` has joined.

    from warren import device, rabit

    with rabit.context():
        torch.cuda.set_device(device.select())
        device.allreduce(gradients)                # a torch.Tensor, cupy.ndarray, numba device array...

Takes any contiguous array on a CUDA device that supports DLPack or `__cuda_array_interface__`. Without `stream`, a call starts after
pending work on an array that supports DLPack, or else after work on the default stream, and returns when the operation is complete. With
`stream` (an address, or an object that provides it as `cuda_stream`, `ptr`, `handle` or `__cuda_stream__`), the operation is enqueued on
that stream and may still be running when the function returns: `synchronize` waits for it, and detects a lost rank. See rabit/device.h and
docs/how-to/gpu.md for more. Errors of the library are RuntimeErrors; arrays that do not fit raise TypeError or ValueError. Not
thread-safe."""
import contextlib
import ctypes
from enum import IntEnum, unique
from typing import Any, Iterator, List, Optional, Tuple

from warren._engine import native as _native
from warren._engine.device_arrays import DeviceArray, array_of, stream_address

__all__ = ["AVERAGE", "MAX", "MIN", "PRODUCT", "SUM", "Op", "array_of", "stream_address", "select", "allreduce", "broadcast", "allgather",
           "reduce_scatter", "group", "synchronize", "describe"]


@unique
class Op(IntEnum):
    """The operation that combines the elements of all ranks."""

    SUM = 0
    PRODUCT = 1
    MAX = 2
    MIN = 3
    AVERAGE = 4


SUM, PRODUCT, MAX, MIN, AVERAGE = Op.SUM, Op.PRODUCT, Op.MAX, Op.MIN, Op.AVERAGE


def _library() -> ctypes.CDLL:
    library = _native.library("librabit.so")
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.RabitDeviceAllreduce.argtypes = [pointer, pointer, size, number, number, pointer]
    library.RabitDeviceBroadcast.argtypes = [pointer, pointer, size, number, number, pointer]
    library.RabitDeviceAllgather.argtypes = [pointer, pointer, size, number, pointer]
    library.RabitDeviceReduceScatter.argtypes = [pointer, pointer, size, number, number, pointer]
    library.RabitDeviceSynchronize.argtypes = [pointer]
    library.RabitDeviceDescribe.restype = ctypes.c_char_p
    library.RabitDeviceGetLastError.restype = ctypes.c_char_p
    return library


_LIB = _library()


def _require(result: int) -> None:
    if result != 0:
        raise RuntimeError(_LIB.RabitDeviceGetLastError().decode(errors="replace"))


def _pair(send: Any, receive: Any, stream: Optional[int]) -> Tuple[DeviceArray, DeviceArray]:
    one = array_of(send, stream)
    two = array_of(receive, stream)
    if one.type != two.type:
        raise TypeError("both arrays must have the same type")
    return one, two


def _end(stream: Optional[int], *arrays: DeviceArray) -> None:
    """Waits for the call, unless it was enqueued on a caller's stream or belongs to a group. Keeps the arrays of a group alive until the
    group ends."""
    if _GROUPS > 0:
        _GROUPED.extend(arrays)
    elif stream is None:
        synchronize()


_GROUPS = 0
_GROUPED: List[DeviceArray] = []


def select() -> int:
    """Selects this rank's GPU and returns its number: the rank's number on its host, modulo the number of visible GPUs. The GPU becomes
    CUDA's current device. Frameworks keep their own current device: `torch.cuda.set_device(device.select())`."""
    number = ctypes.c_int()
    _require(_LIB.RabitDeviceSelect(ctypes.byref(number)))
    return number.value


def allreduce(data: Any, op: int = SUM, stream: Any = None) -> Any:
    """Replaces each element of `data` with the reduction of that element over all ranks, and returns `data`."""
    on = stream_address(stream)
    array = array_of(data, on)
    _require(_LIB.RabitDeviceAllreduce(array.pointer, array.pointer, array.size, array.type, int(op), on))
    _end(on, array)
    return data


def broadcast(data: Any, root: int, stream: Any = None) -> Any:
    """Overwrites `data` with rank `root`'s, and returns it. `data` must have the same type and size on all ranks."""
    on = stream_address(stream)
    array = array_of(data, on)
    _require(_LIB.RabitDeviceBroadcast(array.pointer, array.pointer, array.size, array.type, root, on))
    _end(on, array)
    return data


def allgather(send: Any, receive: Any, stream: Any = None) -> Any:
    """Fills `receive` with the `send` arrays of all ranks in rank order, and returns it. `receive` has world size times as many elements as
    `send`."""
    on = stream_address(stream)
    one, two = _pair(send, receive, on)
    if two.size != one.size * _LIB.RabitGetWorldSize():
        raise ValueError(f"{two.size} elements do not match {one.size} from each rank")
    _require(_LIB.RabitDeviceAllgather(one.pointer, two.pointer, one.size, one.type, on))
    _end(on, one, two)
    return receive


def reduce_scatter(send: Any, receive: Any, op: int = SUM, stream: Any = None) -> Any:
    """Reduces `send`, which has world size times as many elements as `receive`, over all ranks. Stores the r-th part of the result in
    rank r's `receive`, and returns `receive`."""
    on = stream_address(stream)
    one, two = _pair(send, receive, on)
    if one.size != two.size * _LIB.RabitGetWorldSize():
        raise ValueError(f"{one.size} elements do not match {two.size} for each rank")
    _require(_LIB.RabitDeviceReduceScatter(one.pointer, two.pointer, two.size, one.type, int(op), on))
    _end(on, one, two)
    return receive


@contextlib.contextmanager
def group(stream: Any = None) -> Iterator[None]:
    """Enqueues the calls of the block as one group when the block ends, which is faster for many small arrays. Without `stream`, the
    outermost block waits until its calls without a stream are complete."""
    global _GROUPS  # pylint: disable=global-statement
    _require(_LIB.RabitDeviceGroupStart())
    _GROUPS += 1
    try:
        yield
    finally:
        _GROUPS -= 1
        grouped = _GROUPED[:] if _GROUPS == 0 else []
        del _GROUPED[:len(grouped)]
        _require(_LIB.RabitDeviceGroupEnd())
    _end(stream_address(stream))


def synchronize(stream: Any = None) -> None:
    """Returns when all work on the stream is done. If a rank was lost or is late, raises a RuntimeError that names it."""
    _require(_LIB.RabitDeviceSynchronize(stream_address(stream)))


def describe() -> str:
    """Describes the way in which collectives run, e.g. "NCCL 2.28.9"; empty before the first collective call and after an error."""
    text: bytes = _LIB.RabitDeviceDescribe()
    return text.decode()

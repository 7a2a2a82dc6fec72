"""Collectives on GPU memory, in a job that `warren.rabit` has joined.

    from warren import device, rabit

    with rabit.context():
        torch.cuda.set_device(device.select())
        device.allreduce(gradients)                # a torch.Tensor, cupy.ndarray, numba device array...

Takes any contiguous array on a CUDA device that supports DLPack or `__cuda_array_interface__`. Without `stream`, a call waits for pending
work on the array, and returns when it is done. With `stream` (an address, or an object that provides it as `cuda_stream`, `ptr`, `handle`
or `__cuda_stream__`) the call is enqueued on that stream and may still be running when the function returns: `synchronize` waits for it,
and detects a lost rank. See rabit/device.h and docs/how-to/gpu.md for more. Errors are RuntimeErrors. Not thread-safe."""
import contextlib
import ctypes
import math
from enum import IntEnum, unique
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from warren import _native


@unique
class Op(IntEnum):
    """How the elements of all ranks are combined."""

    SUM = 0
    PRODUCT = 1
    MAX = 2
    MIN = 3
    AVERAGE = 4


SUM, PRODUCT, MAX, MIN, AVERAGE = Op.SUM, Op.PRODUCT, Op.MAX, Op.MIN, Op.AVERAGE

_LEGACY_STREAM = 1  # cudaStreamLegacy, which the array protocols also number 1
_NO_STREAM = -1  # DLPack: the producer of the array need not synchronize
_CUDA_DEVICES = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged
# DLPack's kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLFloat8_e4m3fn, kDLFloat8_e5m2, each with its bits.
_DLPACK_TYPES = {(0, 8): 0, (1, 8): 1, (0, 32): 2, (1, 32): 3, (0, 64): 4, (1, 64): 5, (2, 16): 6, (2, 32): 7, (2, 64): 8,
                 (4, 16): 9, (10, 8): 10, (12, 8): 11}
_ARRAY_TYPES = {"|i1": 0, "|u1": 1, "<i4": 2, "<u4": 3, "<i8": 4, "<u8": 5, "<f2": 6, "<f4": 7, "<f8": 8}
_SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Array(NamedTuple):
    pointer: int
    size: int  # in elements
    type: int  # a RabitDeviceType
    keeps: Any  # an object that must live as long as the pointer is used


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
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p


def _require(result: int) -> None:
    if result != 0:
        raise RuntimeError(_LIB.RabitDeviceGetLastError().decode(errors="replace"))


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """`strides` are in elements."""
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _from_dlpack(data: Any, stream: Optional[int]) -> _Array:
    capsule = data.__dlpack__(stream=_LEGACY_STREAM if stream is None else _NO_STREAM)
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    kind = _DLPACK_TYPES.get((tensor.code, tensor.bits))
    if kind is None or tensor.lanes != 1:
        raise TypeError(f"an array of DLPack type {tensor.code} of {tensor.bits} bits cannot be reduced; see rabit/device.h")
    shape = tensor.shape[:tensor.ndim]
    count = math.prod(shape)
    if count > 0 and tensor.strides and not _is_contiguous(shape, tensor.strides[:tensor.ndim]):
        raise ValueError("the array must be C-contiguous")
    return _Array((tensor.data or 0) + tensor.byte_offset, count, kind, capsule)


def _from_interface(data: Any) -> _Array:
    interface = data.__cuda_array_interface__
    kind = _ARRAY_TYPES.get(interface["typestr"])
    if kind is None:
        raise TypeError(f"an array of type {interface['typestr']} cannot be reduced; types: {', '.join(_ARRAY_TYPES)}")
    shape, strides = interface["shape"], interface.get("strides")
    count = math.prod(shape)
    if count > 0 and strides is not None and not _is_contiguous(shape, [stride // _SIZES[kind] for stride in strides]):
        raise ValueError("the array must be C-contiguous")
    pointer, read_only = interface["data"]
    if read_only:
        raise ValueError("the array is read-only")
    return _Array(pointer or 0, count, kind, data)


def array_of(data: Any, stream: Optional[int]) -> _Array:
    """Returns the address, size and type of the array. Without a stream, the default stream will wait for pending work on the array."""
    if hasattr(data, "__dlpack_device__") and data.__dlpack_device__()[0] in _CUDA_DEVICES:
        return _from_dlpack(data, stream)
    if hasattr(data, "__cuda_array_interface__"):
        return _from_interface(data)
    raise TypeError(f"an array on a CUDA device is expected, not {type(data).__name__}; warren.rabit.allreduce takes "
                    "numpy.ndarray")


def stream_address(stream: Any) -> Optional[int]:
    """Returns the address of any kind of stream, or None for None."""
    if stream is None or isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            value = getattr(stream, name)
            return int(getattr(value, "value", value) or 0)  # numba's is a ctypes pointer
    raise TypeError(f"a CUDA stream, or its address, is expected, not {type(stream).__name__}")


def _pair(send: Any, receive: Any, stream: Optional[int]) -> Tuple[_Array, _Array]:
    one = array_of(send, stream)
    two = array_of(receive, stream)
    if one.type != two.type:
        raise TypeError("both arrays must have the same type")
    return one, two


def _end(stream: Optional[int], *arrays: _Array) -> None:
    """Waits for the call, unless it has a stream or is part of a group, which starts later."""
    if _GROUPS > 0:
        _GROUPED.extend(arrays)
    elif stream is None:
        synchronize()


_GROUPS = 0
_GROUPED: List[_Array] = []


def select() -> int:
    """Selects this rank's GPU and returns its number: the n-th rank of a host gets the n-th visible GPU. It becomes CUDA's current device,
    but frameworks have their own: `torch.cuda.set_device(device.select())`."""
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
    """Overwrites `data` with that of rank `root`, and returns it. It must have the same type and size on all ranks."""
    on = stream_address(stream)
    array = array_of(data, on)
    _require(_LIB.RabitDeviceBroadcast(array.pointer, array.pointer, array.size, array.type, root, on))
    _end(on, array)
    return data


def allgather(send: Any, receive: Any, stream: Any = None) -> Any:
    """Fills `receive`, which has world size times as many elements, with the `send` of all ranks in rank order, and returns it."""
    on = stream_address(stream)
    one, two = _pair(send, receive, on)
    if two.size != one.size * _LIB.RabitGetWorldSize():
        raise ValueError(f"{two.size} elements do not match {one.size} from each rank")
    _require(_LIB.RabitDeviceAllgather(one.pointer, two.pointer, one.size, one.type, on))
    _end(on, one, two)
    return receive


def reduce_scatter(send: Any, receive: Any, op: int = SUM, stream: Any = None) -> Any:
    """Reduces `send`, which has world size times as many elements as `receive`, over all ranks. Rank r's `receive` gets the r-th part of
    the result, and is returned."""
    on = stream_address(stream)
    one, two = _pair(send, receive, on)
    if one.size != two.size * _LIB.RabitGetWorldSize():
        raise ValueError(f"{one.size} elements do not match {two.size} for each rank")
    _require(_LIB.RabitDeviceReduceScatter(one.pointer, two.pointer, two.size, one.type, int(op), on))
    _end(on, one, two)
    return receive


@contextlib.contextmanager
def group(stream: Any = None) -> Iterator[None]:
    """Enqueues the calls of the block together when it ends, as one group, which is faster for many small arrays. Without `stream`, it
    returns once all calls that were given no stream are done."""
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
    """Returns when all work on the stream is done. Raises RuntimeError, naming the rank, if one was lost or is late."""
    _require(_LIB.RabitDeviceSynchronize(stream_address(stream)))


def describe() -> str:
    """Returns the library that runs collectives, such as "NCCL 2.28.9"; empty before the first one."""
    text: bytes = _LIB.RabitDeviceDescribe()
    return text.decode()

"""The arrays and streams of GPU libraries, through the protocols that they support: DLPack and __cuda_array_interface__."""
import ctypes
import functools
import math
from typing import Any, NamedTuple, Optional, Sequence

_LEGACY_STREAM = 1  # cudaStreamLegacy, which the array protocols also number 1
_NO_STREAM = -1  # DLPack: the producer of the array need not synchronize
_CUDA_DEVICES = (2, 13)  # DLPack's kDLCUDA and kDLCUDAManaged
# Maps DLPack's kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLFloat8_e4m3fn and kDLFloat8_e5m2, each with its number of bits, to RabitDeviceType.
_DLPACK_TYPES = {(0, 8): 0, (1, 8): 1, (0, 32): 2, (1, 32): 3, (0, 64): 4, (1, 64): 5, (2, 16): 6, (2, 32): 7, (2, 64): 8,
                 (4, 16): 9, (10, 8): 10, (12, 8): 11}
_ARRAY_TYPES = {"|i1": 0, "|u1": 1, "<i4": 2, "<u4": 3, "<i8": 4, "<u8": 5, "<f2": 6, "<f4": 7, "<f8": 8}
_SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class DeviceArray(NamedTuple):
    """The address, size and type of an array on a GPU."""

    pointer: int
    size: int  # in elements
    type: int  # a RabitDeviceType
    keeps: Any  # an object that must live as long as the pointer is used


@functools.lru_cache(maxsize=None)
def _capsule_pointer() -> Any:
    """Returns Python's function that extracts the pointer from a capsule."""
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.argtypes = [ctypes.py_object, ctypes.c_char_p]
    function.restype = ctypes.c_void_p
    return function


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an array is C-contiguous. `strides` are in elements."""
    expected = 1
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True


def _from_dlpack(data: Any, stream: Optional[int]) -> DeviceArray:
    capsule = data.__dlpack__(stream=_LEGACY_STREAM if stream is None else _NO_STREAM)
    tensor = _DLTensor.from_address(_capsule_pointer()(capsule, b"dltensor"))
    kind = _DLPACK_TYPES.get((tensor.code, tensor.bits))
    if kind is None or tensor.lanes != 1:
        raise TypeError(f"an array of DLPack type {tensor.code} of {tensor.bits} bits cannot be reduced; see rabit/device.h")
    shape = tensor.shape[:tensor.ndim]
    count = math.prod(shape)
    if count > 0 and tensor.strides and not _is_contiguous(shape, tensor.strides[:tensor.ndim]):
        raise ValueError("the array must be C-contiguous")
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, count, kind, capsule)


def _from_interface(data: Any) -> DeviceArray:
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
    return DeviceArray(pointer or 0, count, kind, data)


def has_dlpack(data: Any) -> bool:
    """Whether the object is an array on a GPU that supports DLPack."""
    return hasattr(data, "__dlpack_device__") and data.__dlpack_device__()[0] in _CUDA_DEVICES


def array_of(data: Any, stream: Optional[int]) -> DeviceArray:
    """Returns the address, size and type of the array. Without a stream, the default stream will wait for pending work on an array that
    supports DLPack."""
    if has_dlpack(data):
        return _from_dlpack(data, stream)
    if hasattr(data, "__cuda_array_interface__"):
        return _from_interface(data)
    raise TypeError(f"an array on a CUDA device is expected, not {type(data).__name__}; warren.rabit.allreduce takes "
                    "numpy.ndarray")


def stream_address(stream: Any) -> Optional[int]:
    """Returns a stream's address: the stream itself if it is an int or None, else the address that the object provides. Raises TypeError if
    it provides none."""
    if stream is None or isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, name):
            value = getattr(stream, name)
            return int(getattr(value, "value", value) or 0)  # numba's `handle` is a ctypes pointer
    raise TypeError(f"a CUDA stream, or its address, is expected, not {type(stream).__name__}")

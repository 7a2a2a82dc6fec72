"""The building blocks of warren.collectives' calls: arrays and functions in the form that warren/c_api.h takes, a call, and its handle."""
import atexit
import ctypes
import itertools
import operator
import threading
import time
from enum import IntEnum, unique
from typing import Any, Callable, Dict, Generic, Iterable, List, Optional, Sequence, Tuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from warren._engine import c_api as _c
from warren._engine import callback_threads as _callback_threads
from warren._engine.device_arrays import array_of, has_dlpack, stream_address

Array = NDArray[Any]
Combine = Callable[[Array, Array], Array]
T = TypeVar("T")


@unique
class Op(IntEnum):
    """The operation with which a reduction combines the elements of all ranks. The bitwise operations take integers, AVG takes floating-point
    numbers."""

    MAX = 0
    MIN = 1
    SUM = 2
    BITOR = 3
    PROD = 4
    BITAND = 5
    BITXOR = 6
    AVG = 7


def contiguous(data: ArrayLike, what: str) -> Array:
    array = np.asarray(data)
    if array.dtype.hasobject:
        raise TypeError(f"{what} takes arrays of numbers, not of {array.dtype}")
    # ascontiguousarray would turn a scalar into an array of one dimension.
    return array if array.flags.c_contiguous else array.copy(order="C")


def result_array(out: Optional[Array], shape: Tuple[int, ...], dtype: Any, what: str) -> Array:
    """Returns `out` or, if it is None, a new array for a result. Raises TypeError or ValueError if `out` cannot hold the result."""
    if out is None:
        return np.empty(shape, dtype)
    if isinstance(out, np.ndarray) and out.dtype.hasobject:
        raise TypeError(f"{what} takes arrays of numbers, not of {out.dtype}")
    if not (isinstance(out, np.ndarray) and out.dtype == dtype and out.shape == shape and out.flags.c_contiguous
            and out.flags.writeable):
        raise ValueError(f"{what} needs a contiguous, writable array of {shape} {dtype} for its result")
    return out


def check_result(out: Any, what: str) -> None:
    """Raises TypeError or ValueError unless `out` is an array that can hold a result."""
    result_array(out, np.shape(out), getattr(out, "dtype", None), what)


def type_code(array: Array, op: int, what: str) -> int:
    number = _c.TYPES.get(array.dtype.name)
    if number is None or not array.dtype.isnative:
        raise TypeError(f"{what} takes arrays of {', '.join(_c.TYPES)} in native byte order, not of {array.dtype}")
    is_float = number >= _c.TYPES["float32"]
    if op in (Op.BITOR, Op.BITAND, Op.BITXOR) and is_float:
        raise TypeError(f"{Op(op).name} takes integers, not {array.dtype}")
    if op == Op.AVG and not is_float:
        raise TypeError(f"AVG takes floating point, not {array.dtype}")
    return number


class Custom:
    """A user-defined operation, and the error raised in it."""

    def __init__(self, combine: Combine, dtype: Any) -> None:
        self.failure: Optional[BaseException] = None

        def run(right: int, left: int, count: int, _: Any) -> int:
            try:
                lower, higher = (np.frombuffer(ctypes.string_at(at, count * dtype.itemsize), dtype) for at in (left, right))
                both = np.ascontiguousarray(combine(lower, higher), dtype)
                if both.shape != (count,):
                    raise ValueError(f"the operation made an array of {both.shape} of two of {(count,)}")
                ctypes.memmove(left, both.ctypes.data, both.nbytes)
                return 0
            except BaseException as error:  # pylint: disable=broad-except
                self.failure = self.failure or error
                return 1

        self._function = _c.FUNCTION(run)  # must live as long as the engine may call it
        self.op = _c.CustomOp(self._function, None, dtype.itemsize, None)


def _check(result: int, kept: Sequence[Any]) -> None:
    """Raises the error of a call that failed, or the one raised in a user-defined operation among the objects kept for the call."""
    for one in kept:
        if isinstance(one, Custom) and one.failure is not None:
            raise one.failure
    _c.check(result)


def c_int_of(value: Any, what: str) -> int:
    """Returns the value as an int that fits into C's int. Raises ValueError if it does not fit."""
    number = operator.index(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{what} {number} does not fit into 32 bits")
    return number


def c_name(name: Any, what: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} must be a str, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError(f"the name of {what} contains a null character: {name!r}")
    return name.encode()


def c_sizes(counts: Iterable[int]) -> Any:
    numbers = list(counts)
    return (ctypes.c_size_t * len(numbers))(*numbers)


#: Handles that the program dropped before it waited for them, with the objects that their operations use. `free_dropped` removes those that
#: have ended.
_dropped: List[Tuple[int, Any]] = []
_DROPPED_LOCK = threading.Lock()


#: The completion callbacks of operations, by the number that the engine passes back.
_callbacks: Dict[int, Callable[[Optional[str]], None]] = {}
_callback_numbers = itertools.count(1)


def _call_back(error: Optional[bytes], number: int) -> None:
    text = None if error is None else error.decode(errors="replace")

    def call() -> None:
        try:
            _callbacks[number](text)
        finally:
            del _callbacks[number]

    _callback_threads.call(call)


#: The maximum time that the interpreter waits at exit for callbacks, since an operation may never end.
_LAST_CALLS_S = 1.0


def _let_callbacks_end() -> None:
    """Waits for pending callbacks at exit. Otherwise the interpreter could terminate a thread inside a callback. This would abort the
    process if the thread is in a C++ function, such as PyTorch's, that cannot be interrupted in this way."""
    end = time.monotonic() + _LAST_CALLS_S
    while _callbacks and time.monotonic() < end:
        time.sleep(0.001)


atexit.register(_let_callbacks_end)


_CALL_BACK = _c.WHEN_DONE(_call_back)


def _has_ended(handle: int) -> bool:
    return bool(_c.number_of(_c.LIB.WarrenTest, handle))


def free_dropped() -> None:
    """Frees the dropped handles whose operations have ended."""
    if not _dropped:
        return
    with _DROPPED_LOCK:
        for _ in range(len(_dropped)):  # more may be dropped in the meantime
            handle, kept = _dropped.pop(0)
            if _has_ended(handle):
                _c.LIB.WarrenHandleFree(handle)
            else:
                _dropped.append((handle, kept))


class Handle(Generic[T]):
    """An operation that has been started. It is carried out even if the handle is dropped. Thread-safe."""

    def __init__(self, handle: int, result: T, kept: Sequence[Any]) -> None:
        self._handle: Optional[int] = handle
        self._result, self._kept = result, kept
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()

    def wait(self) -> T:
        """Returns the result once the operation has ended. Raises RuntimeError if it failed, or the error raised in a user-defined
        reduction."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                try:
                    _check(_c.LIB.WarrenWait(handle), self._kept)
                except BaseException as error:
                    self._error = error
                self._kept = ()
            if self._error is not None:
                raise self._error
            return self._result

    def done(self) -> bool:
        """Whether the operation has ended, successfully or not."""
        if not self._lock.acquire(blocking=False):
            return False  # another thread is using the handle, probably to wait for the operation
        try:
            return self._handle is None or _has_ended(self._handle)
        finally:
            self._lock.release()

    def when_done(self, function: Callable[[Optional[str]], None]) -> None:
        """Calls function(error) once the operation has ended; `error` is the operation's error message or None. The function runs on a
        thread that carries out no operations, so it may start operations and wait for them. Functions are called in the order in which
        their operations end, unless one of them takes long or waits. Raises ValueError if `wait` was called before, and RuntimeError if the
        handle already has a function."""
        with self._lock:
            if self._handle is None:
                raise ValueError("wait was already called on this handle")
            number = next(_callback_numbers)
            _callbacks[number] = function
            try:
                _c.check(_c.LIB.WarrenWhenDone(self._handle, _CALL_BACK, number))
            except RuntimeError:
                del _callbacks[number]
                raise

    def __del__(self) -> None:
        # Must not wait: the garbage collector may call this anywhere, even within an operation or in a forked process.
        handle = getattr(self, "_handle", None)
        if handle is not None:
            _dropped.append((handle, (self._result, self._kept)))


def wait_all(handles: Iterable[Handle[Any]]) -> List[Any]:
    """Waits for all operations and returns their results. If some failed, raises the error of the first of these handles, once all have
    ended."""
    results, first = [], None
    for handle in handles:
        try:
            results.append(handle.wait())
        except Exception as error:  # pylint: disable=broad-except
            first = first or error
    if first is not None:
        raise first
    return results


def call_options(name: Optional[str], timeout: Optional[float]) -> Any:
    return _c.CallOptions(ctypes.sizeof(_c.CallOptions), None if name is None else c_name(name, "an operation"),
                          0 if timeout is None else timeout)


class Call(Generic[T]):
    """A call that is ready to run: the function's name, its arguments, its result, and objects that must stay alive until it has ended."""

    def __init__(self, name: str, arguments: Sequence[Any], result: T, *kept: Any) -> None:
        self._name, self._arguments, self._result, self._kept = name, arguments, result, kept

    def run(self) -> T:
        _check(getattr(_c.LIB, self._name)(*self._arguments), self._kept)
        return self._result

    def begin(self, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[T]:
        free_dropped()
        options = call_options(name, timeout)
        handle = _c.handle(getattr(_c.LIB, self._name + "Async"), *self._arguments, ctypes.byref(options))
        return Handle(handle, self._result, self._kept)

    def enqueue(self, coordinator: int, name: str, priority: int, group: Optional[Tuple[str, int]]) -> Handle[T]:
        """Submits the call by name to a coordinator instead of the communicator in its arguments."""
        free_dropped()
        options = _c.EnqueueOptions(ctypes.sizeof(_c.EnqueueOptions), c_int_of(priority, "priority"), None, 0)
        if group is not None:
            if not isinstance(group, tuple) or len(group) != 2:
                raise TypeError(f"a group must be a name and a number of operations, not {group!r}")
            options.group, options.group_size = c_name(group[0], "a group"), c_int_of(group[1], "the size of a group")
        function = getattr(_c.LIB, self._name.replace("Warren", "WarrenEnqueue", 1))
        handle = _c.handle(function, coordinator, c_name(name, "an operation"), *self._arguments[1:], ctypes.byref(options))
        return Handle(handle, self._result, self._kept)


class DeviceCall(Call[T]):
    """A call on GPU memory."""

    def run(self) -> T:
        return self.begin().wait()

    def begin(self, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[T]:
        if name is not None or timeout is not None:
            raise TypeError("calls on arrays on a GPU take neither a name nor a timeout")
        free_dropped()
        return Handle(_c.handle(getattr(_c.LIB, self._name), *self._arguments), self._result, self._kept)

    def enqueue(self, coordinator: int, name: str, priority: int, group: Optional[Tuple[str, int]]) -> Handle[T]:
        raise TypeError(f"'{name}' is an array on a GPU; named operations take arrays in host memory")


#: The type in warren/c_api.h for each RabitDeviceType (rabit/device.h), by its number. The last of those, the 8-bit floats, have no
#: counterpart.
_DEVICE_TYPES = (*range(6), _c.TYPES["float16"], _c.TYPES["float32"], _c.TYPES["float64"], _c.TYPES["bfloat16"])


def on_device(data: Any, stream: Any, what: str) -> bool:
    if hasattr(data, "__cuda_array_interface__") or has_dlpack(data):
        return True
    if stream is not None:
        raise TypeError(f"{what}: a stream is for arrays on a GPU, not for {type(data).__name__}")
    return False


def device_arrays(what: str, stream: Any, *arrays: Any) -> Tuple[List[Any], int, Any]:
    """Returns the arrays, the number of their common type in warren/c_api.h, and the stream's address. Raises TypeError if the types differ
    or are not supported."""
    on = stream_address(stream)
    found = [array_of(array, on) for array in arrays]
    if any(array.type != found[0].type for array in found):
        raise TypeError(f"{what}: the arrays have different types")
    if found[0].type >= len(_DEVICE_TYPES):
        raise TypeError(f"{what} takes no arrays of 8-bit floats")
    return found, _DEVICE_TYPES[found[0].type], on

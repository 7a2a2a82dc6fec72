"""Collectives for NumPy arrays: communicators, every collective, messages between ranks.

    from warren import collectives
    with collectives.context() as world:
        total = world.allreduce(gradient)                   # the sum over all ranks, in a new array
        world.allreduce(gradient, out=gradient)             # in place
        host = world.local()                                # the ranks of this host
        host.broadcast(weights, root=0)                     # in place
        rows = world.gather(part, root=0)                   # rank 0: all parts along the first axis; others: None

Start it with `dmlc-submit --num-workers 4 python train.py`; alone there is one rank, and every call works.

All ranks of a communicator make the same calls in the same order with arrays of the same type, and the same shape where
nothing else is said; ranks that do not are told. Errors of the engine (a rank that died, calls that differ) are
RuntimeErrors that name the rank; after one the communicator is of no further use. Sums of floating point are added up in
one order that the ranks alone fix: all get the same bits.

Element types of reductions: (u)int8, (u)int32, (u)int64, float32, float64, float16 and the bfloat16 of ml_dtypes; what is
only moved may have any type without objects in it. Arrays that are not contiguous are copied.

Without waiting: each call also as `..._async`, which returns a Handle at once; `handle.wait()` gives the result. Those of one
communicator are carried out in the order in which they were made, by a thread or by whoever waits first; arrays belong to the
operation until it has ended. `name` is what a timeline calls the operation (WARREN_TIMELINE), and its errors besides.
`timeout`: for how many seconds it may wait for a rank that lives, from when it begins to be carried out, in place of
rabit_timeout_sec; fractions are allowed, and 0 is as good as none. Then `wait` raises a RuntimeError that names a late rank, and
the communicator is of no further use. A negative timeout, or any over MPI, is a RuntimeError at once; arrays on a GPU take
neither.

    handle = world.allreduce_async(gradient, out=gradient)
    ...                                                     # something else
    gradient = handle.wait()

Threads: one at a time in each communicator; several communicators may be used at once, and calls release the GIL.
"""
import contextlib
import ctypes
import itertools
import operator
import os
import sys
import threading
from enum import IntEnum, unique
from typing import Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from warren import _collectives_c as _c

Array = NDArray[Any]
Combine = Callable[[Array, Array], Array]
T = TypeVar("T")


@unique
class Op(IntEnum):
    """What a reduction makes of the elements of all ranks. The bitwise ones take integers, AVG floating point."""

    MAX = 0
    MIN = 1
    SUM = 2
    BITOR = 3
    PROD = 4
    BITAND = 5
    BITXOR = 6
    AVG = 7


def init(args: Optional[Iterable[Union[str, bytes]]] = None) -> None:
    """Joins the job. `args` are `key=value`, sys.argv by default; others are left alone. Raises RuntimeError when the job
    cannot be joined."""
    words = [os.fsencode(word) for word in (sys.argv if args is None else args)]
    _c.check(_c.LIB.WarrenInit(len(words), (ctypes.c_char_p * len(words))(*words)))


def finalize() -> None:
    """Leaves the job, when all ranks do. Raises RuntimeError when that failed, or an error before had ended the job for this
    rank; the job is left in any case."""
    _c.check(_c.LIB.WarrenFinalize())


def world() -> "Communicator":
    """The communicator of all ranks of the job, between `init` and `finalize`."""
    return _made(_c.LIB.WarrenCommWorld)


@contextlib.contextmanager
def context(args: Optional[Iterable[Union[str, bytes]]] = None) -> Iterator["Communicator"]:
    """`init`, the world, and `finalize` at the end. After an exception there is no finalize: the others must not take this
    rank for one that is done."""
    init(args)
    yield world()
    finalize()


def _made(make: Callable[..., int], *arguments: Any) -> "Communicator":
    return Communicator(_c.handle(make, *arguments))


#: Every rank's record, in their order, from this rank's.
Allgather = Callable[[bytes], Sequence[bytes]]


def meet(rank: int, size: int, allgather: Allgather) -> "Communicator":
    """A world of ranks that find each other by what they share already, such as a key-value store: neither `init` nor a tracker
    is needed. All ranks call it; `allgather` gives them each other's records of up to some KiB, a few times. Each rank leaves
    it by itself, with `free`. Raises RuntimeError when that fails, and what `allgather` raises."""
    with _rendezvous(rank, size, allgather) as rendezvous:
        return _made(_c.LIB.WarrenCommMeet, rendezvous)


@contextlib.contextmanager
def _rendezvous(rank: int, size: int, allgather: Allgather) -> Iterator[Any]:
    failure: List[BaseException] = []

    def exchange(record: int, count: int, give: Any, records: int, *_: Any) -> int:
        try:
            for one in allgather(ctypes.string_at(record, count)):
                give(records, one, len(one))
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            failure.append(error)
            return 1

    function = _c.ALLGATHER(exchange)
    try:
        yield ctypes.byref(_c.Rendezvous(ctypes.sizeof(_c.Rendezvous), _int(rank, "rank"), _int(size, "size"), function, None))
    except RuntimeError:
        if failure:
            raise failure[0]
        raise


def _contiguous(data: ArrayLike, what: str) -> Array:
    array = np.asarray(data)
    if array.dtype.hasobject:
        raise TypeError(f"{what} takes arrays of numbers, not of {array.dtype}")
    # Not ascontiguousarray, which makes a row of a single number.
    return array if array.flags.c_contiguous else array.copy(order="C")


def _out(out: Optional[Array], shape: Tuple[int, ...], dtype: Any, what: str) -> Array:
    """Where a result goes: a new array, or the caller's."""
    if out is None:
        return np.empty(shape, dtype)
    if isinstance(out, np.ndarray) and out.dtype.hasobject:
        raise TypeError(f"{what} takes arrays of numbers, not of {out.dtype}")
    if not (isinstance(out, np.ndarray) and out.dtype == dtype and out.shape == shape and out.flags.c_contiguous
            and out.flags.writeable):
        raise ValueError(f"{what} needs a contiguous, writable array of {shape} {dtype} for its result")
    return out


def _type(array: Array, op: int, what: str) -> int:
    number = _c.TYPES.get(array.dtype.name)
    if number is None or not array.dtype.isnative:
        raise TypeError(f"{what} takes arrays of {', '.join(_c.TYPES)} in native byte order, not of {array.dtype}")
    is_float = number >= _c.TYPES["float32"]
    if op in (Op.BITOR, Op.BITAND, Op.BITXOR) and is_float:
        raise TypeError(f"{Op(op).name} takes integers, not {array.dtype}")
    if op == Op.AVG and not is_float:
        raise TypeError(f"AVG takes floating point, not {array.dtype}")
    return number


class _Custom:
    """An operation of the caller's, and what went wrong in it."""

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

        self._function = _c.FUNCTION(run)  # as long as the engine may call it
        self.op = _c.CustomOp(self._function, None, dtype.itemsize, None)

    def check(self, result: int) -> None:
        if self.failure is not None:
            raise self.failure
        _c.check(result)


def _int(value: Any, what: str) -> int:
    """Of what C takes for an int."""
    number = operator.index(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"{what} {number} is beyond 32 bits")
    return number


def _name(name: Any, what: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"the name of {what} is a str, not {type(name).__name__}")
    if "\0" in name:
        raise ValueError(f"the name of {what} has a null character in it: {name!r}")
    return name.encode()


def _sizes(counts: Sequence[int]) -> Any:
    return (ctypes.c_size_t * len(counts))(*counts)


#: Handles that were dropped, with the arrays of their calls, until those have ended.
_dropped: List[Tuple[int, Any]] = []
_DROPPED_LOCK = threading.Lock()


#: Functions of the callers' for the ends of their operations, by the number that the engine gives back.
_callbacks: Dict[int, Callable[[Optional[str]], None]] = {}
_callback_numbers = itertools.count(1)


def _call_back(error: Optional[bytes], number: int) -> None:
    _callbacks.pop(number)(None if error is None else error.decode(errors="replace"))


_CALL_BACK = _c.WHEN_DONE(_call_back)


def _has_ended(handle: int) -> bool:
    value = ctypes.c_int(1)
    _c.check(_c.LIB.WarrenTest(handle, ctypes.byref(value)))
    return bool(value.value)


def _free_dropped() -> None:
    with _DROPPED_LOCK:
        for _ in range(len(_dropped)):  # more may be dropped meanwhile
            handle, kept = _dropped.pop(0)
            if _has_ended(handle):
                _c.LIB.WarrenHandleFree(handle)
            else:
                _dropped.append((handle, kept))


class Handle(Generic[T]):
    """An operation that was begun. One that is dropped is carried out all the same. Thread safe."""

    def __init__(self, handle: int, result: T, kept: Sequence[Any]) -> None:
        self._handle: Optional[int] = handle
        self._result, self._kept = result, kept
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()

    def wait(self) -> T:
        """Returns the result when it is there. Raises RuntimeError when the operation failed."""
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                try:
                    result = _c.LIB.WarrenWait(handle)
                    for kept in self._kept:
                        if isinstance(kept, _Custom):
                            kept.check(result)
                    _c.check(result)
                except BaseException as error:
                    self._error = error
                self._kept = ()
            if self._error is not None:
                raise self._error
            return self._result

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        if not self._lock.acquire(blocking=False):
            return False  # another thread waits for it
        try:
            return self._handle is None or _has_ended(self._handle)
        finally:
            self._lock.release()

    def when_done(self, function: Callable[[Optional[str]], None]) -> None:
        """Calls it once the operation has ended, with its error or None, in any thread, or at once. It must not wait for
        operations. At most one function a handle, before anybody waits for it."""
        with self._lock:
            if self._handle is None:
                raise ValueError("this handle has been waited for")
            number = next(_callback_numbers)
            _callbacks[number] = function
            try:
                _c.check(_c.LIB.WarrenWhenDone(self._handle, _CALL_BACK, number))
            except RuntimeError:
                del _callbacks[number]
                raise

    def __del__(self) -> None:
        # Never waits: it may run anywhere, in an operation or in a process that was forked, too.
        handle = getattr(self, "_handle", None)
        if handle is not None:
            _dropped.append((handle, (self._result, self._kept)))


def wait_all(handles: Iterable[Handle[Any]]) -> List[Any]:
    """The results of all, when they are there. Raises the first error, after all have ended."""
    results, first = [], None
    for handle in handles:
        try:
            results.append(handle.wait())
        except Exception as error:  # pylint: disable=broad-except
            first = first or error
    if first is not None:
        raise first
    return results


def _options(name: Optional[str], timeout: Optional[float]) -> Any:
    return _c.CallOptions(ctypes.sizeof(_c.CallOptions), None if name is None else _name(name, "an operation"),
                          0 if timeout is None else timeout)


class Call(Generic[T]):
    """One call that is ready: the function's name, its arguments, its result and what has to stay until it has ended."""

    def __init__(self, name: str, arguments: Sequence[Any], result: T, *kept: Any) -> None:
        self._name, self._arguments, self._result, self._kept = name, arguments, result, kept

    def run(self) -> T:
        result = getattr(_c.LIB, self._name)(*self._arguments)
        for kept in self._kept:
            if isinstance(kept, _Custom):
                kept.check(result)
        _c.check(result)
        return self._result

    def begin(self, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[T]:
        if _dropped:
            _free_dropped()
        options = _options(name, timeout)
        handle = _c.handle(getattr(_c.LIB, self._name + "Async"), *self._arguments, ctypes.byref(options))
        return Handle(handle, self._result, self._kept)

    def enqueue(self, coordinator: int, name: str, priority: int, group: Optional[Tuple[str, int]]) -> Handle[T]:
        """By name, on a coordinator instead of the communicator that the arguments begin with."""
        if _dropped:
            _free_dropped()
        options = _c.EnqueueOptions(ctypes.sizeof(_c.EnqueueOptions), _int(priority, "priority"), None, 0)
        if group is not None:
            if not isinstance(group, tuple) or len(group) != 2:
                raise TypeError(f"a group is its name and how many operations are in it, not {group!r}")
            options.group, options.group_size = _name(group[0], "a group"), _int(group[1], "the size of a group")
        function = getattr(_c.LIB, self._name.replace("Warren", "WarrenEnqueue", 1))
        handle = _c.handle(function, coordinator, _name(name, "an operation"), *self._arguments[1:], ctypes.byref(options))
        return Handle(handle, self._result, self._kept)


class _DeviceCall(Call[T]):
    """The same on the memory of GPUs."""

    def run(self) -> T:
        return self.begin().wait()

    def begin(self, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[T]:
        if name is not None or timeout is not None:
            raise TypeError("calls on arrays on a GPU take neither a name nor a timeout")
        if _dropped:
            _free_dropped()
        return Handle(_c.handle(getattr(_c.LIB, self._name), *self._arguments), self._result, self._kept)

    def enqueue(self, coordinator: int, name: str, priority: int, group: Optional[Tuple[str, int]]) -> Handle[T]:
        raise TypeError(f"'{name}' is an array on a GPU; named operations take arrays in host memory")


#: What warren/c_api.h calls the element types of rabit/device.h, as far as it has them.
_DEVICE_TYPES = (*range(6), _c.TYPES["float16"], _c.TYPES["float32"], _c.TYPES["float64"], _c.TYPES["bfloat16"])


def _on_device(data: Any, stream: Any, what: str) -> bool:
    kind = data.__dlpack_device__()[0] if hasattr(data, "__dlpack_device__") else None
    if hasattr(data, "__cuda_array_interface__") or kind in (2, 13):  # DLPack's kDLCUDA and kDLCUDAManaged
        return True
    if stream is not None:
        raise TypeError(f"{what}: a stream is for arrays on a GPU, not for {type(data).__name__}")
    return False


def _device_arrays(what: str, stream: Any, *arrays: Any) -> Tuple[List[Any], int, Any]:
    """The arrays, which are of one type, that type, and the stream's address."""
    from warren import device  # pylint: disable=import-outside-toplevel
    on = device.stream_address(stream)
    found = [device.array_of(array, on) for array in arrays]
    if any(array.type != found[0].type for array in found):
        raise TypeError(f"{what}: the arrays are not of one type")
    if found[0].type >= len(_DEVICE_TYPES):
        raise TypeError(f"{what} takes no arrays of 8-bit floats")
    return found, _DEVICE_TYPES[found[0].type], on


class Communicator:
    """Some ranks of the job. Made by `world` and by `split`, `create`, `local`, `cross` of another, which all ranks of that
    one call; false when this rank is in no group. Freed when it is no longer referred to, or by `free`."""

    def __init__(self, handle: int) -> None:
        self._comm: Optional[int] = handle or None
        self.rank, self.size = -1, 0
        if self._comm:
            for name in ("rank", "size"):
                value = ctypes.c_int()
                _c.check(getattr(_c.LIB, f"WarrenComm{name.capitalize()}")(self._comm, ctypes.byref(value)))
                setattr(self, name, value.value)

    def __bool__(self) -> bool:
        return self._comm is not None

    def __repr__(self) -> str:
        return f"<warren communicator, rank {self.rank} of {self.size}>" if self else "<no warren communicator>"

    def free(self) -> None:
        """Leaves it, without the others."""
        comm, self._comm, self.size = self._comm, None, 0
        if comm:
            _c.LIB.WarrenCommFree(comm)

    def __del__(self) -> None:
        if _c is not None and _c.LIB is not None:  # at the end of the interpreter they may be
            self.free()

    def set_timeout(self, seconds: float) -> None:
        """For how long each further call of this rank may wait for a rank that lives, where it has no `timeout` of its own."""
        _c.check(_c.LIB.WarrenCommSetTimeout(self._comm, seconds))

    def rank_in_world(self, rank: int) -> int:
        """What a rank here is in the world; messages of errors name ranks of the world."""
        value = ctypes.c_int()
        _c.check(_c.LIB.WarrenCommRankInWorld(self._comm, _int(rank, "rank"), ctypes.byref(value)))
        return value.value

    # --- others, made of this one ---

    def split(self, color: int, key: int = 0) -> "Communicator":
        """The ranks that give the same color, ordered by key and, where keys are equal, by rank; none for a negative
        color."""
        return _made(_c.LIB.WarrenCommSplit, self._comm, _int(color, "color"), _int(key, "key"))

    def create(self, ranks: Sequence[int]) -> "Communicator":
        """These ranks in this order; all give the same list. None for ranks that are not in it."""
        numbers = [_int(rank, "rank") for rank in ranks]
        return _made(_c.LIB.WarrenCommCreate, self._comm, (ctypes.c_int * len(numbers))(*numbers), len(numbers))

    def group(self, ranks: Sequence[int], name: str, allgather: Allgather) -> "Communicator":
        """These ranks in this order, who alone call it, and find each other by `allgather`; see `meet`. `name`: for messages,
        another one for each communicator of the job."""
        numbers = [_int(rank, "rank") for rank in ranks]
        if self.rank not in numbers:
            raise ValueError(f"rank {self.rank} makes a group of the ranks {numbers}, and is not among them")
        with _rendezvous(numbers.index(self.rank), len(numbers), allgather) as rendezvous:
            return _made(_c.LIB.WarrenCommGroup, self._comm, (ctypes.c_int * len(numbers))(*numbers), len(numbers),
                         _name(name, "a group"), rendezvous)

    def local(self) -> "Communicator":
        """The ranks of this host."""
        return _made(_c.LIB.WarrenCommLocal, self._comm)

    def cross(self) -> "Communicator":
        """The ranks that have the same place on their hosts."""
        return _made(_c.LIB.WarrenCommCross, self._comm)

    def coordinator(self, fusion_bytes: Optional[int] = None, cycle_time: Optional[float] = None,
                    autotune: Optional[bool] = None, stall_warning: Optional[float] = None,
                    stall_error: Optional[float] = None) -> "Coordinator":
        """For operations that the ranks give by name, each in an order of its own. All ranks call it. Times are in seconds;
        the arguments of rank 0 count, and what is left out is what warren/c_api.h says of WarrenCoordinatorOptions."""
        cycle_us = -1 if cycle_time is None else round(cycle_time * 1e6)
        if fusion_bytes is not None and not 0 <= fusion_bytes < 1 << 63:
            raise ValueError(f"fusion_bytes is {fusion_bytes}; expected bytes from 0 on")
        options = _c.CoordinatorOptions(ctypes.sizeof(_c.CoordinatorOptions), -1 if fusion_bytes is None else fusion_bytes,
                                      _int(cycle_us, "cycle_time in microseconds"), -1 if autotune is None else int(autotune),
                                      -1 if stall_warning is None else stall_warning,
                                      -1 if stall_error is None else stall_error)
        return Coordinator(self, _c.handle(_c.LIB.WarrenCoordinatorCreate, self._comm, ctypes.byref(options)))

    def mailbox(self) -> "Mailbox":
        """For messages with tags between these ranks, in any order and from any thread. All ranks call it."""
        return Mailbox(self, _c.handle(_c.LIB.WarrenMailboxCreate, self._comm))

    # --- reductions: by an Op, or by a function of two arrays (lower ranks, higher ranks) to one ---
    #
    # allreduce, reduce_scatter, broadcast and allgather take arrays on a GPU, too (a torch.Tensor, a cupy.ndarray, ...; see
    # warren.device): with an `out` on the GPU, by an Op, with equal parts, on `stream`, by default the default one.

    def allreduce(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, out: Optional[Array] = None,
                  stream: Any = None) -> Array:
        """The reduction of each element over all ranks. `out` may be `data`."""
        return self._allreduce(data, op, out, stream).run()

    def allreduce_async(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, out: Optional[Array] = None,
                        stream: Any = None, *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`allreduce` without waiting."""
        return self._allreduce(data, op, out, stream).begin(name, timeout)

    def reduce(self, data: ArrayLike, root: int, op: Union[int, Combine] = Op.SUM) -> Optional[Array]:
        """The same at the root alone; None elsewhere."""
        return self._reduce(data, root, op).run()

    def reduce_async(self, data: ArrayLike, root: int, op: Union[int, Combine] = Op.SUM,
                     *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Optional[Array]]:
        """`reduce` without waiting."""
        return self._reduce(data, root, op).begin(name, timeout)

    def reduce_scatter(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, counts: Optional[Sequence[int]] = None,
                       out: Optional[Array] = None, stream: Any = None) -> Array:
        """This rank's part of the reduction: counts[rank] rows of the first axis; all ranks give the same counts, by default
        equal ones."""
        return self._reduce_scatter(data, op, counts, out, stream).run()

    def reduce_scatter_async(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, counts: Optional[Sequence[int]] = None,
                             out: Optional[Array] = None, stream: Any = None,
                             *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`reduce_scatter` without waiting."""
        return self._reduce_scatter(data, op, counts, out, stream).begin(name, timeout)

    # --- moving elements ---

    def broadcast(self, data: Array, root: int, stream: Any = None) -> Array:
        """Makes `data`, a contiguous array, the root's, in place, and returns it."""
        return self._broadcast(data, root, stream).run()

    def broadcast_async(self, data: Array, root: int, stream: Any = None,
                        *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`broadcast` without waiting."""
        return self._broadcast(data, root, stream).begin(name, timeout)

    def allgather(self, data: ArrayLike, counts: Optional[Sequence[int]] = None, out: Optional[Array] = None,
                  stream: Any = None) -> Array:
        """All ranks' arrays, one after the other along the first axis; single numbers become a row. `counts`, the same on all
        ranks, where they bring different numbers of rows."""
        return self._allgather(data, counts, out, stream).run()

    def allgather_async(self, data: ArrayLike, counts: Optional[Sequence[int]] = None, out: Optional[Array] = None,
                        stream: Any = None, *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`allgather` without waiting."""
        return self._allgather(data, counts, out, stream).begin(name, timeout)

    def gather(self, data: ArrayLike, root: int, counts: Optional[Sequence[int]] = None) -> Optional[Array]:
        """The same at the root, which alone needs the counts; None elsewhere."""
        return self._gather(data, root, counts).run()

    def gather_async(self, data: ArrayLike, root: int, counts: Optional[Sequence[int]] = None,
                     *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Optional[Array]]:
        """`gather` without waiting."""
        return self._gather(data, root, counts).begin(name, timeout)

    def scatter(self, data: Optional[ArrayLike], root: int, out: Array, counts: Optional[Sequence[int]] = None) -> Array:
        """Fills `out` with this rank's part of the root's array, and returns it: counts[rank] rows of the first axis, by
        default equal parts. Others than the root give None, and need no counts."""
        return self._scatter(data, root, out, counts).run()

    def scatter_async(self, data: Optional[ArrayLike], root: int, out: Array,
                      counts: Optional[Sequence[int]] = None,
                      *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`scatter` without waiting."""
        return self._scatter(data, root, out, counts).begin(name, timeout)

    def all_to_all(self, data: ArrayLike, send_counts: Optional[Sequence[int]] = None,
                   recv_counts: Optional[Sequence[int]] = None) -> Array:
        """What all ranks have for this one, one after the other along the first axis: each rank's array has
        send_counts[r] rows for rank r, and recv_counts[r] come from it. By default equal parts."""
        return self._all_to_all(data, send_counts, recv_counts).run()

    def all_to_all_async(self, data: ArrayLike, send_counts: Optional[Sequence[int]] = None,
                         recv_counts: Optional[Sequence[int]] = None,
                         *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`all_to_all` without waiting."""
        return self._all_to_all(data, send_counts, recv_counts).begin(name, timeout)

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._barrier().run()

    def barrier_async(self, *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[None]:
        """`barrier` without waiting."""
        return self._barrier().begin(name, timeout)

    # --- messages ---

    def send(self, data: ArrayLike, to: int) -> None:
        """Each message has one `recv` of as many bytes. Returns when `data` may be used again: for a long message not before
        the other receives it, so that two ranks that send to each other first wait for ever; see `sendrecv`."""
        self._send(data, to).run()

    def send_async(self, data: ArrayLike, to: int,
                   *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[None]:
        """`send` without waiting."""
        return self._send(data, to).begin(name, timeout)

    def recv(self, out: Array, source: int) -> Array:
        """Fills `out` with the next message of rank `source`, and returns it."""
        return self._recv(out, source).run()

    def recv_async(self, out: Array, source: int,
                   *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`recv` without waiting."""
        return self._recv(out, source).begin(name, timeout)

    def sendrecv(self, data: ArrayLike, to: int, out: Array, source: int) -> Array:
        """Both at once."""
        return self._sendrecv(data, to, out, source).run()

    def sendrecv_async(self, data: ArrayLike, to: int, out: Array, source: int,
                       *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`sendrecv` without waiting."""
        return self._sendrecv(data, to, out, source).begin(name, timeout)

    # --- what each call is made of ---

    def _allreduce(self, data: ArrayLike, op: Union[int, Combine], out: Optional[Array], stream: Any = None) -> Call[Array]:
        if _on_device(data, stream, "allreduce"):
            arrays, kind, on = self._device_pair("allreduce", op, data, out, stream)
            if arrays[0].size != arrays[1].size:
                raise ValueError(f"allreduce of {arrays[0].size} elements into {arrays[1].size}")
            return self._device_call("WarrenDeviceAllreduce", arrays, arrays[0].size, (kind, op, on), out)
        array = _contiguous(data, "allreduce")
        result = _out(out, array.shape, array.dtype, "allreduce")
        place = (self._comm, array.ctypes.data, result.ctypes.data, array.size)
        if callable(op):
            custom = _Custom(op, array.dtype)
            return Call("WarrenAllreduceCustom", (*place, ctypes.byref(custom.op)), result, array, custom)
        return Call("WarrenAllreduce", (*place, _type(array, op, "allreduce"), int(op)), result, array)

    def _reduce(self, data: ArrayLike, root: int, op: Union[int, Combine]) -> Call[Optional[Array]]:
        root = _int(root, "root")
        array = _contiguous(data, "reduce")
        result = np.empty_like(array) if self.rank == root else None
        place = (self._comm, array.ctypes.data, None if result is None else result.ctypes.data, array.size)
        if callable(op):
            custom = _Custom(op, array.dtype)
            return Call("WarrenReduceCustom", (*place, ctypes.byref(custom.op), root), result, array, custom)
        return Call("WarrenReduce", (*place, _type(array, op, "reduce"), int(op), root), result, array)

    def _device_call(self, name: str, arrays: Sequence[Any], count: int, rest: Tuple[Any, ...], out: Any) -> _DeviceCall[Array]:
        return _DeviceCall(name, (self._comm, arrays[0].pointer, arrays[1].pointer, count, *rest), out, *arrays)

    @staticmethod
    def _device_pair(what: str, op: Union[int, Combine], data: Any, out: Any, stream: Any) -> Tuple[List[Any], int, Any]:
        if callable(op):
            raise TypeError(f"{what} on a GPU takes an Op")
        if out is None:
            raise TypeError(f"{what} on a GPU needs an array for its result (`out`)")
        return _device_arrays(what, stream, data, out)

    def _reduce_scatter(self, data: ArrayLike, op: Union[int, Combine], counts: Optional[Sequence[int]],
                        out: Optional[Array] = None, stream: Any = None) -> Call[Array]:
        if _on_device(data, stream, "reduce_scatter"):
            arrays, kind, on = self._device_pair("reduce_scatter", op, data, out, stream)
            if counts is not None or arrays[0].size != arrays[1].size * self.size:
                raise ValueError("reduce_scatter on a GPU has equal parts: `data` is so many times `out` as there are ranks")
            return self._device_call("WarrenDeviceReduceScatter", arrays, arrays[1].size, (kind, op, on), out)
        array = _contiguous(data, "reduce_scatter")
        rows = self._rows(array, counts, "reduce_scatter")
        result = _out(out, (rows[self.rank], *array.shape[1:]), array.dtype, "reduce_scatter")
        elements = _sizes([row * self._row(array) for row in rows])
        place = (self._comm, array.ctypes.data, result.ctypes.data, elements)
        if callable(op):
            custom = _Custom(op, array.dtype)
            return Call("WarrenReduceScatterVCustom", (*place, ctypes.byref(custom.op)), result, array, custom)
        return Call("WarrenReduceScatterV", (*place, _type(array, op, "reduce_scatter"), int(op)), result, array)

    def _broadcast(self, data: Array, root: int, stream: Any = None) -> Call[Array]:
        root = _int(root, "root")
        if _on_device(data, stream, "broadcast"):
            (one,), kind, on = _device_arrays("broadcast", stream, data)
            return self._device_call("WarrenDeviceBroadcast", [one, one], one.size, (kind, root, on), data)
        array = data if self.rank != root else _contiguous(data, "broadcast")
        if self.rank != root:
            _out(data, np.shape(data), getattr(data, "dtype", None), "broadcast")
        return Call("WarrenBroadcast", (self._comm, array.ctypes.data, array.nbytes, _c.BYTES, root), data, array)

    def _allgather(self, data: ArrayLike, counts: Optional[Sequence[int]], out: Optional[Array] = None,
                   stream: Any = None) -> Call[Array]:
        if _on_device(data, stream, "allgather"):
            arrays, kind, on = self._device_pair("allgather", Op.SUM, data, out, stream)
            if counts is not None or arrays[1].size != arrays[0].size * self.size:
                raise ValueError("allgather on a GPU has equal parts: `out` is so many times `data` as there are ranks")
            return self._device_call("WarrenDeviceAllgather", arrays, arrays[0].size, (kind, on), out)
        if self.size == 0:
            raise ValueError("allgather: this is no communicator, or it was freed")
        array = self._slice(data, "allgather", None if counts is None else self._checked(counts, "allgather")[self.rank])
        rows = [len(array)] * self.size if counts is None else self._checked(counts, "allgather")
        result = _out(out, (sum(rows), *array.shape[1:]), array.dtype, "allgather")
        place = (self._comm, array.ctypes.data, result.ctypes.data, self._bytes(array, rows), _c.BYTES)
        return Call("WarrenAllgatherV", place, result, array)

    def _gather(self, data: ArrayLike, root: int, counts: Optional[Sequence[int]]) -> Call[Optional[Array]]:
        root = _int(root, "root")
        array = self._slice(data, "gather", None)
        own = (self._comm, array.ctypes.data, array.nbytes)
        if self.rank != root:
            return Call("WarrenGatherV", (*own, None, None, _c.BYTES, root), None, array)
        rows = [len(array)] * self.size if counts is None else self._checked(counts, "gather")
        result = np.empty((sum(rows), *array.shape[1:]), array.dtype)
        return Call("WarrenGatherV", (*own, result.ctypes.data, self._bytes(array, rows), _c.BYTES, root), result, array)

    def _scatter(self, data: Optional[ArrayLike], root: int, out: Array, counts: Optional[Sequence[int]]) -> Call[Array]:
        root = _int(root, "root")
        _out(out, np.shape(out), getattr(out, "dtype", None), "scatter")
        own = (out.ctypes.data, out.nbytes, _c.BYTES, root)
        if self.rank != root:
            return Call("WarrenScatterV", (self._comm, None, None, *own), out)
        array = _contiguous(data if data is not None else np.empty(0), "scatter")
        if array.dtype != out.dtype:
            raise TypeError(f"scatter of {array.dtype} into {out.dtype}")
        sizes = self._bytes(array, self._rows(array, counts, "scatter"))
        return Call("WarrenScatterV", (self._comm, array.ctypes.data, sizes, *own), out, array)

    def _all_to_all(self, data: ArrayLike, send_counts: Optional[Sequence[int]],
                    recv_counts: Optional[Sequence[int]]) -> Call[Array]:
        array = _contiguous(data, "all_to_all")
        sent = self._rows(array, send_counts, "all_to_all")
        received = sent if recv_counts is None else self._checked(recv_counts, "all_to_all")
        result = np.empty((sum(received), *array.shape[1:]), array.dtype)
        place = (self._comm, array.ctypes.data, self._bytes(array, sent), result.ctypes.data, self._bytes(array, received))
        return Call("WarrenAllToAllV", (*place, _c.BYTES), result, array)

    def _barrier(self) -> Call[None]:
        return Call("WarrenBarrier", (self._comm,), None)

    def _send(self, data: ArrayLike, to: int) -> Call[None]:
        to = _int(to, "rank")
        array = _contiguous(data, "send")
        return Call("WarrenSend", (self._comm, array.ctypes.data, array.nbytes, _c.BYTES, to), None, array)

    def _recv(self, out: Array, source: int) -> Call[Array]:
        source = _int(source, "rank")
        _out(out, np.shape(out), getattr(out, "dtype", None), "recv")
        return Call("WarrenRecv", (self._comm, out.ctypes.data, out.nbytes, _c.BYTES, source), out)

    def _sendrecv(self, data: ArrayLike, to: int, out: Array, source: int) -> Call[Array]:
        to, source = _int(to, "rank"), _int(source, "rank")
        array = _contiguous(data, "sendrecv")
        _out(out, np.shape(out), getattr(out, "dtype", None), "sendrecv")
        place = (self._comm, array.ctypes.data, array.nbytes, to, out.ctypes.data, out.nbytes, source, _c.BYTES)
        return Call("WarrenSendRecv", place, out, array)

    # --- rows of arrays ---

    @staticmethod
    def _row(array: Array) -> int:
        """The elements of one."""
        return int(np.prod(array.shape[1:], dtype=np.int64))

    def _bytes(self, array: Array, rows: Sequence[int]) -> Any:
        return _sizes([row * self._row(array) * array.itemsize for row in rows])

    def _checked(self, counts: Sequence[int], what: str) -> List[int]:
        rows = [operator.index(count) for count in counts]
        if self.size == 0:
            raise ValueError(f"{what}: this is no communicator, or it was freed")
        if len(rows) != self.size or any(row < 0 for row in rows):
            raise ValueError(f"{what} needs {self.size} counts of rows, one for each rank, not {rows}")
        return rows

    def _rows(self, array: Array, counts: Optional[Sequence[int]], what: str) -> List[int]:
        """Of the parts of an array for all ranks."""
        if array.ndim == 0:
            raise ValueError(f"{what} needs an array with a row for each rank, not a single number")
        if self.size == 0:
            raise ValueError(f"{what}: this is no communicator, or it was freed")
        if counts is None:
            if len(array) % self.size:
                raise ValueError(f"{what}: {len(array)} rows are no equal parts for {self.size} ranks; give counts")
            return [len(array) // self.size] * self.size
        rows = self._checked(counts, what)
        if sum(rows) != len(array):
            raise ValueError(f"{what}: the counts {rows} are of {sum(rows)} rows, and there are {len(array)}")
        return rows

    @staticmethod
    def _slice(data: ArrayLike, what: str, rows: Optional[int]) -> Array:
        array = np.atleast_1d(_contiguous(data, what))
        if rows is not None and len(array) != rows:
            raise ValueError(f"{what}: this rank brings {len(array)} rows, and the counts say {rows}")
        return array


class Mailbox:
    """Messages with tags, beside the calls of a communicator and in no order with them: any number of them may be under way
    at once, and those from one rank to another with one tag keep their order. Made by `Communicator.mailbox`; ended by `free`,
    or when it is no longer referred to. Thread safe."""

    ANY_RANK = -1

    def __init__(self, communicator: Communicator, handle: int) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._mailbox: Optional[int] = handle

    def send(self, data: ArrayLike, to: int, tag: int = 0, timeout: Optional[float] = None) -> "Handle[None]":
        """To another rank. Ends when the array may be used again, which for a long message is not before the other receives
        it."""
        array = _contiguous(data, "send")
        return self.send_bytes(array.ctypes.data, array.nbytes, to, tag, timeout, array)

    def recv(self, out: Array, source: int = ANY_RANK, tag: int = 0, timeout: Optional[float] = None) -> "Handle[Array]":
        """From another rank, or any. A message of another length is an error of this receive alone."""
        _out(out, np.shape(out), getattr(out, "dtype", None), "recv")
        return self.recv_bytes(out.ctypes.data, out.nbytes, source, tag, timeout, out)

    # Of memory whose owner is kept until the message has ended.

    def send_bytes(self, at: int, count: int, to: int, tag: int, timeout: Optional[float], owner: Any) -> "Handle[None]":
        handle = _c.handle(_c.LIB.WarrenMailboxSend, self._open(), at, count, _int(to, "rank"), tag,
                           ctypes.byref(_options(None, timeout)))
        return Handle(handle, None, (owner,))

    def recv_bytes(self, at: int, count: int, source: int, tag: int, timeout: Optional[float], owner: T,
                   found: Any = None) -> "Handle[T]":
        """`found`: a ctypes.c_int that becomes the sender's rank."""
        handle = _c.handle(_c.LIB.WarrenMailboxRecv, self._open(), at, count, _int(source, "rank"), tag,
                           None if found is None else ctypes.byref(found), ctypes.byref(_options(None, timeout)))
        return Handle(handle, owner, (owner, found))

    def _open(self) -> int:
        if self._mailbox is None:
            raise ValueError("this mailbox was freed")
        return self._mailbox

    def free(self) -> None:
        """What is under way ends with an error."""
        mailbox, self._mailbox = self._mailbox, None
        if mailbox is not None:
            _c.LIB.WarrenMailboxFree(mailbox)

    def __del__(self) -> None:
        if getattr(self, "_mailbox", None) is not None and _c is not None and _c.LIB is not None:
            self.free()


Group = Optional[Tuple[str, int]]


class Coordinator:
    """Operations that each rank gives by name, in any order and from any thread: they are carried out, in the same order on all
    ranks, once all ranks have given them; small allreduces are packed into larger ones, and their sums are the same, bit for
    bit. Made by `Communicator.coordinator`; ended, for all ranks, by `close`, the end of a `with`, or when it is no longer
    referred to.

        with world.coordinator() as named:
            handles = [named.allreduce(name, gradient, Op.AVG, out=gradient) for name, gradient in gradients]
            collectives.wait_all(handles)

    A name may be given again when its operation has ended. What ranks call by one name has to be alike, or is an error of that
    operation alone. `priority`: of what is ready, larger ones run first. `group`, a name and a number: so many operations are
    carried out together, or, when one of them is wrong, none."""

    def __init__(self, communicator: Communicator, handle: int) -> None:
        # Ranks and sizes stay, also when the communicator is freed.
        self._communicator = Communicator(0)
        self._communicator.rank, self._communicator.size = communicator.rank, communicator.size
        self._coordinator = handle
        self._is_closed = False

    def _begin(self, call: "Call[T]", name: str, priority: int, group: Group) -> "Handle[T]":
        if self._is_closed:
            raise ValueError("this coordinator was closed")
        return call.enqueue(self._coordinator, name, priority, group)

    def allreduce(self, name: str, data: ArrayLike, op: Union[int, Combine] = Op.SUM, out: Optional[Array] = None,
                  priority: int = 0, group: Group = None) -> "Handle[Array]":
        """See `Communicator.allreduce`."""
        return self._begin(self._communicator._allreduce(data, op, out), name, priority, group)

    def reduce_scatter(self, name: str, data: ArrayLike, op: int = Op.SUM, counts: Optional[Sequence[int]] = None,
                       priority: int = 0, group: Group = None) -> "Handle[Array]":
        """See `Communicator.reduce_scatter`."""
        if callable(op):
            raise TypeError("a named reduce_scatter takes an Op")
        return self._begin(self._communicator._reduce_scatter(data, op, counts), name, priority, group)

    def broadcast(self, name: str, data: Array, root: int, priority: int = 0, group: Group = None) -> "Handle[Array]":
        """See `Communicator.broadcast`."""
        return self._begin(self._communicator._broadcast(data, root), name, priority, group)

    def allgather(self, name: str, data: ArrayLike, counts: Optional[Sequence[int]] = None, priority: int = 0,
                  group: Group = None) -> "Handle[Array]":
        """See `Communicator.allgather`."""
        return self._begin(self._communicator._allgather(data, counts), name, priority, group)

    def all_to_all(self, name: str, data: ArrayLike, send_counts: Optional[Sequence[int]] = None,
                   recv_counts: Optional[Sequence[int]] = None, priority: int = 0, group: Group = None) -> "Handle[Array]":
        """See `Communicator.all_to_all`."""
        return self._begin(self._communicator._all_to_all(data, send_counts, recv_counts), name, priority, group)

    def barrier(self, name: str, priority: int = 0, group: Group = None) -> "Handle[None]":
        """See `Communicator.barrier`."""
        return self._begin(self._communicator._barrier(), name, priority, group)

    def join(self) -> int:
        """This rank has no more: what it gave is carried out, and then it takes part in the allreduces and barriers of the
        others with elements that change nothing (an average still divides by all ranks), until all ranks have joined. Returns
        the rank of the job that was last."""
        if self._is_closed:
            raise ValueError("this coordinator was closed")
        last = ctypes.c_int()
        _c.check(_c.LIB.WarrenCoordinatorJoin(self._coordinator, ctypes.byref(last)))
        return last.value

    def close(self) -> None:
        """Ends it for all ranks: what is not ready on all of them by now ends with an error, there too. Waits for all ranks, and
        raises an error when one is lost meanwhile. From any thread, also while others are in its methods."""
        self._is_closed = True
        _c.check(_c.LIB.WarrenCoordinatorClose(self._coordinator))

    def __enter__(self) -> "Coordinator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_coordinator", 0):
            _c.LIB.WarrenCoordinatorFree(self._coordinator)

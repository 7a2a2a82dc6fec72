"""rabit's Python API over Warren's engine, for programs that use it directly.

    from warren import rabit

    with rabit.context():
        total = rabit.allreduce(numpy.ones(3), rabit.SUM)

Outside a job there is one worker, rank 0, and every call works between `init` and `finalize`. Not thread-safe, except for the queries
(rank, world size). Errors of the engine (such as an unreachable peer) are RuntimeErrors. After one, this rank is no longer part of the job:
further calls raise the error again, and so does `finalize`, which ends the session; then `init` may join again. A call refused because of
its arguments has no such effect."""
import contextlib
import ctypes
import operator
import os
import sys
from enum import IntEnum, unique
from typing import Any, Callable, Iterable, Iterator, Optional, Tuple, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from warren._engine import native as _native
from warren._engine import sealed as _sealed
from warren._launch import leaving as _leaving
from warren._launch import membership as _membership
from warren._launch import rank as _rank
from warren._launch import shared_tracker as _shared_tracker

T = TypeVar("T")


@unique
class Op(IntEnum):
    """The operation with which `allreduce` combines the elements of all ranks."""

    MAX = 0
    MIN = 1
    SUM = 2
    BITOR = 3


MAX, MIN, SUM, BITOR = Op.MAX, Op.MIN, Op.SUM, Op.BITOR

_PREPARE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NAMES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
_TYPES = {np.dtype(name).str: number for number, name in enumerate(_NAMES)}
_TYPES[np.dtype("float16").str] = 10
_BROADCAST, _GLOBAL_MODEL, _LOCAL_MODEL = "rabit.broadcast", "rabit.checkpoint, global model", "rabit.checkpoint, local model"
_ANY = -1  # the sender in the seals of checkpoints: any rank may send a checkpoint to a rank that was lost
_BFLOAT16 = 11  # numpy has no bfloat16; ml_dtypes, used by JAX and TensorFlow, registers one by this name


def _library() -> ctypes.CDLL:
    library = _native.library("librabit.so")
    library.RabitGetLastError.restype = ctypes.c_char_p
    library.RabitTryBroadcast.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int]
    library.RabitTryAllreduce.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, _PREPARE,
                                       ctypes.c_void_p]
    library.RabitTryCheckPoint.argtypes = [ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_ulong]
    library.RabitGetProcessorName.restype = None
    return library


def _cannot(_data: NDArray[Any], _op: int) -> bool:
    return False


_LIB = _library()
_NOTHING = _PREPARE(0)
_EXTENSION = _native.extension("warren_allreduce")  # after librabit, whose symbols it uses
_reduced = _EXTENSION.allreduce if _EXTENSION else _cannot  # returns False, without a reduction, for an array that needs conversion


def _check(result: int) -> None:
    if result != 0:
        raise RuntimeError(_LIB.RabitGetLastError().decode(errors="replace"))


def init(args: Optional[Iterable[Union[str, bytes]]] = None, lib: str = "standard") -> None:
    """Joins the job. `args` are `key=value` strings, sys.argv by default; arguments of another form are ignored. `lib` exists for old
    programs and is ignored: the library is always Warren's. Processes started by mpirun, srun or torchrun form one job, unless
    WARREN_BOOTSTRAP is `none`. Raises RuntimeError if the job cannot be joined."""
    del lib
    words = [os.fsencode(word) for word in (sys.argv if args is None else args)]
    _check_generation(words)
    _leaving.leave_postponed()
    _shared_tracker.before_init(words)
    array = (ctypes.c_char_p * len(words))(*words)
    with _leaving.lost_reports_first():
        _check(_LIB.RabitTryInit(len(words), array))
    _rank.joined_as(get_rank())


def _check_generation(words: Iterable[bytes]) -> None:
    """Raises RuntimeError if the job is elastic and the task ID among `words` does not name one of its generations."""
    names_generation = any(word.lower().startswith((b"dmlc_task_id=", b"rabit_task_id=")) and b"@" in word for word in words)
    if _membership.is_elastic() and not names_generation:
        raise RuntimeError("this job may lose workers (--num-workers MIN:MAX), and only warren.xgboost.train, "
                           "warren.lightgbm.train(..., elastic=True) and warren.horovod.elastic go on without them: start any other program "
                           "with a fixed number, --num-workers N")


def finalize() -> None:
    """Leaves the job. Raises RuntimeError if that fails, or if an earlier error had already ended the job for this rank; the session is
    over in any case. After an exception (`finally: finalize()`), this rank leaves only when the program is known to survive it: before the
    next `init`, or at exit. Otherwise the other ranks would take it for finished."""
    if not _leaving.postpone_after_error(leave):
        leave()


def leave() -> None:
    """`finalize` without regard to an exception that is being handled; for Warren's own modules."""
    with _leaving.others_report_first():
        _check(_LIB.RabitTryFinalize())
    _shared_tracker.left()


def abandon() -> None:
    """Leaves a job that is broken, such as the generation of an elastic job that has lost a worker, without an error and without waiting for
    the other ranks."""
    _leaving.forget_postponed()
    _LIB.RabitTryFinalize()
    _shared_tracker.left(failed=True)


@contextlib.contextmanager
def context(args: Optional[Iterable[Union[str, bytes]]] = None) -> Iterator[None]:
    """Calls `init`, and `finalize` at the end. After an exception `finalize` is not called, so that the other ranks do not take this rank
    for finished."""
    init(args)
    yield
    finalize()


def get_rank() -> int:
    """Returns this process's rank, counted from 0."""
    return int(_LIB.RabitGetRank())


def get_world_size() -> int:
    """Returns the number of ranks."""
    return int(_LIB.RabitGetWorldSize())


def is_distributed() -> bool:
    """Whether this process belongs to a job, which may have other ranks."""
    return bool(_LIB.RabitIsDistributed())


def tracker_print(msg: Any) -> None:
    """Prints `str(msg)` in the tracker's output or, if there is no tracker, on standard output. A NUL, which would end the message, becomes
    \\x00."""
    text = str(msg).replace("\0", "\\x00")
    if is_distributed():
        _check(_LIB.RabitTryTrackerPrint(text.encode()))
    else:
        print(text, end="", flush=True)


def get_processor_name() -> bytes:
    """Returns the name of this host."""
    name = ctypes.create_string_buffer(256)
    length = ctypes.c_ulong()
    _LIB.RabitGetProcessorName(name, ctypes.byref(length), ctypes.c_ulong(len(name)))
    return name.value


def broadcast(data: Optional[T], root: int) -> T:
    """Returns the object of rank `root` on all ranks. The object must be picklable; the other ranks' `data` is ignored. Raises TypeError on
    all ranks if the object cannot be pickled, and RuntimeError if another rank's bytes are not sealed with the job's token. In a job
    without a token (e.g. with a third-party tracker) the other ranks are trusted: unpickling can run any code that the sender chose."""
    root = operator.index(root)
    if not -(1 << 31) <= root < 1 << 31:  # C would truncate it to another rank
        raise RuntimeError(f"RabitBroadcast: root {root} is not a rank; ranks are 0 to {get_world_size() - 1}")
    length = ctypes.c_ulong()
    is_root = get_rank() == root
    message = _sealed.seal_or_refuse(data, _BROADCAST, root) if is_root else memoryview(b"")
    length.value = len(message)
    _check(_LIB.RabitTryBroadcast(ctypes.byref(length), ctypes.sizeof(length), root))
    buffer = message if is_root else memoryview(bytearray(length.value))
    if buffer:
        _check(_LIB.RabitTryBroadcast((ctypes.c_char * len(buffer)).from_buffer(buffer), len(buffer), root))
    if is_root and not _sealed.is_refusal(message):
        return data  # type: ignore[return-value]
    result: T = _sealed.loads(buffer, _BROADCAST, root)
    return result


def allreduce(data: NDArray[Any], op: int, prepare_fun: Optional[Callable[[NDArray[Any]], None]] = None) -> NDArray[Any]:
    """Replaces each element of `data` with the reduction of that element over all ranks, in place, and returns `data`.

    A non-contiguous array is reduced in a copy and written back; a read-only one is left unchanged, and the reduced copy is returned.
    `prepare_fun(data)` is called first to fill the array, unless this rank was lost and the result is already known from the other ranks.
    If it raises, allreduce raises the exception, and the job is over for this rank, as after an error of the engine.
    Types: (u)int8, (u)int32, (u)int64, float32, float64, float16 and the bfloat16 of ml_dtypes. 16-bit floats are summed as float32, and
    the sum is rounded once."""
    if prepare_fun is None and _reduced(data, op):
        return data
    if not isinstance(data, np.ndarray):
        raise TypeError(f"allreduce takes a numpy.ndarray, not {type(data).__name__}")
    kind = data.dtype.str
    number = _BFLOAT16 if data.dtype.name == "bfloat16" else _TYPES.get(kind)
    if number is None:
        raise TypeError(f"allreduce takes arrays of {', '.join(_NAMES)}, float16 and bfloat16 in native byte order, not of "
                        f"{data.dtype}")
    if op == 3 and (kind[1] == "f" or number == _BFLOAT16):
        raise TypeError(f"BITOR takes integers, not {data.dtype}")
    in_place = data.flags.c_contiguous and data.flags.writeable
    buffer = data if in_place else data.copy(order="C")
    failure = []

    def prepare(_: Any) -> None:
        try:
            assert prepare_fun is not None
            prepare_fun(data)
            if not in_place:
                np.copyto(buffer, data)
        except BaseException as error:  # pylint: disable=broad-except
            failure.append(error)
            _LIB.RabitTryGiveUp(f"the prepare function raised {type(error).__name__}".encode(errors="replace"))

    callback = _NOTHING if prepare_fun is None else _PREPARE(prepare)
    result = _LIB.RabitTryAllreduce(buffer.ctypes.data, buffer.size, number, int(op), callback, None)
    if failure:
        raise failure[0]
    _check(result)
    if not in_place and data.flags.writeable:
        np.copyto(data, buffer)
        return data
    return buffer


def version_number() -> int:
    """Returns the number of checkpoints so far."""
    return int(_LIB.RabitVersionNumber())


def load_checkpoint(with_local: bool = False) -> Union[Tuple[int, Any], Tuple[int, Any, Any]]:
    """Returns the newest checkpoint: (version, global model) or, if `with_local`, (version, global model, local model). Without a checkpoint,
    the version is 0 and the models are None. A rank that was lost receives the models from other ranks. Raises RuntimeError if they are not
    sealed with the job's token; without a token, the other ranks are trusted, as in `broadcast`."""
    global_model = ctypes.POINTER(ctypes.c_char)()
    global_length = ctypes.c_ulong()
    local_model = ctypes.POINTER(ctypes.c_char)()
    local_length = ctypes.c_ulong()
    number = ctypes.c_int()
    _check(_LIB.RabitTryLoadCheckPoint(ctypes.byref(number), ctypes.byref(global_model), ctypes.byref(global_length),
                                       ctypes.byref(local_model) if with_local else None,
                                       ctypes.byref(local_length) if with_local else None))
    version = number.value
    found = _sealed.loads(ctypes.string_at(global_model, global_length.value), _GLOBAL_MODEL, _ANY) if version > 0 else None
    if not with_local:
        return version, found
    local = None
    if version > 0 and local_length.value:
        local = _sealed.loads(ctypes.string_at(local_model, local_length.value), _LOCAL_MODEL, _ANY)
    return version, found, local


def checkpoint(global_model: Any, local_model: Any = None) -> None:
    """Saves a checkpoint and increments the version. A rank that is lost later recovers the global model, which must be the same on all
    ranks, and its own local model, and resumes from this checkpoint. Raises RuntimeError if there is a local model, but the first
    `load_checkpoint` or `checkpoint` had none, or the reverse."""
    whole = bytes(_sealed.seal(global_model, _GLOBAL_MODEL, _ANY))
    local = None if local_model is None else bytes(_sealed.seal(local_model, _LOCAL_MODEL, _ANY))
    _check(_LIB.RabitTryCheckPoint(whole, len(whole), local, 0 if local is None else len(local)))

"""warren/c_api.h for warren.collectives: its structs, its functions with their argument types, and its errors."""
import ctypes
import types
from typing import Any, Callable, Dict, List

from warren._engine import native as _native

_NAMES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
TYPES = {name: number for number, name in enumerate(_NAMES)}
TYPES.update({"float16": 10, "bfloat16": 11})
BYTES = TYPES["uint8"]

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class CoordinatorOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("fusion_bytes", ctypes.c_longlong), ("cycle_us", ctypes.c_int),
                ("autotune", ctypes.c_int), ("stall_warning_seconds", ctypes.c_double),
                ("stall_error_seconds", ctypes.c_double)]


class CallOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("timeout_seconds", ctypes.c_double)]


class EnqueueOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("priority", ctypes.c_int), ("group", ctypes.c_char_p),
                ("group_size", ctypes.c_size_t)]


#: The type of the function that a rendezvous's `allgather` calls with the record of each rank.
GIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, GIVE, ctypes.c_void_p, ctypes.c_void_p,
                             ctypes.c_size_t, ctypes.c_void_p)
WHEN_DONE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)


class Rendezvous(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("rank", ctypes.c_int), ("size", ctypes.c_int), ("allgather", ALLGATHER),
                ("context", ctypes.c_void_p)]


class CustomOp(ctypes.Structure):
    _fields_ = [("function", FUNCTION), ("context", ctypes.c_void_p), ("element_bytes", ctypes.c_size_t),
                ("release", ctypes.c_void_p)]


def _functions() -> Any:
    """Returns the library's functions, but only those whose argument types are declared: ctypes would truncate a pointer passed as an
    undeclared argument."""
    library = _native.library("librabit.so")
    comm, pointer, size, number = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    functions: Dict[str, List[Any]] = {
        "WarrenCommWorld": [pointer],
        "WarrenCommSplit": [comm, number, number, pointer],
        "WarrenCommCreate": [comm, pointer, size, pointer],
        "WarrenCommMeet": [pointer, pointer],
        "WarrenCommGroup": [comm, pointer, size, ctypes.c_char_p, pointer, pointer],
        "WarrenCommLocal": [comm, pointer],
        "WarrenCommCross": [comm, pointer],
        "WarrenCommFree": [comm],
        "WarrenCommSetTimeout": [comm, ctypes.c_double],
        "WarrenCommRank": [comm, pointer],
        "WarrenCommSize": [comm, pointer],
        "WarrenCommRankInWorld": [comm, number, pointer],
        "WarrenAllreduce": [comm, pointer, pointer, size, number, number],
        "WarrenAllreduceCustom": [comm, pointer, pointer, size, pointer],
        "WarrenReduce": [comm, pointer, pointer, size, number, number, number],
        "WarrenReduceCustom": [comm, pointer, pointer, size, pointer, number],
        "WarrenReduceScatter": [comm, pointer, pointer, size, number, number],
        "WarrenReduceScatterV": [comm, pointer, pointer, pointer, number, number],
        "WarrenReduceScatterVCustom": [comm, pointer, pointer, pointer, pointer],
        "WarrenBroadcast": [comm, pointer, size, number, number],
        "WarrenAllgather": [comm, pointer, pointer, size, number],
        "WarrenAllgatherV": [comm, pointer, pointer, pointer, number],
        "WarrenGatherV": [comm, pointer, size, pointer, pointer, number, number],
        "WarrenScatterV": [comm, pointer, pointer, pointer, size, number, number],
        "WarrenAllToAll": [comm, pointer, pointer, size, number],
        "WarrenAllToAllV": [comm, pointer, pointer, pointer, pointer, number],
        "WarrenBarrier": [comm],
        "WarrenDeviceAllreduce": [comm, pointer, pointer, size, number, number, pointer, pointer],
        "WarrenDeviceReduceScatter": [comm, pointer, pointer, size, number, number, pointer, pointer],
        "WarrenDeviceBroadcast": [comm, pointer, pointer, size, number, number, pointer, pointer],
        "WarrenDeviceAllgather": [comm, pointer, pointer, size, number, pointer, pointer],
        "WarrenSend": [comm, pointer, size, number, number],
        "WarrenRecv": [comm, pointer, size, number, number],
        "WarrenSendRecv": [comm, pointer, size, number, pointer, size, number, number],
    }
    for name, arguments in list(functions.items()):
        if hasattr(library, f"{name}Async"):
            functions[f"{name}Async"] = [*arguments, pointer, pointer]
    named: Dict[str, List[Any]] = {
        "WarrenEnqueueAllreduce": [pointer, pointer, size, number, number],
        "WarrenEnqueueAllreduceCustom": [pointer, pointer, size, pointer],
        "WarrenEnqueueReduceScatterV": [pointer, pointer, pointer, number, number],
        "WarrenEnqueueBroadcast": [pointer, size, number, number],
        "WarrenEnqueueAllgatherV": [pointer, pointer, pointer, number],
        "WarrenEnqueueAllToAllV": [pointer, pointer, pointer, pointer, number],
        "WarrenEnqueueBarrier": [],
    }
    for name, arguments in named.items():
        functions[name] = [pointer, ctypes.c_char_p, *arguments, pointer, pointer]
    functions.update({
        "WarrenCoordinatorCreate": [comm, pointer, pointer],
        "WarrenCoordinatorClose": [pointer],
        "WarrenCoordinatorFree": [pointer],
        "WarrenCoordinatorJoin": [pointer, pointer],
        "WarrenMailboxCreate": [comm, pointer],
        "WarrenMailboxFree": [pointer],
        "WarrenMailboxSend": [pointer, pointer, size, number, ctypes.c_longlong, pointer, pointer],
        "WarrenMailboxRecv": [pointer, pointer, size, number, ctypes.c_longlong, pointer, pointer, pointer],
        "WarrenWait": [pointer],
        "WarrenTest": [pointer, pointer],
        "WarrenWhenDone": [pointer, WHEN_DONE, pointer],
        "WarrenHandleFree": [pointer],
        "WarrenInit": [number, pointer],
        "WarrenFinalize": [],
        "WarrenGetLastError": [],
    })
    for name, arguments in functions.items():
        getattr(library, name).argtypes = arguments
    library.WarrenGetLastError.restype = ctypes.c_char_p
    return types.SimpleNamespace(**{name: getattr(library, name) for name in functions})


LIB = _functions()


def check(result: int) -> None:
    if result != 0:
        raise RuntimeError(LIB.WarrenGetLastError().decode(errors="replace"))


def number_of(query: Callable[..., int], *arguments: Any) -> int:
    """Calls `query`, and returns the int that it stores through its last argument. Raises RuntimeError if the call fails."""
    out = ctypes.c_int()
    check(query(*arguments, ctypes.byref(out)))
    return out.value


def handle(make: Callable[..., int], *arguments: Any) -> int:
    """Calls `make`, and returns the pointer that it stores through its last argument, such as a communicator or a handle. Raises
    RuntimeError if the call fails."""
    out = ctypes.c_void_p()
    check(make(*arguments, ctypes.byref(out)))
    return out.value or 0

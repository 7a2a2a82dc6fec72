"""Parameter servers: arrays whose elements are spread over the ranks of a job. Ranks send updates and receive current values.

    from warren import collectives
    from warren.parameter_server import ParameterServer

    with collectives.context() as world:
        with ParameterServer(weights, root=0) as server:        # all ranks; the weights of rank 0
            sent = server.send(gradient, "add", scale=-0.1)     # added on the servers, while this rank goes on
            sent.wait()
            weights = server.receive().wait()

No rank waits for another: each sends and receives whenever it likes. The interface is that of TorchMPI (torchmpi.parameterserver).

Data flow: the flat array is cut into as many contiguous parts as there are servers; rank r serves part r. A send goes to all servers at
once, directly from slices of the caller's array; each server's thread applies it to its part by the rule and confirms. A receive asks all
servers, and each answer is written directly to its place in the result. See warren/_shard_service.py for the messages and warren/_shards.py
for the servers' logic.

Guarantees:
- A send that has been waited for has been applied on all servers: any rank that receives afterwards sees it.
- The sends and receives of one rank to one server are carried out in the order in which they were made, whether waited for or not. Those of
  different threads of a rank are not ordered.
- The effect of one send on one part is visible as a whole or not at all. The parts of one receive may be from different moments.
- Do not touch the array of a send or receive until it has ended.

Errors: wrong shapes, types and rules are refused immediately, without side effects. If a rule raises an exception, the send raises a
RuntimeError with its text, and the server continues with the part as the rule left it. If a rank dies, all waiting calls name it within a
second; the messages of the communicator and all its parameter servers end.

One thread serves all parameter servers of a communicator, and sleeps while idle. Thread-safe, except for creating and freeing."""
import threading
import weakref
from typing import Any, Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from warren._shard_service import Pending, ShardService
from warren._shards import Array, Part, RuleShard, Shard, check_numbers, register_rule, rule_of, spread
from warren._world import communicator_or_world
from warren.collectives import Communicator

__all__ = ["Handle", "ParameterServer", "register_rule"]

T = TypeVar("T")
U = TypeVar("U")


class Handle(Generic[T]):
    """A pending send or receive. It is carried out even if the handle is dropped. Thread-safe."""

    def __init__(self, requests: Sequence[Pending], result: T, told: Optional[threading.Event] = None) -> None:
        self._requests, self._result = requests, result
        self._told = told or threading.Event()  # set once a caller has got the error

    def wait(self) -> T:
        """Returns the result once the operation has ended. Raises RuntimeError if it failed on a server."""
        error = self._error()
        if error is not None:
            self._told.set()
            raise error
        return self._result

    def _error(self) -> Optional[RuntimeError]:
        """Returns the first error after all requests have ended: until then they use the arrays."""
        first: Optional[RuntimeError] = None
        for request in self._requests:
            try:
                request.wait()
            except RuntimeError as error:
                first = first or error
        return first

    def done(self) -> bool:
        """Whether the operation has ended, successfully or not."""
        return all(request.done() for request in self._requests)

    def with_result(self, result: U) -> "Handle[U]":
        """Returns a handle of the same operation whose `wait` returns `result`."""
        return Handle(self._requests, result, self._told)

    def untold(self) -> Optional[Exception]:
        """Waits, and returns the error; None if there is none or `wait` has raised it already."""
        error = self._error()
        return None if self._told.is_set() else error


# --- one service per communicator, as long as it has arrays ---

class _Shared:
    """A service and the number of its arrays."""

    def __init__(self, communicator: Communicator) -> None:
        self.service = ShardService(communicator)
        self.num_arrays = self.last_number = 0


_services: "weakref.WeakKeyDictionary[Communicator, _Shared]" = weakref.WeakKeyDictionary()


class ShardedArray:
    """A flat array whose parts are stored on some of the ranks. All ranks create and free their arrays in the same order."""

    def __init__(self, communicator: Communicator, parts: Sequence[Part], own: Optional[Array],
                 make: Callable[[Array], Shard]) -> None:
        """`own` is the initial value of this rank's part, if it has one; `make` turns it into a shard."""
        self._communicator, self._parts = communicator, parts
        shared = _services.get(communicator)
        if shared is None:
            shared = _services[communicator] = _Shared(communicator)
        shared.num_arrays += 1
        shared.last_number += 1
        self._number, self._service = shared.last_number, shared.service
        self._kept_ones: List[Handle[Any]] = []  # pending ones, and failed ones whose error no caller has got
        self._lock = threading.Lock()
        self._is_freed = False
        if own is not None:
            self._service.add(self._number, make(own))
        communicator.barrier()  # from now on all ranks serve it

    def send(self, elements: Optional[Array], rule: str = "", scale: float = 1) -> Handle[None]:
        """`elements` is flat and contiguous."""
        requests = []
        for part in self._parts:
            slice_ = None if elements is None else elements[part.begin:part.end]
            requests.append(self._service.send(self._number, part, slice_, rule, scale))
        return self._kept(Handle(requests, None))

    def receive(self, flat: Array, result: T) -> Handle[T]:
        """Fills `flat`, which is contiguous."""
        requests = [self._service.receive(self._number, part, flat[part.begin:part.end]) for part in self._parts]
        return self._kept(Handle(requests, result))

    def check_open(self, what: str) -> None:
        if self._is_freed:
            raise ValueError(f"{what}: this parameter server was freed")

    def _kept(self, handle: Handle[T]) -> Handle[T]:
        """Keeps the handle until it has ended, in case the caller drops it, and keeps the first error."""
        with self._lock:
            ended = [other for other in self._kept_ones if other.done()]
            failed = next((other for other in ended if other.untold() is not None), None)
            self._kept_ones = [other for other in self._kept_ones if other not in ended]
            self._kept_ones += [handle] if failed is None else [failed, handle]  # the first error is raised by free
        return handle

    def free(self) -> None:
        """Waits for all pending operations, on all ranks, and raises the first error that no caller has got. All ranks call it."""
        if self._is_freed:
            return
        self._is_freed = True
        errors = [handle.untold() for handle in self._kept_ones]
        self._kept_ones = []
        self._leave()
        for error in errors:
            if error is not None:
                raise error

    def _leave(self) -> None:
        shared = _services[self._communicator]
        try:
            self._communicator.barrier()  # no rank uses it after this
        finally:
            self._service.remove(self._number)
            shared.num_arrays -= 1
            if shared.num_arrays == 0:
                del _services[self._communicator]
                self._service.close()


def slice_of(communicator: Communicator, flat: Array, parts: Sequence[Part], root: Optional[int]) -> Optional[Array]:
    """Returns a copy of this rank's part of its own array, or of the root's array if there is a root."""
    own = next((part for part in parts if part.rank == communicator.rank), None)
    values = None if own is None else flat[own.begin:own.end].copy()
    if root is not None:
        counts = [0] * communicator.size
        for part in parts:
            counts[part.rank] = part.end - part.begin
        communicator.scatter(flat, root, np.empty(0, flat.dtype) if values is None else values, counts)
    return values


def check_alike(communicator: Communicator, what: str, said: Tuple[Any, ...]) -> None:
    """Raises ValueError on all ranks unless they all pass the same values."""
    text = np.zeros(1, "S256")
    text[0] = repr(said).encode()[:256]
    found = [one.decode(errors="replace") for one in communicator.allgather(text).tolist()]
    other = next((rank for rank, one in enumerate(found) if one != found[0]), None)
    if other is not None:
        raise ValueError(f"{what}: rank 0 has {found[0]}, and rank {other} {found[other]}; all ranks must give the same")


class ParameterServer:
    """An array stored on servers. All ranks create it, with arrays of the same shape and type; `free` or the end of a `with` block ends
    it."""

    def __init__(self, array: Array, communicator: Optional[Communicator] = None, servers: Optional[int] = None,
                 root: Optional[int] = None) -> None:
        """`communicator` defaults to the world, which is joined if necessary. `servers` is the number of ranks that serve, the first ones;
        all by default. Each server's part is initialised from its own array, or from the array of rank `root` if that is given; the array
        is copied."""
        self._communicator = communicator_or_world(communicator, "a parameter server")
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise TypeError(f"a parameter server holds a NumPy array of numbers, not {_named(array)}")
        check_numbers(array.dtype, "a parameter server")
        size = self._communicator.size
        num_servers = size if servers is None else servers
        if not 1 <= num_servers <= size:
            raise ValueError(f"{num_servers} servers of {size} ranks; expected 1 to {size}")
        if root is not None and not 0 <= root < size:
            raise ValueError(f"root {root} is not one of the {size} ranks")
        check_alike(self._communicator, "a parameter server", (array.shape, array.dtype.str, num_servers, root))
        self.shape, self.dtype = array.shape, array.dtype
        parts = spread(array.size, range(num_servers))
        own = slice_of(self._communicator, np.ascontiguousarray(array).reshape(-1), parts, root)
        self._array = ShardedArray(self._communicator, parts, own,
                                   lambda values: RuleShard(values, self._communicator.rank))

    def send(self, array: Optional[Array], rule: str = "add", scale: Union[int, float] = 1) -> Handle[None]:
        """Makes the servers apply scale * array by a rule: "add" adds it, "copy" replaces the elements, "zero" sets all elements to 0 and
        takes None as the array; see `register_rule` for others. A contiguous array is not copied; do not change it until the send has
        ended."""
        self._array.check_open("send")
        rule_of(rule, self._communicator.rank)
        if array is None:
            if rule != "zero":
                raise TypeError(f"send: the rule '{rule}' takes an array, not None")
            return self._array.send(None, rule)
        self._check(array, "send")
        return self._array.send(np.ascontiguousarray(array).reshape(-1), rule, self._checked_scale(scale))

    def receive(self, out: Optional[Array] = None) -> Handle[Array]:
        """Receives the array into `out`, which must be contiguous, or into a new array; `wait` returns it."""
        self._array.check_open("receive")
        if out is None:
            out = np.empty(self.shape, self.dtype)
        self._check(out, "receive")
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError("receive needs a contiguous, writable array for its result")
        return self._array.receive(out.reshape(-1), out)

    def free(self) -> None:
        """Ends the parameter server. All ranks call it, in the order of creation. Waits for all pending operations, and raises the first
        error of this rank that no caller has got."""
        self._array.free()

    def __enter__(self) -> "ParameterServer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        # After an exception the other ranks may never call free.
        if kind is None:
            self.free()

    def _check(self, array: Any, what: str) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{what}: this parameter server holds an array of {self.shape} {self.dtype}, not {_named(array)}")
        if array.shape != self.shape:
            raise ValueError(f"{what}: this parameter server holds an array of {self.shape}, not of {array.shape}")
        if array.dtype != self.dtype:
            raise TypeError(f"{what}: this parameter server holds {self.dtype}, not {array.dtype}; see array.astype")

    def _checked_scale(self, scale: Union[int, float]) -> float:
        number = float(scale)
        if self.dtype.kind in "iub" and not (number.is_integer() and abs(number) <= 1 << 53):
            raise ValueError(f"send: a scale of {scale} for elements of {self.dtype}; expected a whole number")
        if self.dtype.kind in "ub" and number < 0:
            raise ValueError(f"send: a scale of {scale} for elements of {self.dtype}; expected at least 0")
        return number


def _named(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__

"""Parameter servers: arrays whose elements lie on the ranks of a job, which send what changes them and receive what they are.

    from warren import collectives
    from warren.parameter_server import ParameterServer
    with collectives.context() as world:
        with ParameterServer(weights, root=0) as server:        # all ranks; the weights of rank 0
            sent = server.send(gradient, "add", scale=-0.1)     # added on the servers, while this rank goes on
            sent.wait()
            weights = server.receive().wait()

Nobody waits for anybody else: each rank sends and receives when it likes. The interface is TorchMPI's (torchmpi.parameterserver).

How the data flows: the flat array is cut into as many contiguous parts as there are servers; rank r serves part r. A send goes
to all servers at once, straight from slices of the caller's array, and each server's thread applies it to its part by the rule
and says so; a receive asks all servers, whose answers go to where they belong in the result. warren/_shard_service.py has the
messages, warren/_shards.py what servers decide.

What is guaranteed:
- A send that was waited for has been applied on all servers: who receives after that, on any rank, has it.
- The sends and receives of one rank to one server are carried out in the order in which they were made, waited for or not. Those
  of different threads of a rank have no order among them.
- What one send does to one part is seen whole or not at all. The parts of one receive may be of different moments.
- Arrays belong to a send or a receive until it has ended.

What goes wrong: wrong shapes, types and rules are refused at once, and end nothing. An exception in a rule is a RuntimeError of
the send, with its text, and the server goes on with what the rule left. A rank that dies is named, within a second, to all that
wait; the messages of the communicator end with it, and all its parameter servers.

One thread serves all parameter servers of a communicator; it sleeps while there is nothing to do. Thread safe, but for making and
freeing.
"""
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
    """A send or a receive under way. One that is dropped is carried out all the same. Thread safe."""

    def __init__(self, requests: Sequence[Pending], result: T, told: Optional[threading.Event] = None) -> None:
        self._requests, self._result = requests, result
        self._told = told or threading.Event()  # a caller, of its error

    def wait(self) -> T:
        """Returns the result when it is there. Raises RuntimeError when the operation failed on a server."""
        error = self._error()
        if error is not None:
            self._told.set()
            raise error
        return self._result

    def _error(self) -> Optional[RuntimeError]:
        """The first, when all requests have ended: until then the arrays are the operation's."""
        first: Optional[RuntimeError] = None
        for request in self._requests:
            try:
                request.wait()
            except RuntimeError as error:
                first = first or error
        return first

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return all(request.done() for request in self._requests)

    def with_result(self, result: U) -> "Handle[U]":
        """The same operation, whose `wait` returns this."""
        return Handle(self._requests, result, self._told)

    def untold(self) -> Optional[Exception]:
        """Waits, and returns the error that no caller was told."""
        error = self._error()
        return None if self._told.is_set() else error


# --- the service of a communicator, as long as there are arrays ---

class _Shared:
    """A service, and how many arrays there are."""

    def __init__(self, communicator: Communicator) -> None:
        self.service = ShardService(communicator)
        self.num_arrays = self.last_number = 0


_services: "weakref.WeakKeyDictionary[Communicator, _Shared]" = weakref.WeakKeyDictionary()


class ShardedArray:
    """A flat array whose parts lie on some ranks. All ranks make it and free it, in the same order."""

    def __init__(self, communicator: Communicator, parts: Sequence[Part], own: Optional[Array],
                 make: Callable[[Array], Shard]) -> None:
        """`own`: what this rank's part is at first, if it has one; `make` makes it a shard."""
        self._communicator, self._parts = communicator, parts
        shared = _services.get(communicator)
        if shared is None:
            shared = _services[communicator] = _Shared(communicator)
        shared.num_arrays += 1
        shared.last_number += 1
        self._number, self._service = shared.last_number, shared.service
        self._kept_ones: List[Handle[Any]] = []  # that are under way, or whose error nobody was told
        self._lock = threading.Lock()
        self._is_freed = False
        if own is not None:
            self._service.add(self._number, make(own))
        communicator.barrier()  # from now on all serve it

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
        """The messages of a handle that is dropped go on, and its error is not lost."""
        with self._lock:
            ended = [other for other in self._kept_ones if other.done()]
            failed = next((other for other in ended if other.untold() is not None), None)
            self._kept_ones = [other for other in self._kept_ones if other not in ended]
            self._kept_ones += [handle] if failed is None else [failed, handle]  # the first error is told at the end
        return handle

    def free(self) -> None:
        """Waits for what is under way, on all ranks, and raises the first error that nobody was told. All ranks call it."""
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
            self._communicator.barrier()  # nobody asks for it any more
        finally:
            self._service.remove(self._number)
            shared.num_arrays -= 1
            if shared.num_arrays == 0:
                del _services[self._communicator]
                self._service.close()


def slice_of(communicator: Communicator, flat: Array, parts: Sequence[Part], root: Optional[int]) -> Optional[Array]:
    """A copy of this rank's part: of its own array, or, where there is a root, of the root's."""
    own = next((part for part in parts if part.rank == communicator.rank), None)
    values = None if own is None else flat[own.begin:own.end].copy()
    if root is not None:
        counts = [0] * communicator.size
        for part in parts:
            counts[part.rank] = part.end - part.begin
        communicator.scatter(flat, root, np.empty(0, flat.dtype) if values is None else values, counts)
    return values


def check_alike(communicator: Communicator, what: str, said: Tuple[Any, ...]) -> None:
    """Raises ValueError on all ranks when they do not say the same."""
    text = np.zeros(1, "S256")
    text[0] = repr(said).encode()[:256]
    found = [one.decode(errors="replace") for one in communicator.allgather(text).tolist()]
    other = next((rank for rank, one in enumerate(found) if one != found[0]), None)
    if other is not None:
        raise ValueError(f"{what}: rank 0 has {found[0]}, and rank {other} {found[other]}; all ranks give the same")


class ParameterServer:
    """An array on servers. Made by all ranks, with arrays of one shape and type; ended by `free`, or the end of a `with`."""

    def __init__(self, array: Array, communicator: Optional[Communicator] = None, servers: Optional[int] = None,
                 root: Optional[int] = None) -> None:
        """`communicator`: by default the world, which is joined if it was not yet. `servers`: how many ranks serve, the first
        ones; by default all. At first each server's part is that of its own array, or, with `root`, that of this rank's; the
        array is copied."""
        self._communicator = communicator_or_world(communicator, "a parameter server")
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise TypeError(f"a parameter server holds a NumPy array of numbers, not {_named(array)}")
        check_numbers(array.dtype, "a parameter server")
        size = self._communicator.size
        num_servers = size if servers is None else servers
        if not 1 <= num_servers <= size:
            raise ValueError(f"{num_servers} servers of {size} ranks; expected 1 to {size}")
        if root is not None and not 0 <= root < size:
            raise ValueError(f"root {root} is none of {size} ranks")
        check_alike(self._communicator, "a parameter server", (array.shape, array.dtype.str, num_servers, root))
        self.shape, self.dtype = array.shape, array.dtype
        parts = spread(array.size, range(num_servers))
        own = slice_of(self._communicator, np.ascontiguousarray(array).reshape(-1), parts, root)
        self._array = ShardedArray(self._communicator, parts, own,
                                   lambda values: RuleShard(values, self._communicator.rank))

    def send(self, array: Optional[Array], rule: str = "add", scale: Union[int, float] = 1) -> Handle[None]:
        """Lets the servers apply scale * array: "add" adds it, "copy" takes it, "zero" makes all elements 0 and takes None for
        the array; others are those of `register_rule`. A contiguous array is not copied, and belongs to the send until it has
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
        """The array, in `out`, which is contiguous, or a new one: it is what `wait` returns."""
        self._array.check_open("receive")
        if out is None:
            out = np.empty(self.shape, self.dtype)
        self._check(out, "receive")
        if not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError("receive needs a contiguous, writable array for its result")
        return self._array.receive(out.reshape(-1), out)

    def free(self) -> None:
        """Ends it. All ranks call it, as they made it; it waits for what they have under way, and raises the first error
        of this rank's that nobody was told."""
        self._array.free()

    def __enter__(self) -> "ParameterServer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        # After an exception the others may never come to free it.
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
            raise ValueError(f"send: a scale of {scale} for elements of {self.dtype}; expected none below 0")
        return number


def _named(value: Any) -> str:
    return f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__

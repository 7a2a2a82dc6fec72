"""Arrays whose parts are stored on several ranks, and the operations on them."""
import threading
import weakref
from typing import Any, Callable, Generic, List, Optional, Sequence, Tuple, TypeVar

import numpy as np

from warren._parameter_server.shard_service import Pending, ShardService
from warren._parameter_server.shards import Array, Part, Shard
from warren.collectives import Communicator

T = TypeVar("T")
U = TypeVar("U")


class Handle(Generic[T]):
    """A pending send or receive. It is carried out even if the handle is dropped. Thread-safe."""

    def __init__(self, requests: Sequence[Pending], result: T, told: Optional[threading.Event] = None) -> None:
        self._requests, self._result = requests, result
        self._told = told or threading.Event()  # set once a caller has received the error

    def wait(self) -> T:
        """Returns the result once the operation has ended. Raises RuntimeError if it failed on a server."""
        error = self._error()
        if error is not None:
            self._told.set()
            raise error
        return self._result

    def _error(self) -> Optional[RuntimeError]:
        """Waits for all requests, since they use the arrays until they have ended, and returns the first error."""
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
        """Waits until the operation has ended. Returns its error, or None if it succeeded or if `wait` has already raised the error."""
        error = self._error()
        return None if self._told.is_set() else error


# --- one service per communicator, while it has arrays ---

class _Shared:
    """A service, the number of its arrays, and the number given to the last array."""

    def __init__(self, communicator: Communicator) -> None:
        self.service = ShardService(communicator)
        self.num_arrays = self.last_number = 0


_services: "weakref.WeakKeyDictionary[Communicator, _Shared]" = weakref.WeakKeyDictionary()


class ShardedArray:
    """A flat array whose parts are stored on some of the ranks. All ranks create and free their arrays in the same order."""

    def __init__(self, communicator: Communicator, parts: Sequence[Part], own: Optional[Array],
                 make: Callable[[Array], Shard]) -> None:
        """`own` is the initial value of this rank's part, or None if it has no part; `make` turns the value into a shard."""
        self._communicator, self._parts = communicator, parts
        shared = _services.get(communicator)
        if shared is None:
            shared = _services[communicator] = _Shared(communicator)
        shared.num_arrays += 1
        shared.last_number += 1
        self._number, self._service = shared.last_number, shared.service
        self._kept_ones: List[Handle[Any]] = []  # pending, or failed with an error that no caller has received
        self._lock = threading.Lock()
        self._is_freed = False
        if own is not None:
            self._service.add(self._number, make(own))
        communicator.barrier()  # from now on all ranks serve the array

    def send(self, elements: Optional[Array], rule: str = "", scale: float = 1) -> Handle[None]:
        """Sends elements to all parts. `elements` is flat and contiguous; None if the rule needs no elements."""
        requests = []
        for part in self._parts:
            slice_ = None if elements is None else elements[part.begin:part.end]
            requests.append(self._service.send(self._number, part, slice_, rule, scale))
        return self._kept(Handle(requests, None))

    def receive(self, flat: Array, result: T) -> Handle[T]:
        """Fills `flat`, which is contiguous, from all parts. The handle returns `result`."""
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
        """Waits for all pending operations, on all ranks, and raises the first error that no caller has received. Collective."""
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
            self._communicator.barrier()  # no rank uses the array after this
        finally:
            self._service.remove(self._number)
            shared.num_arrays -= 1
            if shared.num_arrays == 0:
                del _services[self._communicator]
                self._service.close()


def slice_of(communicator: Communicator, flat: Array, parts: Sequence[Part], root: Optional[int]) -> Optional[Array]:
    """Returns a copy of this rank's part, or None if it has no part. The values come from this rank's `flat` or, with a `root`, from the
    root's `flat`; this makes it a collective call."""
    own = next((part for part in parts if part.rank == communicator.rank), None)
    values = None if own is None else flat[own.begin:own.end].copy()
    if root is not None:
        counts = [0] * communicator.size
        for part in parts:
            counts[part.rank] = part.end - part.begin
        communicator.scatter(flat, root, np.empty(0, flat.dtype) if values is None else values, counts)
    return values


def check_alike(communicator: Communicator, what: str, said: Tuple[Any, ...]) -> None:
    """Raises ValueError on all ranks unless they all pass the same values. Compares the first 256 bytes of the values' repr. Collective."""
    text = np.zeros(1, "S256")
    text[0] = repr(said).encode()[:256]
    found = [one.decode(errors="replace") for one in communicator.allgather(text).tolist()]
    other = next((rank for rank, one in enumerate(found) if one != found[0]), None)
    if other is not None:
        raise ValueError(f"{what}: rank 0 has {found[0]}, and rank {other} {found[other]}; all ranks must give the same")

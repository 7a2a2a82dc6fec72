"""The coordinator of named operations, which each rank may submit in any order. `Communicator.coordinator` makes it."""
from typing import Any, Optional, Sequence, Tuple, TypeVar, Union

from numpy.typing import ArrayLike

from warren._engine import c_api as _c
from warren._engine.calls import Array, Call, Combine, Handle, Op
from warren._engine.collective_calls import CollectiveCalls

T = TypeVar("T")
Group = Optional[Tuple[str, int]]


class Coordinator:
    """Operations that each rank submits by name, in any order and from any thread. They run, in the same order on all ranks, once all ranks
    have submitted them. Small allreduces are fused into larger ones; by default, this does not change a bit of the results. Made by
    `Communicator.coordinator`; ended, for all ranks, by `close`, by the end of a `with` block, or when no longer referenced.

        with world.coordinator() as named:
            handles = [named.allreduce(name, gradient, Op.AVG, out=gradient) for name, gradient in gradients]
            collectives.wait_all(handles)

    A name may be reused once its operation has ended. The operations submitted under one name must match on all ranks; if they do not, only
    these operations fail. `priority`: among ready operations, those with a larger priority run first. `group` is a name and a number of
    operations: the operations of a group run together or, if one of them is invalid, not at all."""

    def __init__(self, calls: CollectiveCalls, handle: int) -> None:
        """The rank and size of `calls` must not change, even if the communicator is freed."""
        self._calls = calls
        self._coordinator = handle
        self._is_closed = False

    def _begin(self, call: Call[T], name: str, priority: int, group: Group) -> Handle[T]:
        if self._is_closed:
            raise ValueError("this coordinator was closed")
        return call.enqueue(self._coordinator, name, priority, group)

    def allreduce(self, name: str, data: ArrayLike, op: Union[int, Combine] = Op.SUM, out: Optional[Array] = None,
                  priority: int = 0, group: Group = None) -> Handle[Array]:
        """See `Communicator.allreduce`."""
        return self._begin(self._calls.allreduce(data, op, out), name, priority, group)

    def reduce_scatter(self, name: str, data: ArrayLike, op: int = Op.SUM, counts: Optional[Sequence[int]] = None,
                       priority: int = 0, group: Group = None) -> Handle[Array]:
        """See `Communicator.reduce_scatter`."""
        if callable(op):
            raise TypeError("a named reduce_scatter takes an Op")
        return self._begin(self._calls.reduce_scatter(data, op, counts), name, priority, group)

    def broadcast(self, name: str, data: Array, root: int, priority: int = 0, group: Group = None) -> Handle[Array]:
        """See `Communicator.broadcast`."""
        return self._begin(self._calls.broadcast(data, root), name, priority, group)

    def allgather(self, name: str, data: ArrayLike, counts: Optional[Sequence[int]] = None, priority: int = 0,
                  group: Group = None) -> Handle[Array]:
        """See `Communicator.allgather`."""
        return self._begin(self._calls.allgather(data, counts), name, priority, group)

    def all_to_all(self, name: str, data: ArrayLike, send_counts: Optional[Sequence[int]] = None,
                   recv_counts: Optional[Sequence[int]] = None, priority: int = 0, group: Group = None) -> Handle[Array]:
        """See `Communicator.all_to_all`."""
        return self._begin(self._calls.all_to_all(data, send_counts, recv_counts), name, priority, group)

    def barrier(self, name: str, priority: int = 0, group: Group = None) -> Handle[None]:
        """See `Communicator.barrier`."""
        return self._begin(self._calls.barrier(), name, priority, group)

    def join(self) -> int:
        """Declares that this rank has no more operations. Its submitted operations are carried out; this rank then takes part in the
        allreduces and barriers of the other ranks with neutral elements (an average still divides by the number of all ranks), until all
        ranks have joined. Returns the last rank to join, by its rank in the job."""
        if self._is_closed:
            raise ValueError("this coordinator was closed")
        return _c.number_of(_c.LIB.WarrenCoordinatorJoin, self._coordinator)

    def close(self) -> None:
        """Ends the coordinator for all ranks: operations that are not yet ready on all ranks fail on all ranks. Waits for all ranks, and
        raises an error if one is lost in the meantime. May be called from any thread, even while other threads are in its methods."""
        self._is_closed = True
        _c.check(_c.LIB.WarrenCoordinatorClose(self._coordinator))

    def __enter__(self) -> "Coordinator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_coordinator", 0):
            _c.LIB.WarrenCoordinatorFree(self._coordinator)

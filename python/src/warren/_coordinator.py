"""Operations by name, in an order of each rank's own: what Communicator.coordinator makes."""
import ctypes
from typing import TYPE_CHECKING, Any, Optional, Sequence, Tuple, TypeVar, Union

from numpy.typing import ArrayLike

from warren import _collectives_c as _c
from warren._calls import Array, Call, Combine, Handle, Op

if TYPE_CHECKING:
    from warren.collectives import Communicator

T = TypeVar("T")
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

    def __init__(self, communicator: "Communicator", handle: int) -> None:
        """`communicator`: its rank and size are needed, and that they stay."""
        self._communicator = communicator
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

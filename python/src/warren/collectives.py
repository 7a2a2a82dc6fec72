"""Collectives for NumPy arrays: communicators, all collective operations, and messages between ranks.

    from warren import collectives

    with collectives.context() as world:
        total = world.allreduce(gradient)                   # the sum over all ranks, in a new array
        world.allreduce(gradient, out=gradient)             # in place
        host = world.local()                                # the ranks of this host
        host.broadcast(weights, root=0)                     # in place
        rows = world.gather(part, root=0)                   # rank 0: all parts along the first axis; others: None

Start it with `dmlc-submit --num-workers 4 python train.py`. Without a launcher there is one rank, and every call works.

All ranks of a communicator make the same calls in the same order, with arrays of the same type and, unless stated otherwise, the same
shape. A mismatch of calls, roots or sizes raises an error. So does a mismatch of types in a reduction with an Op; other calls compare only
numbers of bytes or of elements. Errors of the engine (a dead rank, mismatched calls) are RuntimeErrors that name the rank; after one, the
communicator can no longer be used. By default, floating-point numbers are added in a fixed order that depends only on the ranks. All ranks
get the same bits.

Element types of reductions: (u)int8, (u)int32, (u)int64, float32, float64, float16 and the bfloat16 of ml_dtypes. Operations that only move
data take any type without Python objects. Non-contiguous inputs are copied; arrays for results must be contiguous.

Each call also exists as `..._async`, which returns a Handle immediately; `handle.wait()` returns the result. The asynchronous calls of a
communicator run in the order in which they were made, on a background thread or on the first thread that waits. Do not touch the arrays of
a call until it has ended. `name` labels the operation in a timeline (WARREN_TIMELINE) and in error messages. `timeout` replaces
rabit_timeout_sec: how many seconds the call may wait for a rank that is alive, counted from when it starts to run. Fractions are allowed; 0
is the same as no `timeout`. When it expires, `wait` raises a RuntimeError that names a late rank, and the communicator can no longer be
used. A negative timeout, or any timeout over MPI, raises a RuntimeError immediately; calls with arrays on a GPU accept neither a name nor a
timeout.

    handle = world.allreduce_async(gradient, out=gradient)
    ...                                                     # something else
    gradient = handle.wait()

Threads: a communicator may be used by one thread at a time, different communicators by different threads. Calls release the GIL."""
import contextlib
import ctypes
import os
import sys
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Union

from numpy.typing import ArrayLike

from warren._engine import c_api as _c
from warren._engine.calls import Array, Call, Combine, Handle, Op, c_int_of, c_name, wait_all
from warren._engine.collective_calls import CollectiveCalls
from warren._engine.coordinator import Coordinator
from warren._engine.mailbox import Mailbox
from warren._engine.rendezvous import Allgather, rendezvous
from warren._launch import leaving as _leaving
from warren._launch import rank as _rank
from warren._launch import shared_tracker as _shared_tracker

__all__ = ["Array", "Call", "Combine", "Communicator", "Coordinator", "Handle", "Mailbox", "Op", "context", "finalize", "init",
           "meet", "wait_all", "world"]


def init(args: Optional[Iterable[Union[str, bytes]]] = None) -> None:
    """Joins the job. `args` are `key=value` strings, sys.argv by default; arguments of another form are ignored. Processes started by
    mpirun, srun or torchrun form one job, unless WARREN_BOOTSTRAP is `none`. Raises RuntimeError if the job cannot be joined."""
    words = [os.fsencode(word) for word in (sys.argv if args is None else args)]
    _leaving.leave_postponed()
    _shared_tracker.before_init(words)
    with _leaving.lost_reports_first():
        _c.check(_c.LIB.WarrenInit(len(words), (ctypes.c_char_p * len(words))(*words)))
    _rank.joined_as(world().rank)


#: The number of times this process has left a job. Communicators created before it last left one can no longer be used.
num_left = 0


def finalize() -> None:
    """Leaves the job. Collective. Raises RuntimeError if that fails, or if an earlier error had already ended the job for this rank; this
    rank leaves the job in any case. After an exception (`finally: finalize()`), this rank leaves only when the program is known to survive
    it: before the next `init`, or at exit. Otherwise the other ranks would take it for finished."""
    if not _leaving.postpone_after_error(leave):
        leave()


def leave() -> None:
    """`finalize` without regard to an exception that is being handled; for Warren's own modules."""
    global num_left  # pylint: disable=global-statement
    num_left += 1
    with _leaving.others_report_first():
        _c.check(_c.LIB.WarrenFinalize())
    _shared_tracker.left()


def world() -> "Communicator":
    """The communicator of all ranks of the job, between `init` and `finalize`."""
    return _made(_c.LIB.WarrenCommWorld)


@contextlib.contextmanager
def context(args: Optional[Iterable[Union[str, bytes]]] = None) -> Iterator["Communicator"]:
    """Calls `init`, yields the world, and calls `finalize` at the end. After an exception `finalize` is not called, so that the other ranks
    do not take this rank for finished."""
    init(args)
    yield world()
    finalize()


def _made(make: Callable[..., int], *arguments: Any) -> "Communicator":
    return Communicator(_c.handle(make, *arguments))


def meet(rank: int, size: int, allgather: Allgather) -> "Communicator":
    """Creates a world of ranks that find each other through something they already share, such as a key-value store, without `init` or a
    tracker. Collective. `allgather` is called a few times, with records of up to a few KiB. Each rank leaves independently, with `free`.
    Raises RuntimeError on failure, and any exception that `allgather` raises."""
    with rendezvous(rank, size, allgather) as found:
        return _made(_c.LIB.WarrenCommMeet, found)


class Communicator:
    """A group of ranks of the job. Returned by `world` and `meet`, and by the collective calls `split`, `create`, `group`, `local` and
    `cross` of another communicator (only the new members call `group`). It is false if this rank is not a member, or after `free`. Freed by
    `free`, or when no longer referenced."""

    def __init__(self, handle: int) -> None:
        self._comm: Optional[int] = handle or None
        self.rank, self.size = -1, 0
        self._calls = CollectiveCalls(self._comm, self.rank, self.size)
        if self._comm:
            self.rank = self._calls.rank = _c.number_of(_c.LIB.WarrenCommRank, self._comm)
            self.size = self._calls.size = _c.number_of(_c.LIB.WarrenCommSize, self._comm)

    def __bool__(self) -> bool:
        return self._comm is not None

    def __repr__(self) -> str:
        return f"<warren communicator, rank {self.rank} of {self.size}>" if self else "<no warren communicator>"

    def free(self) -> None:
        """Leaves the communicator; the other ranks need not call it."""
        comm, self._comm, self.size = self._comm, None, 0
        self._calls.end()
        if comm:
            _c.LIB.WarrenCommFree(comm)

    def __del__(self) -> None:
        if _c is not None and _c.LIB is not None:  # both may be None when the interpreter exits
            self.free()

    def set_timeout(self, seconds: float) -> None:
        """Sets the number of seconds that each later call of this rank may wait for a rank that is alive, unless the call has its own
        `timeout`."""
        _c.check(_c.LIB.WarrenCommSetTimeout(self._comm, seconds))

    def rank_in_world(self, rank: int) -> int:
        """Returns the world rank of a rank of this communicator; error messages name world ranks."""
        return _c.number_of(_c.LIB.WarrenCommRankInWorld, self._comm, c_int_of(rank, "rank"))

    # --- derived communicators ---

    def split(self, color: int, key: int = 0) -> "Communicator":
        """Returns the communicator of the ranks that pass the same color, ordered by key, then by rank. A rank that passes a negative color
        gets a communicator that is false."""
        return _made(_c.LIB.WarrenCommSplit, self._comm, c_int_of(color, "color"), c_int_of(key, "key"))

    def create(self, ranks: Sequence[int]) -> "Communicator":
        """Returns the communicator of these ranks, in this order; all ranks pass the same list. Ranks that are not in it get a communicator
        that is false."""
        numbers = [c_int_of(rank, "rank") for rank in ranks]
        return _made(_c.LIB.WarrenCommCreate, self._comm, (ctypes.c_int * len(numbers))(*numbers), len(numbers))

    def group(self, ranks: Sequence[int], name: str, allgather: Allgather) -> "Communicator":
        """Returns the communicator of these ranks, in this order. Only these ranks call it; they find each other through `allgather` (see
        `meet`). `name` is used in messages and must be unique within the job. Raises ValueError if this rank is not one of `ranks`."""
        numbers = [c_int_of(rank, "rank") for rank in ranks]
        if self.rank not in numbers:
            raise ValueError(f"rank {self.rank} cannot create a group of the ranks {numbers}: it is not one of them")
        with rendezvous(numbers.index(self.rank), len(numbers), allgather) as found:
            return _made(_c.LIB.WarrenCommGroup, self._comm, (ctypes.c_int * len(numbers))(*numbers), len(numbers),
                         c_name(name, "a group"), found)

    def local(self) -> "Communicator":
        """Returns the communicator of the ranks on this host."""
        return _made(_c.LIB.WarrenCommLocal, self._comm)

    def cross(self) -> "Communicator":
        """Returns the communicator of the ranks that have the same local rank on their hosts."""
        return _made(_c.LIB.WarrenCommCross, self._comm)

    def coordinator(self, fusion_bytes: Optional[int] = None, cycle_time: Optional[float] = None,
                    autotune: Optional[bool] = None, stall_warning: Optional[float] = None,
                    stall_error: Optional[float] = None) -> "Coordinator":
        """Returns a coordinator for operations that are matched by name and that each rank may submit in a different order. Collective.
        Times are in seconds. Rank 0's arguments apply to all ranks, with exceptions. WarrenCoordinatorOptions in warren/c_api.h describes
        these and the defaults."""
        cycle_us = -1 if cycle_time is None else round(cycle_time * 1e6)
        if fusion_bytes is not None and not 0 <= fusion_bytes < 1 << 63:
            raise ValueError(f"fusion_bytes is {fusion_bytes}; expected at least 0")
        options = _c.CoordinatorOptions(ctypes.sizeof(_c.CoordinatorOptions), -1 if fusion_bytes is None else fusion_bytes,
                                      c_int_of(cycle_us, "cycle_time in microseconds"), -1 if autotune is None else int(autotune),
                                      -1 if stall_warning is None else stall_warning,
                                      -1 if stall_error is None else stall_error)
        handle = _c.handle(_c.LIB.WarrenCoordinatorCreate, self._comm, ctypes.byref(options))
        return Coordinator(CollectiveCalls(None, self.rank, self.size), handle)

    def mailbox(self) -> "Mailbox":
        """Returns a mailbox for tagged messages between these ranks, in any order and from any thread. Collective."""
        return Mailbox(self.rank, self.size, _c.handle(_c.LIB.WarrenMailboxCreate, self._comm))

    # --- reductions: `op` is an Op, or a function that combines two arrays (from lower ranks, from higher ranks) and returns the result ---
    #
    # allreduce, reduce_scatter, broadcast and allgather also take arrays on a GPU (a torch.Tensor, a cupy.ndarray, ...; see warren.device).
    # Such calls need an Op, equal parts and an `out` on the GPU, and run on `stream`, or on the default stream if `stream` is None.

    def allreduce(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, out: Optional[Array] = None,
                  stream: Any = None) -> Array:
        """Returns the reduction of each element over all ranks. `out` may be `data`."""
        return self._calls.allreduce(data, op, out, stream).run()

    def allreduce_async(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, out: Optional[Array] = None,
                        stream: Any = None, *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`allreduce` without waiting."""
        return self._calls.allreduce(data, op, out, stream).begin(name, timeout)

    def reduce(self, data: ArrayLike, root: int, op: Union[int, Combine] = Op.SUM) -> Optional[Array]:
        """Like `allreduce`, but only the root gets the result; the other ranks get None."""
        return self._calls.reduce(data, root, op).run()

    def reduce_async(self, data: ArrayLike, root: int, op: Union[int, Combine] = Op.SUM,
                     *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Optional[Array]]:
        """`reduce` without waiting."""
        return self._calls.reduce(data, root, op).begin(name, timeout)

    def reduce_scatter(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, counts: Optional[Sequence[int]] = None,
                       out: Optional[Array] = None, stream: Any = None) -> Array:
        """Returns this rank's part of the reduction: counts[rank] rows along the first axis. All ranks pass the same counts; by default the
        parts are equal."""
        return self._calls.reduce_scatter(data, op, counts, out, stream).run()

    def reduce_scatter_async(self, data: ArrayLike, op: Union[int, Combine] = Op.SUM, counts: Optional[Sequence[int]] = None,
                             out: Optional[Array] = None, stream: Any = None,
                             *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`reduce_scatter` without waiting."""
        return self._calls.reduce_scatter(data, op, counts, out, stream).begin(name, timeout)

    # --- moving elements ---

    def broadcast(self, data: Array, root: int, stream: Any = None) -> Array:
        """Overwrites `data`, a contiguous array, with the root's, and returns it."""
        return self._calls.broadcast(data, root, stream).run()

    def broadcast_async(self, data: Array, root: int, stream: Any = None,
                        *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`broadcast` without waiting."""
        return self._calls.broadcast(data, root, stream).begin(name, timeout)

    def allgather(self, data: ArrayLike, counts: Optional[Sequence[int]] = None, out: Optional[Array] = None,
                  stream: Any = None) -> Array:
        """Returns the arrays of all ranks, concatenated along the first axis; a scalar counts as one row. `counts` is needed if the ranks
        pass different numbers of rows, and must be the same on all of them."""
        return self._calls.allgather(data, counts, out, stream).run()

    def allgather_async(self, data: ArrayLike, counts: Optional[Sequence[int]] = None, out: Optional[Array] = None,
                        stream: Any = None, *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`allgather` without waiting."""
        return self._calls.allgather(data, counts, out, stream).begin(name, timeout)

    def gather(self, data: ArrayLike, root: int, counts: Optional[Sequence[int]] = None) -> Optional[Array]:
        """Like `allgather`, but only the root gets the result, and only the root needs `counts`; the other ranks get None."""
        return self._calls.gather(data, root, counts).run()

    def gather_async(self, data: ArrayLike, root: int, counts: Optional[Sequence[int]] = None,
                     *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Optional[Array]]:
        """`gather` without waiting."""
        return self._calls.gather(data, root, counts).begin(name, timeout)

    def scatter(self, data: Optional[ArrayLike], root: int, out: Array, counts: Optional[Sequence[int]] = None) -> Array:
        """Fills `out` with this rank's part of the root's array and returns it: counts[rank] rows along the first axis, by default equal
        parts. The other ranks pass None as `data`, and need no counts."""
        return self._calls.scatter(data, root, out, counts).run()

    def scatter_async(self, data: Optional[ArrayLike], root: int, out: Array,
                      counts: Optional[Sequence[int]] = None,
                      *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`scatter` without waiting."""
        return self._calls.scatter(data, root, out, counts).begin(name, timeout)

    def all_to_all(self, data: ArrayLike, send_counts: Optional[Sequence[int]] = None,
                   recv_counts: Optional[Sequence[int]] = None) -> Array:
        """Sends a part of `data` to each rank, and returns the parts received, concatenated along the first axis: send_counts[r] rows go to
        rank r, and recv_counts[r] rows come from it. By default all parts are equal."""
        return self._calls.all_to_all(data, send_counts, recv_counts).run()

    def all_to_all_async(self, data: ArrayLike, send_counts: Optional[Sequence[int]] = None,
                         recv_counts: Optional[Sequence[int]] = None,
                         *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`all_to_all` without waiting."""
        return self._calls.all_to_all(data, send_counts, recv_counts).begin(name, timeout)

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._calls.barrier().run()

    def barrier_async(self, *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[None]:
        """`barrier` without waiting."""
        return self._calls.barrier().begin(name, timeout)

    # --- messages ---

    def send(self, data: ArrayLike, to: int) -> None:
        """Sends a message to one `recv` call of the same number of bytes. Returns when `data` may be reused. With a long message, this is
        only when the other rank receives it, so two ranks that both send first deadlock; see `sendrecv`."""
        self._calls.send(data, to).run()

    def send_async(self, data: ArrayLike, to: int,
                   *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[None]:
        """`send` without waiting."""
        return self._calls.send(data, to).begin(name, timeout)

    def recv(self, out: Array, source: int) -> Array:
        """Fills `out` with the next message from rank `source`, and returns it."""
        return self._calls.recv(out, source).run()

    def recv_async(self, out: Array, source: int,
                   *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`recv` without waiting."""
        return self._calls.recv(out, source).begin(name, timeout)

    def sendrecv(self, data: ArrayLike, to: int, out: Array, source: int) -> Array:
        """Sends `data` to rank `to` while receiving `out` from rank `source`; returns `out`."""
        return self._calls.sendrecv(data, to, out, source).run()

    def sendrecv_async(self, data: ArrayLike, to: int, out: Array, source: int,
                       *, name: Optional[str] = None, timeout: Optional[float] = None) -> Handle[Array]:
        """`sendrecv` without waiting."""
        return self._calls.sendrecv(data, to, out, source).begin(name, timeout)

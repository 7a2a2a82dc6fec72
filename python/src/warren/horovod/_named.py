"""Named operations on the memory of tensors of any framework.

Data flow: a framework describes its tensors as `Memory`. A method of `Named` submits one named operation for each of them to the engine,
directly on that memory, and returns a handle. If the ranks may pass different numbers of rows (allgather, alltoall), a small operation
first exchanges the sizes. The thread that completes the small operation then submits the one for the data, so no caller waits between the
two."""
import collections
import functools
import itertools
import threading
from enum import IntEnum, unique
from typing import Any, Callable, Dict, Generic, Iterator, List, NamedTuple, Optional, Protocol, Sequence, Set, Tuple, TypeVar

import numpy as np

from warren._engine import c_api as _c
from warren._engine.calls import c_sizes
from warren.collectives import Array, Call, Communicator, Coordinator, Handle, Op
from warren.horovod import _adasum
from warren.horovod._errors import HorovodInternalError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@unique
class ReduceOp(IntEnum):
    """The operations that combine the elements of all ranks, with Horovod's numbers."""

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5


_OPS = {ReduceOp.Sum: Op.SUM, ReduceOp.Min: Op.MIN, ReduceOp.Max: Op.MAX, ReduceOp.Product: Op.PROD}


class Memory(NamedTuple):
    """The memory of a contiguous tensor."""

    at: int
    shape: Tuple[int, ...]
    dtype: str  # NumPy's name for the type
    num_elements: int
    element_bytes: int
    owner: Any

    @property
    def num_bytes(self) -> int:
        return self.num_elements * self.element_bytes

    @property
    def elements_in_row(self) -> int:
        return int(np.prod(self.shape[1:], dtype=np.int64))


def memory_of(array: Array) -> Memory:
    return Memory(array.ctypes.data, array.shape, array.dtype.name, array.size, array.itemsize, array)


@functools.lru_cache(maxsize=None)
def is_integer(dtype: str) -> bool:
    return "int" in dtype


def reduction(op: int, dtype: str, what: str) -> Tuple[int, int]:
    """Returns the engine's type and operation. For an average of integers the operation is the sum, and the caller divides. Raises
    NotImplementedError for Adasum, and ValueError for a type that cannot be reduced."""
    if op == ReduceOp.Adasum:
        raise NotImplementedError(f"{what}: Adasum is only for allreduce; use op=hvd.Average or op=hvd.Sum")
    kind = _c.TYPES.get(dtype)
    if kind is None:
        raise ValueError(f"{what}: elements of {dtype} cannot be reduced; those that can are {', '.join(_c.TYPES)}")
    if op == ReduceOp.Average:
        return kind, int(Op.SUM if is_integer(dtype) else Op.AVG)
    return kind, int(_OPS[ReduceOp(op)])


def op_of(op: Optional[int], average: Optional[bool]) -> ReduceOp:
    """The operation given by `op` or by `average`, by default the average. Raises ValueError if both are given."""
    if op is not None and average is not None:
        raise ValueError("`op` and `average` both choose the reduction: give only `op`")
    if op is None:
        return ReduceOp.Sum if average is not None and not average else ReduceOp.Average
    return ReduceOp(op)


def shares_of(rows: int, size: int) -> List[int]:
    """The number of rows of each rank if rows are distributed as evenly as possible: the first ranks get one more."""
    return [rows // size + (rank < rows % size) for rank in range(size)]


class Waitable(Protocol[T_co]):
    """An operation that has been started."""

    def wait(self) -> T_co:
        """Returns the result once the operation has ended; raises RuntimeError if it failed."""

    def done(self) -> bool:
        """Whether the operation has ended, successfully or not."""


class Pending(Generic[T]):
    """Operations that a caller waits for together, followed by a function of their results. Thread-safe."""

    def __init__(self, handles: Sequence[Waitable[Any]], finish: Callable[[List[Any]], T]) -> None:
        self._handles, self._finish = handles, finish
        self._lock = threading.Lock()
        self._is_finished = False
        self._result: Optional[T] = None
        self._error: Optional[Exception] = None

    def wait(self) -> T:
        """Waits for all operations and returns the result. If one of them failed, raises HorovodInternalError once all have ended."""
        with self._lock:
            if not self._is_finished:
                self._end()
            if self._error is not None:
                raise self._error
            return self._result  # type: ignore[return-value]

    def _end(self) -> None:
        results = []
        for handle in self._handles:
            try:
                results.append(handle.wait())
            except RuntimeError as error:
                self._error = self._error or HorovodInternalError(str(error))
        if self._error is None:
            try:
                self._result = self._finish(results)
            except Exception as error:  # pylint: disable=broad-except
                self._error = error
        self._is_finished, self._handles = True, ()

    def done(self) -> bool:
        """Whether an operation has failed and all have ended, or the result is complete. Does not raise the operations' errors."""
        if not self._is_finished and all(handle.done() for handle in self._handles):
            with self._lock:
                if not self._is_finished:
                    self._end()
        return self._is_finished


class _Steps(Generic[T]):
    """Operations in steps. The operations of a step are started, by any thread, once all operations of the previous step have succeeded. The
    results of the last step are the result. Thread-safe."""

    def __init__(self, first: "Handle[Any]", begins: Sequence[Callable[[], Sequence["Handle[Any]"]]], end: Callable[[], None]) -> None:
        """Each of `begins` starts one further step. `end` is called once, when all steps have ended or can no longer start."""
        self._begins, self._end = list(begins), end
        # Reentrant: the waiting thread may itself be notified that an operation has ended.
        self._lock = threading.RLock()
        self._step = 0
        self._handles: Sequence["Handle[Any]"] = [first]
        self._num_left = 1
        self._is_over = False
        self._error: Optional[Exception] = None
        first.when_done(functools.partial(self._one_has_ended, 0))

    def _one_has_ended(self, step: int, error: Optional[str]) -> None:
        with self._lock:
            if step != self._step:
                return
            if error is not None:
                self._error = self._error or RuntimeError(error)
            self._num_left -= 1
            if self._num_left == 0:
                self._go_on(step)

    def _go_on(self, step: int) -> None:
        """Called when all operations of this step have ended: starts the next step, if there is one."""
        if step != self._step or self._is_over:
            return
        handles: Sequence["Handle[Any]"] = ()
        if self._error is None and step < len(self._begins):
            try:
                handles = self._begins[step]()
            except Exception as failure:  # pylint: disable=broad-except
                self._error = failure
        if not handles:
            self._is_over = True
            self._end()
            return
        self._step, self._handles, self._num_left = step + 1, handles, len(handles)
        for handle in handles:
            handle.when_done(functools.partial(self._one_has_ended, step + 1))

    def wait(self) -> List[T]:
        """Returns the results of the last step. Raises the first error, once all operations of its step have ended."""
        while True:
            with self._lock:
                step, handles = self._step, self._handles
            results, error = [], None
            for handle in handles:
                try:
                    results.append(handle.wait())
                except RuntimeError as failure:
                    error = error or failure
            with self._lock:  # the notifications may still be pending
                if step == self._step:
                    self._error = self._error or error
                    self._go_on(step)
                if self._is_over and self._error is not None:
                    raise self._error
                if self._is_over and step == self._step:
                    return results

    def done(self) -> bool:
        return self._is_over


#: A function (shape, index) that allocates the tensor for a result, which has the type of the input with this index.
Allocate = Callable[[Tuple[int, ...], int], Memory]


class Named:
    """Submits the operations of a set of ranks. Thread-safe."""

    def __init__(self, communicator: Communicator, coordinator: Coordinator) -> None:
        self.rank, self.size = communicator.rank, communicator.size
        self._communicator, self._coordinator = communicator, coordinator
        self._num_unnamed: Dict[str, Iterator[int]] = {}
        self._negotiated: Set[str] = set()
        self.reset()

    def reset(self) -> None:
        """Restarts the counting of unnamed operations; called when all ranks are at the same point."""
        self._num_unnamed = collections.defaultdict(itertools.count)

    def name_of(self, kind: str, given: Optional[str]) -> str:
        """The engine's name for an operation. Operations without a name are numbered, separately for each kind, so that their names are the
        same on all ranks."""
        return f"{kind}.{given}" if given else f"{kind}.noname.{next(self._num_unnamed[kind])}"

    def _give(self, call: "Call[T]", name: str, alike: str, size: int = 1) -> "Handle[T]":
        """Submits a call. `alike` describes what must be the same on all ranks but is not compared by the engine: it becomes the name of
        the operation's group, whose `size` operations are carried out together."""
        if name in self._negotiated:
            raise _is_under_way(name)
        try:
            return self._begin(call, name, (alike, size))
        except RuntimeError as error:
            if "is under way already" in str(error):
                raise _is_under_way(name) from error
            raise HorovodInternalError(str(error)) from error
        except ValueError as error:
            if "was closed" in str(error):
                raise HorovodInternalError("Horovod has been shut down on this rank") from error
            raise

    def _begin(self, call: "Call[T]", name: str, group: Optional[Tuple[str, int]] = None) -> "Handle[T]":
        return self._coordinator._begin(call, name, 0, group)  # pylint: disable=protected-access

    # --- operations with the same size on all ranks ---

    def allreduce(self, name: str, sources: Sequence[Memory], targets: Sequence[Memory], op: int) -> Sequence[Waitable[Any]]:
        """Reduces `sources` into `targets`, which may be the same. All are reduced together, except with Adasum, which reduces each of them
        separately."""
        if op == ReduceOp.Adasum:
            for source in sources:
                _adasum.check(self.size, source.dtype, name)
            return [self._adasum(*each) for each in zip(_names(name, len(sources)), sources, targets)]
        calls = []
        for source, target in zip(sources, targets):
            kind, operation = reduction(op, source.dtype, name)
            calls.append(Call("WarrenAllreduce", (None, source.at, target.at, source.num_elements, kind, operation), target.owner,
                              source.owner))
        return self._give_all(calls, name, sources)

    def reduce_scatter(self, name: str, sources: Sequence[Memory], targets: Sequence[Memory], op: int) -> List["Handle[Any]"]:
        """Stores this rank's share of the reduced rows (see shares_of) in `targets`."""
        calls = []
        for source, target in zip(sources, targets):
            kind, operation = reduction(op, source.dtype, name)
            counts = c_sizes([rows * source.elements_in_row for rows in shares_of(source.shape[0], self.size)])
            calls.append(Call("WarrenReduceScatterV", (None, source.at, target.at, counts, kind, operation), target.owner,
                              source.owner))
        return self._give_all(calls, name, sources)

    def _give_all(self, calls: Sequence["Call[Any]"], name: str, memories: Sequence[Memory]) -> List["Handle[Any]"]:
        if not calls:
            return []
        if len(calls) == 1:
            return [self._give(calls[0], name, f"{name}: {memories[0].dtype} {list(memories[0].shape)}")]
        alike = f"{name}: {', '.join(f'{memory.dtype} {list(memory.shape)}' for memory in memories)}"
        names = _names(name, len(calls))
        return [self._give(call, one, alike, len(calls)) for call, one in zip(calls, names)]

    def broadcast(self, name: str, memory: Memory, root: int) -> "Handle[Any]":
        call = Call("WarrenBroadcast", (None, memory.at, memory.num_bytes, _c.BYTES, root), memory.owner)
        return self._give(call, name, f"{name}: {memory.dtype} {list(memory.shape)}")

    def barrier(self, name: str) -> "Handle[None]":
        return self._give(Call("WarrenBarrier", (None,), None), name, name)

    # --- operations whose sizes the ranks exchange first ---

    def allgather(self, name: str, sources: Sequence[Memory], allocate: Allocate) -> Waitable[List[Any]]:
        """Concatenates the rows of all ranks."""
        mine = np.array([source.shape[0] for source in sources], np.int64)
        rows = np.empty((self.size, len(sources)), np.int64)
        bytes_of_all = c_sizes([mine.nbytes] * self.size)
        first = Call("WarrenAllgatherV", (None, mine.ctypes.data, rows.ctypes.data, bytes_of_all, _c.BYTES), rows, mine)
        names = _names(name, len(sources))

        def begin() -> List["Handle[Any]"]:
            handles = []
            for index, source in enumerate(sources):
                target = allocate((int(rows[:, index].sum()), *source.shape[1:]), index)
                row_bytes = source.elements_in_row * source.element_bytes
                sizes = c_sizes([int(count) * row_bytes for count in rows[:, index]])
                call = Call("WarrenAllgatherV", (None, source.at, target.at, sizes, _c.BYTES), target.owner, source.owner)
                handles.append(self._begin(call, names[index], (name, len(sources)) if len(sources) > 1 else None))
            return handles

        return self._in_steps(name, "sizes", _rows_of(sources), first, [begin])

    def all_to_all(self, name: str, source: Memory, splits: Sequence[int], allocate: Allocate) -> Waitable[List[Any]]:
        """Sends splits[r] rows to rank r. The result has two parts: the rows from all ranks, and the number of rows from each rank."""
        send = np.array(splits, np.int64)
        rows = np.empty(self.size, np.int64)
        each = c_sizes([send.itemsize] * self.size)
        first = Call("WarrenAllToAllV", (None, send.ctypes.data, each, rows.ctypes.data, each, _c.BYTES), rows, send)

        def begin() -> List["Handle[Any]"]:
            target = allocate((int(rows.sum()), *source.shape[1:]), 0)
            row_bytes = source.elements_in_row * source.element_bytes
            sent, got = (c_sizes([int(count) * row_bytes for count in counts]) for counts in (send, rows))
            call = Call("WarrenAllToAllV", (None, source.at, sent, target.at, got, _c.BYTES), (target.owner, rows), source.owner)
            return [self._begin(call, name)]

        return self._in_steps(name, "sizes", _rows_of([source]), first, [begin])

    def _in_steps(self, name: str, what: str, alike: str, first: "Call[Array]",
                  begins: Sequence[Callable[[], List["Handle[Any]"]]]) -> Waitable[Any]:
        """Submits `first`, whose name ends with `what`, and starts further steps after it. The name of the whole is taken until all have
        ended."""
        if name in self._negotiated:
            raise _is_under_way(name)
        handle = self._give(first, f"{name}.{what}", f"{name}: {alike}")
        self._negotiated.add(name)
        return _Steps(handle, begins, lambda: self._negotiated.discard(name))

    def _adasum(self, name: str, source: Memory, target: Memory) -> Waitable[Any]:
        """Computes Adasum, as described in _adasum.py. All ranks have the same number of elements."""
        counts = shares_of(source.num_elements, self.size)
        mine = counts[self.rank]
        parts = np.empty((self.size, mine), source.dtype)
        products = np.empty((self.size, self.size))
        sent = c_sizes([count * source.element_bytes for count in counts])
        got = c_sizes([mine * source.element_bytes] * self.size)
        first = Call("WarrenAllToAllV", (None, source.at, sent, parts.ctypes.data, got, _c.BYTES), parts, source.owner)

        def multiply() -> List["Handle[Any]"]:
            products[:] = _adasum.inner_products(parts)
            call = Call("WarrenAllreduce", (None, products.ctypes.data, products.ctypes.data, products.size, _c.TYPES["float64"],
                                            int(Op.SUM)), products)
            return [self._begin(call, f"{name}.products")]

        def combine() -> List["Handle[Any]"]:
            share = _adasum.combination(_adasum.coefficients(products), parts)
            call = Call("WarrenAllgatherV", (None, share.ctypes.data, target.at, sent, _c.BYTES), target.owner, share)
            return [self._begin(call, f"{name}.shares")]

        return self._in_steps(name, "parts", f"Adasum of {source.dtype} {list(source.shape)}", first, [multiply, combine])

    # --- the whole set ---

    def join(self) -> int:
        try:
            last = self._coordinator.join()
        except RuntimeError as error:
            raise HorovodInternalError(str(error)) from error
        self.reset()
        return last

    def close(self) -> None:
        """Ends all pending operations, on all ranks."""
        try:
            self._coordinator.close()
        finally:
            self._communicator.free()


def _is_under_way(name: str) -> ValueError:
    hint = ("; DistributedOptimizers that are used at the same time need different names for their parameters: give each of them "
            "named_parameters, with a prefix of its own")
    return ValueError(f"'{name}' is already under way: wait for it (hvd.synchronize) before using the name again, or use another name"
                      f"{hint if name.startswith('allreduce.') else ''}")


def _rows_of(sources: Sequence[Memory]) -> str:
    return ", ".join(f"{source.dtype} rows of {list(source.shape[1:])}" for source in sources)


def _names(name: str, count: int) -> List[str]:
    return [name] if count == 1 else [f"{name}_{index + 1}of{count}" for index in range(count)]

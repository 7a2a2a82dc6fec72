"""What the data package needs of a job, whichever library this process has joined it by: XGBoost, Warren, torch.distributed.

Collective calls: all ranks make the same ones in the same order. What a rank does next depends on what all of them know, never
on what it alone has seen; an error of one rank is told to the others by `agree`. Not thread safe.
"""
import ctypes
import os
import sys
from typing import Any, Callable, List, Mapping, NoReturn, Optional, Protocol, Sequence, Tuple, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from warren import _launched, _sealed

T = TypeVar("T")
Piece = Union[memoryview, bytes, bytearray]
Greatest = Callable[[NDArray[Any]], NDArray[Any]]
_ALLGATHER, _BROADCAST = "warren.data allgather", "warren.data broadcast"

#: Objects of up to so many bytes, of all ranks together, are gathered by one allreduce, which sends each byte about twice as
#: often as broadcasts do and waits once only.
ALLREDUCE_BYTES = 1 << 20


class Peers(Protocol):
    """The ranks of a job, from one rank's side."""

    rank: int
    world: int
    connected: bool  #: whether the calls below are there

    def allgather(self, value: Any, *, objects: bool = False) -> List[Any]:
        """Every rank's object, in rank order. `objects`: whether it may be more than plain data (warren._sealed), which in a job
        without a token then are pickles that are loaded as they come. Raises TypeError on all ranks where one rank's cannot be
        sent, RuntimeError where another rank's bytes are not those of a process of this job."""

    def broadcast(self, value: Any, root: int, *, objects: bool = False) -> Any:
        """Rank `root`'s object; what others give does not matter. `objects` and errors as for `allgather`."""

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        """Rank `root`'s bytes into the arrays of all other ranks, which are as long as its own. The root's may be read-only."""

    def greatest(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The greatest of all ranks at each place, in a new array. All give as many values."""


def check_root(root: Any, world: int) -> None:
    """Raises ValueError where there is no such rank."""
    if isinstance(root, bool) or not isinstance(root, (int, np.integer)) or not 0 <= root < world:
        raise ValueError(f"root is {root!r}, expected a rank from 0 to {world - 1}")


class _Job:
    """Everything out of two calls, `_maximum` and `broadcast_bytes`."""

    rank: int
    world: int
    connected = True

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The elementwise maximum over all ranks, of uint8 or uint64; may be done in place."""
        raise NotImplementedError

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        raise NotImplementedError

    def greatest(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return self._maximum(np.array(values, np.uint64)) if np.size(values) else np.array(values, np.uint64)

    def allgather(self, value: Any, *, objects: bool = False) -> List[Any]:
        own = _sealed.seal_or_refuse(value, _ALLGATHER, self.rank, objects=objects)
        lengths = np.zeros(self.world, np.uint64)
        lengths[self.rank] = len(own)
        sizes = [int(length) for length in self.greatest(lengths)]
        if sum(sizes) <= ALLREDUCE_BYTES:
            # Where a rank has no bytes it has zeros: the greatest bytes of all ranks are all of them.
            begin = sum(sizes[:self.rank])
            whole = np.zeros(sum(sizes), np.uint8)
            whole[begin:begin + len(own)] = np.frombuffer(own, np.uint8)
            found = self._maximum(whole).data
            ends = np.cumsum([0, *sizes])
            pieces: Sequence[Piece] = [found[ends[rank]:ends[rank + 1]] for rank in range(self.world)]
        else:
            pieces = [self._broadcast_piece(own, size, rank) for rank, size in enumerate(sizes)]
        return [_sealed.loads(piece, _ALLGATHER, rank, objects=objects) for rank, piece in enumerate(pieces)]

    def _broadcast_piece(self, own: Piece, size: int, root: int) -> Piece:
        """Rank `root`'s `size` bytes, which all ranks know the number of. `own` matters on the root."""
        array = np.frombuffer(own, np.uint8) if self.rank == root else np.empty(size, np.uint8)
        self.broadcast_bytes(array, root)
        return array.data

    def broadcast(self, value: Any, root: int, *, objects: bool = False) -> Any:
        check_root(root, self.world)
        own: Piece = _sealed.seal_or_refuse(value, _BROADCAST, self.rank, objects=objects) if self.rank == root else b""
        size = int.from_bytes(self._broadcast_piece(len(own).to_bytes(8, "little"), 8, root), "little")
        found = _sealed.loads(self._broadcast_piece(own, size, root), _BROADCAST, root, objects=objects)
        return value if self.rank == root else found


class _XGBoost(_Job):
    """Over `xgboost.collective`, or `xgboost.rabit` before 1.7. Bytes go straight to XGBoost's C function: the one of Python
    pickles them, makes three copies, and lets them go only when the garbage collector runs."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.rank, self.world = int(module.get_rank()), int(module.get_world_size())
        core: Any = sys.modules["xgboost.core"]
        library = core._LIB  # pylint: disable=protected-access
        self._check = core._check_call  # pylint: disable=protected-access
        is_new = hasattr(library, "XGCommunicatorBroadcast")
        self._broadcast = library.XGCommunicatorBroadcast if is_new else library.RabitBroadcast

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = self._module.allreduce(values, self._module.Op.MAX)
        return result

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        if array.size:
            self._check(self._broadcast(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.size), ctypes.c_int(root)))


class _Warren(_Job):
    """Over a communicator of Warren's. Can send to one rank alone."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self.rank, self.world = communicator.rank, communicator.size

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = self._communicator.allreduce(values, 0, out=values)  # Op.MAX, as in rabit
        return result

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        if array.size:
            self._communicator.broadcast(array, root)

    def move(self, array: NDArray[np.uint8], source: int, to: int) -> None:
        """From one rank into the array of another, as long as its own. These two alone call it."""
        if array.size and self.rank == source:
            self._communicator.send(array, to)
        elif array.size:
            self._communicator.recv(array, source)


class _Torch(_Job):
    """Over the default group of torch.distributed, with tensors where its backend takes them."""

    _DEVICES = {"nccl": "cuda", "xccl": "xpu", "hccl": "hpu"}

    def __init__(self, distributed: Any) -> None:
        self._distributed, self._torch = distributed, sys.modules["torch"]
        self.rank, self.world = distributed.get_rank(), distributed.get_world_size()
        self._device = self._DEVICES.get(distributed.get_backend(), "cpu")

    def _tensor(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(array).to(self._device)

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        # PyTorch reduces no uint64: the upper bit turned over, they have the order of int64.
        wide = values.dtype == np.uint64
        top = np.uint64(1 << 63)
        tensor = self._tensor((values ^ top).view(np.int64) if wide else values)
        self._distributed.all_reduce(tensor, self._distributed.ReduceOp.MAX)
        result: NDArray[Any] = tensor.cpu().numpy()
        return result.view(np.uint64) ^ top if wide else result

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        if not array.size:
            return
        # PyTorch has no tensors that are read-only, and warns. A thread of gloo's may hold the array for a while afterwards.
        tensor = self._tensor(array if array.flags.writeable else array.copy())
        self._distributed.broadcast(tensor, root)
        if self.rank != root and tensor.device.type != "cpu":
            array[...] = tensor.cpu().numpy()


class Alone:
    """Rank 0 of 1."""

    rank = 0
    world = 1
    connected = True

    def allgather(self, value: Any, *, objects: bool = False) -> List[Any]:
        """The one object."""
        del objects
        return [value]

    def broadcast(self, value: Any, root: int, *, objects: bool = False) -> Any:
        """The object itself."""
        del objects
        check_root(root, 1)
        return value

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        """Does nothing, since there is no other rank."""
        del array
        check_root(root, 1)

    def greatest(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """A copy."""
        return np.array(values, np.uint64)


class _Given:
    """A rank and a number of ranks that somebody has said, with nothing to talk over."""

    connected = False

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"rank {self.rank} of {self.world} was given by hand, and this needs the ranks to talk to each other: join the job "
            "instead, as in `with warren.xgboost.communicator(): ...`, and leave rank and number of ranks out")

    def allgather(self, value: Any, *, objects: bool = False) -> List[Any]:
        """Raises RuntimeError, as all of them."""
        del value, objects
        self._refuse()

    def broadcast(self, value: Any, root: int, *, objects: bool = False) -> Any:
        """Raises RuntimeError."""
        del value, root, objects
        self._refuse()

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        """Raises RuntimeError."""
        del array, root
        self._refuse()

    def greatest(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Raises RuntimeError."""
        del values
        self._refuse()


def of(rank: int, world: int) -> Peers:
    """Rank `rank` of `world`, without communication: calls that need others raise RuntimeError. Of one rank, it is Alone. Raises
    ValueError where that is no rank."""
    if world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world}: expected a rank from 0 to {world - 1}" if world >= 1 else
                         f"a job of {world} ranks: expected at least one")
    if world == 1:
        return Alone()
    return _Given(rank, world)


def over_xgboost(module: Any) -> Peers:
    """The communicator of `module`, `xgboost.collective` or `xgboost.rabit`."""
    if module.get_world_size() > 1:
        return _XGBoost(module)
    return Alone()


def prove_over_xgboost(module: Any) -> None:
    """All ranks of XGBoost's communicator prove the job's token to each other (warren._sealed). A collective call. Raises RuntimeError
    where a rank has not proved it, or where XGBoost's own communication fails on the way."""
    peers = over_xgboost(module)
    if not isinstance(peers, _XGBoost):
        return
    try:
        _sealed.prove_to_each_other(peers.rank, peers.world, peers._maximum)  # pylint: disable=protected-access
    except sys.modules["xgboost.core"].XGBoostError as error:
        raise RuntimeError("XGBoost's own communication failed while the workers proved the job's token to each other: another worker has "
                           "gone or was in another call, or a process that is not of this job has taken a rank. The tracker's log has the "
                           f"address of each rank. XGBoost: {error}") from error


def _of_xgboost() -> Optional[Peers]:
    if "xgboost" not in sys.modules:
        return None
    module = sys.modules.get("xgboost.collective") or sys.modules.get("xgboost.rabit")
    # One that is still being imported has no functions yet.
    if module is None or not hasattr(module, "get_world_size") or module.get_world_size() <= 1:
        return None
    return _XGBoost(module)


def _of_warren() -> Optional[Peers]:
    rabit = sys.modules.get("warren.rabit")
    if "warren.collectives" not in sys.modules and (rabit is None or rabit.get_world_size() <= 1):
        return None
    from warren import collectives  # pylint: disable=import-outside-toplevel
    try:
        world = collectives.world()
    except RuntimeError:  # before `init`, and after `finalize`
        return None
    return _Warren(world) if world.size > 1 else None


def _of_torch() -> Optional[Peers]:
    module = sys.modules.get("torch.distributed")
    if module is None or not hasattr(module, "is_available") or not module.is_available() or not module.is_initialized():
        return None
    return _Torch(module) if module.get_world_size() > 1 else None


def current() -> Peers:
    """The job that this process is in: XGBoost's communicator, else Warren's, else the default group of torch.distributed, else
    none (Alone). Only libraries that are imported already are looked at. Raises RuntimeError in a worker of a job of several, or one
    of several processes of mpirun, srun or torchrun, that has not joined it: alone it would take all rows for its own."""
    for found in (_of_xgboost(), _of_warren(), _of_torch()):
        if found is not None:
            return found
    if _launched.has_left():
        raise RuntimeError("this process has left its job: do this inside of the `with` that joins it")
    workers = os.environ.get("DMLC_NUM_WORKER", "")
    role = os.environ.get("DMLC_ROLE", "worker")
    if os.environ.get("DMLC_TRACKER_URI") and role == "worker" and workers.isdigit() and int(workers) > 1:
        raise RuntimeError(
            f"this is one of {workers} workers of a job (DMLC_TRACKER_URI is set), and has not joined it: do this inside of "
            "`with warren.xgboost.communicator(): ...`, `with warren.lightgbm.communicator(): ...` or "
            "`with warren.collectives.context(): ...`, or after torch.distributed.init_process_group")
    launched = _launched.launched()
    if launched is not None:
        raise RuntimeError(
            f"{launched.story()}, and has not joined their job: do this inside of `with warren.xgboost.communicator(): ...`, `with "
            "warren.lightgbm.communicator(): ...` or `with warren.collectives.context(): ...`, or after "
            "torch.distributed.init_process_group; say rank= and world= for a share without a job, or set WARREN_BOOTSTRAP=none if "
            "the processes are separate programs")
    return Alone()


_KINDS = {kind.__name__: kind for kind in (ValueError, TypeError, FileNotFoundError, FileExistsError, PermissionError, OSError,
                                           ImportError, MemoryError, RuntimeError)}


def _told(error: BaseException) -> Tuple[str, str]:
    """The nearest kind that all ranks know, and what to say."""
    for kind in type(error).__mro__:
        if _KINDS.get(kind.__name__) is kind:
            return kind.__name__, str(error) or kind.__name__
    return "RuntimeError", f"{type(error).__name__}: {error}"


def agree(peers: Peers, error: Optional[BaseException]) -> None:
    """Ends a step that may fail on some ranks. A collective call: each rank gives what went wrong for it, or None. Raises the
    lowest rank's error on all, with the same words, and of the same kind where it is one of Python's own."""
    found = peers.allgather(None if error is None else _told(error))
    for rank, told in enumerate(found):
        if told is not None:
            kind, text = told
            words = text if peers.world == 1 or text.startswith("rank ") else f"rank {rank}: {text}"
            # These say all in their words; of others it matters where they come from.
            foreseen = isinstance(error, (ValueError, OSError, ImportError))
            raise _KINDS[kind](words) from (error if rank == peers.rank and not foreseen else None)


def together(peers: Peers, work: Callable[[], T]) -> T:
    """What `work` gives; where it fails on a worker, the error of the lowest such rank on all of them. All call it."""
    failure: Optional[Exception] = None
    try:
        result = work()
    except Exception as error:  # pylint: disable=broad-except
        failure = error
    if peers.world > 1 and peers.connected:
        agree(peers, failure)
    if failure is not None:
        raise failure
    return result


def with_greatest(peers: Peers, work: Callable[[Greatest], T]) -> T:
    """What `work` gives, which gets a function that gives the greatest values of all workers, and calls it once. An error that it raises
    before is raised on all workers, that of the lowest such rank. All call it."""
    asked = False

    def greatest(values: NDArray[Any]) -> NDArray[Any]:
        nonlocal asked
        asked = True
        agree(peers, None)
        return peers.greatest(values)

    try:
        return work(greatest)
    except Exception as error:  # pylint: disable=broad-except
        if asked:
            raise
        agree(peers, error)
        raise


def same_on_all(peers: Peers, arguments: Mapping[str, Any]) -> None:
    """A collective call: raises ValueError on all ranks where one gives other arguments than rank 0, naming both. Each would read
    other rows than the others think, or wait for them."""
    if peers.world == 1 or not peers.connected:
        return
    said = peers.allgather({name: repr(value) for name, value in arguments.items()})
    for rank, theirs in enumerate(said):
        for name in dict.fromkeys([*said[0], *theirs]):
            if theirs.get(name) != said[0].get(name):
                here, there = (one.get(name, "not given")[:200] for one in (said[0], theirs))
                raise ValueError(f"rank 0 has {name}={here}, and rank {rank} {name}={there}: all workers give the same")

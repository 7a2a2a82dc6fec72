"""The communication that the data package needs, over the library by which this process has joined a job: XGBoost, Warren,
torch.distributed.

All ranks make the same collective calls in the same order. A rank's next step depends only on information that all ranks have, never on its
own information alone; `agree` passes an error of one rank on to the others. Not thread-safe."""
import ctypes
import os
import sys
import traceback
from typing import Any, Callable, List, Mapping, NoReturn, Optional, Protocol, Sequence, Tuple, Type, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from warren._engine import sealed as _sealed
from warren._launch import rank as _rank
from warren._launch.launched import launched
from warren._launch.shared_tracker import has_left

T = TypeVar("T")
Piece = Union[memoryview, bytes, bytearray]
Greatest = Callable[[NDArray[Any]], NDArray[Any]]
_ALLGATHER, _BROADCAST = "warren.data allgather", "warren.data broadcast"

#: Objects of up to this many bytes, over all ranks together, are gathered by one allreduce instead of a broadcast from each rank. It sends
#: each byte about twice as often, but the ranks wait for each other only once.
ALLREDUCE_BYTES = 1 << 20


class Peers(Protocol):
    """The ranks of a job, as seen by one rank."""

    rank: int
    world: int
    connected: bool  #: whether the calls below can be used

    def allgather(self, value: Any, *, objects: bool = False) -> List[Any]:
        """Returns every rank's object, in rank order. `objects` allows more than plain data (warren._engine.sealed); in a job without a
        token these are pickles, which are loaded without any check. Raises TypeError on all ranks if a rank's object cannot be sent, and
        RuntimeError if another rank's bytes do not come from a process of this job."""

    def broadcast(self, value: Any, root: int, *, objects: bool = False) -> Any:
        """Returns rank `root`'s object; the other ranks' values are ignored. `objects` and errors are as for `allgather`."""

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        """Copies rank `root`'s bytes into the arrays of all other ranks, which have the same length. The root's array may be read-only."""

    def greatest(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Returns the elementwise maximum over all ranks, in a new array. All ranks pass the same number of values."""


def check_root(root: Any, world: int) -> None:
    """Raises ValueError unless `root` is a rank."""
    if isinstance(root, bool) or not isinstance(root, (int, np.integer)) or not 0 <= root < world:
        raise ValueError(f"root is {root!r}, expected a rank from 0 to {world - 1}")


class _Job:
    """Implements the calls of Peers by means of `_maximum` and `broadcast_bytes`."""

    rank: int
    world: int
    connected = True

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        """The elementwise maximum over all ranks, for uint8 or uint64; may work in place."""
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
            # Each rank has zeros outside its own part, so the maximum over all ranks contains all parts.
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
        """Returns rank `root`'s `size` bytes; all ranks know the size. `own` matters only on the root."""
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
    """Peers over `xgboost.collective`, or `xgboost.rabit` before 1.7. Bytes are passed directly to XGBoost's C function: its Python
    function pickles them, makes three copies, and frees them only when the garbage collector runs."""

    def __init__(self, module: Any) -> None:
        if _rank.is_forked():
            raise RuntimeError("this process was forked from a worker, and XGBoost cannot communicate in it")
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
    """Peers over one of Warren's communicators. Can also send to a single rank."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self.rank, self.world = communicator.rank, communicator.size

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = self._communicator.allreduce(values, 0, out=values)  # 0 is rabit's Op.MAX
        return result

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        if array.size:
            self._communicator.broadcast(array, root)

    def move(self, array: NDArray[np.uint8], source: int, to: int) -> None:
        """Sends the array of rank `source` into the array of rank `to`, which has the same length. Only these two ranks call it."""
        if array.size and self.rank == source:
            self._communicator.send(array, to)
        elif array.size:
            self._communicator.recv(array, source)


class _Torch(_Job):
    """Peers over torch.distributed's default group, with tensors on the device that its backend uses."""

    _DEVICES = {"nccl": "cuda", "xccl": "xpu", "hccl": "hpu"}

    def __init__(self, distributed: Any) -> None:
        self._distributed, self._torch = distributed, sys.modules["torch"]
        self.rank, self.world = distributed.get_rank(), distributed.get_world_size()
        self._device = self._DEVICES.get(distributed.get_backend(), "cpu")

    def _tensor(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(array).to(self._device)

    def _maximum(self, values: NDArray[Any]) -> NDArray[Any]:
        # PyTorch cannot reduce uint64. Flipping the top bit converts the values to int64 without changing their order.
        wide = values.dtype == np.uint64
        top = np.uint64(1 << 63)
        tensor = self._tensor((values ^ top).view(np.int64) if wide else values)
        self._distributed.all_reduce(tensor, self._distributed.ReduceOp.MAX)
        result: NDArray[Any] = tensor.cpu().numpy()
        return result.view(np.uint64) ^ top if wide else result

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        if not array.size:
            return
        # A read-only array is copied, because PyTorch has no read-only tensors and would print a warning.
        tensor = self._tensor(array if array.flags.writeable else array.copy())
        self._distributed.broadcast(tensor, root)
        if self.rank != root and tensor.device.type != "cpu":
            array[...] = tensor.cpu().numpy()


class Alone:
    """A world of one rank."""

    rank = 0
    world = 1
    connected = True

    def allgather(self, value: Any, *, objects: bool = False) -> List[Any]:
        """Returns the object in a list."""
        del objects
        return [value]

    def broadcast(self, value: Any, root: int, *, objects: bool = False) -> Any:
        """Returns the object itself."""
        del objects
        check_root(root, 1)
        return value

    def broadcast_bytes(self, array: NDArray[np.uint8], root: int) -> None:
        """Only checks `root`, since there is no other rank."""
        del array
        check_root(root, 1)

    def greatest(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Returns a copy."""
        return np.array(values, np.uint64)


class _Given:
    """A rank and world size given by the caller, without communication."""

    connected = False

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(
            f"rank {self.rank} of {self.world} was given explicitly, but this needs the ranks to communicate: join the job "
            "instead, as in `with warren.xgboost.communicator(): ...`, and leave rank and number of ranks out")

    allgather = broadcast = broadcast_bytes = greatest = _refuse


def of(rank: int, world: int) -> Peers:
    """Returns rank `rank` of `world`, without communication: calls that need other ranks raise RuntimeError. For a world of one rank this
    is Alone. Raises ValueError if `rank` is not a rank of `world`."""
    if world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world}: expected a rank from 0 to {world - 1}" if world >= 1 else
                         f"a job of {world} ranks: expected at least one")
    if world == 1:
        return Alone()
    return _Given(rank, world)


def over_xgboost(module: Any) -> Peers:
    """Returns the ranks of the communicator that `module` (`xgboost.collective` or `xgboost.rabit`) has joined; Alone if there is only
    one."""
    if module.get_world_size() > 1:
        return _XGBoost(module)
    return Alone()


def prove_over_xgboost(module: Any) -> None:
    """Makes all ranks of XGBoost's communicator prove to each other that they know the job's token (warren._engine.sealed). A collective
    call. Does nothing in a communicator of one rank, or if no rank has a token. Raises RuntimeError if a rank fails to prove this, or if
    XGBoost's own communication fails."""
    if module.get_world_size() <= 1:
        return
    peers = _XGBoost(module)
    try:
        _sealed.prove_to_each_other(peers.rank, peers.world, peers._maximum)  # pylint: disable=protected-access
    except sys.modules["xgboost.core"].XGBoostError as error:
        raise RuntimeError("XGBoost's own communication failed while the workers proved the job's token to each other: another worker has "
                           "ended or was in another call, or a process that does not belong to this job has taken a rank. The tracker's "
                           f"log has the address of each rank. XGBoost: {error}") from error


def _of_xgboost() -> Optional[Peers]:
    if "xgboost" not in sys.modules:
        return None
    module = sys.modules.get("xgboost.collective") or sys.modules.get("xgboost.rabit")
    # A module that is still being imported has no functions yet.
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
    except RuntimeError:  # before `init`, or after `finalize`
        return None
    return _Warren(world) if world.size > 1 else None


def _of_torch() -> Optional[Peers]:
    module = sys.modules.get("torch.distributed")
    if module is None or not hasattr(module, "is_available") or not module.is_available() or not module.is_initialized():
        return None
    return _Torch(module) if module.get_world_size() > 1 else None


def of_other_libraries() -> Optional[Peers]:
    """The ranks of the job that this process has joined through Warren or torch.distributed, if there are several; else None."""
    return _of_warren() or _of_torch()


def current() -> Peers:
    """Returns the ranks of this process's job: of XGBoost's communicator, else of Warren's, else of torch.distributed's default group; else
    Alone. Only libraries that have been imported are considered. Raises RuntimeError if this process has left its job, and also if it is
    one of several workers of a job, or one of several processes started by mpirun, srun or torchrun, and has not joined the job: it would
    otherwise take all rows as its own."""
    for found in (_of_xgboost(), _of_warren(), _of_torch()):
        if found is not None:
            return found
    if has_left():
        raise RuntimeError("this process has left its job: do this inside the `with` that joins it")
    workers = os.environ.get("DMLC_NUM_WORKER", "")
    role = os.environ.get("DMLC_ROLE", "worker")
    if os.environ.get("DMLC_TRACKER_URI") and role == "worker" and workers.isdigit() and int(workers) > 1:
        raise RuntimeError(
            f"this is one of {workers} workers of a job (DMLC_TRACKER_URI is set), and has not joined it: do this inside `with "
            "warren.xgboost.communicator(): ...`, `with warren.lightgbm.communicator(): ...` or "
            "`with warren.collectives.context(): ...`, or after torch.distributed.init_process_group")
    process = launched()
    if process is not None:
        raise RuntimeError(
            f"{process.description()}, and has not joined their job: do this inside `with warren.xgboost.communicator(): ...`, `with "
            "warren.lightgbm.communicator(): ...` or `with warren.collectives.context(): ...`, or after "
            "torch.distributed.init_process_group; give rank= and world= for a share without a job, or set WARREN_BOOTSTRAP=none if "
            "the processes are separate programs")
    return Alone()


_KINDS = {kind.__name__: kind for kind in (ValueError, TypeError, FileNotFoundError, FileExistsError, PermissionError, OSError,
                                           ImportError, MemoryError, RuntimeError)}


#: The attribute of an error with the place at which a function of the caller raised it.
_PLACE = "warren_place"


def _kind(name: str) -> Type[Exception]:
    """The class of this name: one of _KINDS, or XGBoostError, for which its base ValueError stands if XGBoost is not imported."""
    if name == "XGBoostError":
        found: Type[Exception] = getattr(sys.modules.get("xgboost.core"), name, ValueError)
        return found
    return _KINDS.get(name, RuntimeError)


def _told(error: BaseException) -> Tuple[str, str]:
    """Returns the name of the error's nearest class that `_kind` knows, or else "RuntimeError", and the message."""
    kind = next((one for one in type(error).__mro__ if _kind(one.__name__) is one), None)
    words = f"{type(error).__name__}: {error}" if kind is None else str(error) or kind.__name__
    place = getattr(error, _PLACE, "")
    return "RuntimeError" if kind is None else kind.__name__, f"{words} ({place})" if place else words


def of_caller(function: Callable[..., T]) -> Callable[..., T]:
    """Returns `function`, which the caller has given, with errors in whose message `agree` names the line that raised them."""
    def call(*arguments: Any, **named: Any) -> T:
        try:
            return function(*arguments, **named)
        except Exception as error:
            for frame, line in traceback.walk_tb(error.__traceback__):
                # A library's function may stand between, such as that of an estimator's metric.
                if str(frame.f_globals.get("__name__")).partition(".")[0] not in ("warren", "xgboost"):
                    setattr(error, _PLACE, f"in {frame.f_code.co_name}, {frame.f_code.co_filename}:{line}")
                    break
            raise

    return call


def agree(peers: Peers, error: Optional[BaseException]) -> None:
    """Ends a step that may fail on some ranks. A collective call: each rank passes its error, or None. If any rank has failed, raises the
    error of the lowest failed rank on all ranks, with the same text. Its class is the nearest one that `_kind` knows, or RuntimeError."""
    found = peers.allgather(None if error is None else _told(error))
    for rank, told in enumerate(found):
        if told is not None:
            kind, text = told
            words = text if peers.world == 1 or text.startswith("rank ") else f"rank {rank}: {text}"
            # These errors explain themselves, unless a function of the caller has raised them; for others, the traceback is needed.
            foreseen = isinstance(error, (ValueError, OSError, ImportError)) and not hasattr(error, _PLACE)
            raise _kind(kind)(words) from (error if rank == peers.rank and not foreseen else None)


def together(peers: Peers, work: Callable[[], T]) -> T:
    """Returns the result of `work`. If `work` fails on any rank, raises the error of the lowest failed rank on all ranks. A collective call,
    unless the ranks are not connected: a rank then raises only its own error."""
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
    """A collective call. Returns the result of `work`. Its argument is a function that computes the elementwise maximum over all workers;
    `work` must call this function exactly once. If `work` fails on some ranks before that call, all ranks raise the error of the lowest of
    these ranks; a later error is raised only on the rank where it occurs."""
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


def _text_of(value: Any) -> str:
    """Like repr, but the elements of sets are sorted: their order differs between processes."""
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_text_of, value)))}}}"
    if isinstance(value, (list, tuple)):
        return f"{'[' if isinstance(value, list) else '('}{', '.join(map(_text_of, value))}{']' if isinstance(value, list) else ')'}"
    return repr(value)


def same_on_all(peers: Peers, arguments: Mapping[str, Any]) -> None:
    """Raises ValueError on all ranks if the arguments of a rank differ from those of rank 0, naming both values. Without this check,
    a rank could read different rows than the others expect, or wait for the others forever. A collective call."""
    if peers.world == 1 or not peers.connected:
        return
    said = peers.allgather({name: _text_of(value) for name, value in arguments.items()})
    for rank, theirs in enumerate(said):
        for name in dict.fromkeys([*said[0], *theirs]):
            if theirs.get(name) != said[0].get(name):
                here, there = (one.get(name, "not given")[:200] for one in (said[0], theirs))
                raise ValueError(f"rank 0 has {name}={here}, and rank {rank} {name}={there}: all workers must give the same")

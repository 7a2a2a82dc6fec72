"""The key-value stores, one class for each place where the values are kept; made by warren.kvstore.create."""
import functools
import os
import sys
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, NoReturn, Optional, Tuple, Type

import numpy as np

from warren import collectives
from warren._frameworks.world import communicator_or_world
from warren._kvstore.deadlocks import Waiting
from warren._kvstore.optimizers import OptimizerUpdater, Updater, numpy_optimizer
from warren._kvstore.values import Key, pairs, read, shared, summed, write
from warren._launch.launched import launched
from warren._parameter_server.sharded_array import Handle, ShardedArray, check_alike, slice_of
from warren._parameter_server.shards import Array, RoundShard, Shard, UpdateShard, check_numbers, place
from warren.collectives import Communicator, Op

_BOUND, _BIG_ARRAY_BOUND = "MXNET_KVSTORE_BIGARRAY_BOUND", 1_000_000


def _refused(name: str, instead: str) -> Callable[..., NoReturn]:
    """Returns a method that raises NotImplementedError, for a method that MXNet's stores have and one of these stores lacks."""
    def refuse(self: "_Store", *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"the key-value store '{self.type}' has no {name}: {instead}")

    refuse.__name__, refuse.__doc__ = name, f"Refused: {instead}."
    return refuse


class _Store:
    """The methods that all stores share."""

    _has_optimizer = True

    def __init__(self, kind: str, communicator: Optional[Communicator]) -> None:
        """Without a communicator, this process is the only worker."""
        self._type, self._comm = kind, communicator

    @classmethod
    def is_capable(cls, capability: str) -> bool:
        """Whether the store has a capability of MXNet's stores. The only known one is "optimizer"; raises ValueError for others."""
        if capability.lower() != "optimizer":
            raise ValueError(f"unknown capability '{capability}'; expected 'optimizer'")
        return cls._has_optimizer

    @property
    def type(self) -> str:
        return self._type

    @property
    def rank(self) -> int:
        return self._comm.rank if self._comm else 0

    @property
    def num_workers(self) -> int:
        return self._comm.size if self._comm else 1

    def barrier(self) -> None:
        """Returns when all workers have called it."""
        if self._comm:
            self._comm.barrier()

    _barrier = barrier

    def __enter__(self) -> "_Store":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        # After an exception the other workers may never call close.
        if kind is None:
            self.close()

    def close(self) -> None:
        """Ends the store. Collective."""

    row_sparse_pull = _refused("row_sparse_pull", "no store of warren has sparse values; pull the whole one by 'dist_sync' or "
                               "'dist_async'")
    set_gradient_compression = _refused("set_gradient_compression", "no store of warren compresses; push float16 arrays instead")
    save_optimizer_states = _refused("save_optimizer_states", "save the weights that you pull")
    load_optimizer_states = _refused("load_optimizer_states", "init the keys with the weights that you saved")


class AllreduceStore(_Store):
    """"dist_sync_mpi": sums over all workers; the workers keep the values themselves."""

    _has_optimizer = False

    def __init__(self, kind: str, communicator: Optional[Communicator]) -> None:
        communicator = communicator_or_world(communicator, "a key-value store")
        super().__init__(kind, communicator)
        self._coordinator = communicator.coordinator()
        self._waiting = Waiting(communicator)

    # Arguments may be named as in MXNet's design document or as in MXNet's code.

    def pushpull(self, key: Any, ins: Any, outs: Any = None, priority: int = 0, out: Any = None) -> None:
        """Stores the sum of `ins` over all workers and devices in `outs`, by default in `ins`. Raises RuntimeError if the workers are
        deadlocked in calls for different keys."""
        outs = outs if outs is not None else out if out is not None else ins
        sums, handles = [], []
        for name, values in pairs(key, ins, "pushpull"):
            in_place = shared(values, "pushpull") if outs is ins else None
            total = summed(values, "pushpull") if in_place is None else in_place
            sums.append((total, in_place is None))
            handles.append(self._coordinator.allreduce(f"{name!r}", total, Op.SUM, out=total, priority=priority))
        with self._waiting.call([f"pushpull of key {name!r}" for name, _ in pairs(key, ins, "pushpull")], self._coordinator.close):
            collectives.wait_all(handles)
        for (total, is_apart), (_, targets) in zip(sums, pairs(key, outs, "pushpull")):
            if is_apart:
                write(total, targets, "pushpull")

    def broadcast(self, key: Any, value: Any, outs: Any = None, priority: int = 0, root_rank: int = 0, out: Any = None) -> None:
        """Stores the value of rank root_rank in `outs`, by default in `value`. The third argument may be the root, `broadcast(key, value,
        1)`, as in MXNet's design document, or the result tensors, as in MXNet's code: an int is taken as the root."""
        if isinstance(outs, int):
            outs, root_rank = None, outs
        outs = outs if outs is not None else out if out is not None else value
        copies = [(name, np.array(read(values[0], "broadcast"), order="C")) for name, values in pairs(key, value, "broadcast")]
        handles = [self._coordinator.broadcast(f"broadcast of {name!r}", copy, root_rank, priority) for name, copy in copies]
        with self._waiting.call([f"broadcast of key {name!r}" for name, _ in copies], self._coordinator.close):
            received = collectives.wait_all(handles)
        for found, (_, targets) in zip(received, pairs(key, outs, "broadcast")):
            write(found, targets, "broadcast")

    def barrier(self) -> None:
        """Returns when all workers have called it."""
        with self._waiting.call(["barrier"], self._coordinator.close):
            self._coordinator.barrier("barrier").wait()

    _barrier = barrier

    def close(self) -> None:
        self._waiting.close()
        self._coordinator.close()

    _BY_SERVERS = "it has no servers that keep values; {}, or take 'dist_sync' or 'dist_async'"
    init = _refused("init", _BY_SERVERS.format("broadcast them"))
    push = _refused("push", _BY_SERVERS.format("call pushpull"))
    pull = _refused("pull", _BY_SERVERS.format("call pushpull"))
    set_optimizer = _refused("set_optimizer", _BY_SERVERS.format("update the weights on each worker by the sums of pushpull"))
    set_updater = _refused("set_updater", _BY_SERVERS.format("update the weights on each worker by the sums of pushpull"))


class _KeyedStore(_Store):
    """A store that keeps a value for each key."""

    def __init__(self, kind: str, communicator: Optional[Communicator]) -> None:
        super().__init__(kind, communicator)
        self._values: Dict[Key, Any] = {}  # objects with a shape and a dtype
        self._updater: Optional[Updater] = None

    def init(self, key: Any, value: Any) -> None:
        """Adds keys to the store, with the values of worker 0. Collective, except for a store of one process. Raises ValueError for a key
        that is already in the store."""
        for name, values in pairs(key, value, "init"):
            if name in self._values:
                raise ValueError(f"init: key {name!r} is in the store already")
            array = read(values[0], f"init of key {name!r}")
            check_numbers(array.dtype, f"init: key {name!r}")
            self._values[name] = self._made(name, array)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sends values to the store, summed over the devices. Does not wait for servers."""
        raise NotImplementedError

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Fills `out`, on all its devices, with the stored values, which include all earlier pushes of this worker."""
        raise NotImplementedError

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, then `pull` into `out`, by default into `value`."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0, root_rank: int = 0) -> None:
        """`init`, then `pull`."""
        if root_rank != 0:
            raise ValueError(f"broadcast: the values of '{self.type}' are worker 0's, not {root_rank}'s; take 'dist_sync_mpi'")
        self.init(key, value)
        self.pull(key, out, priority)

    def set_optimizer(self, optimizer: Any) -> None:
        """Sets the optimizer that the store applies to later pushes. A collective call, with equal optimizers on all workers; the server in
        each worker's process uses that worker's optimizer. See `Optimizer`; MXNet optimizers are accepted, too."""
        self.set_updater(OptimizerUpdater(numpy_optimizer(optimizer)))

    def set_updater(self, updater: Updater) -> None:
        """Like `set_optimizer`, but takes a function (key, pushed, stored) that changes `stored` in place."""
        if not callable(updater):
            raise TypeError(f"set_updater takes a function of key, pushed and stored, not {type(updater).__name__}")
        self._updater = updater
        self.barrier()  # afterwards all servers have the updater

    _set_updater = set_updater

    def _made(self, key: Key, array: Array) -> Any:
        raise NotImplementedError

    def _value(self, key: Key, what: str) -> Any:
        if key not in self._values:
            raise ValueError(f"{what}: key {key!r} is not in the store; call init with it before, on all workers")
        return self._values[key]

    def _checked(self, key: Key, array: Array, what: str) -> Array:
        known = self._value(key, what)
        if array.shape != known.shape or array.dtype != known.dtype:
            raise ValueError(f"{what}: key {key!r} has the shape {known.shape} and the type {known.dtype}, not {array.shape} and "
                             f"{array.dtype}")
        return array

    def _targets(self, key: Any, out: Any) -> Iterator[Tuple[Key, Any, List[Any]]]:
        """Yields each key of a `pull` with its stored value and its target arrays."""
        if out is None:
            raise ValueError("pull needs an `out`, which it fills")
        for name, targets in pairs(key, out, "pull"):
            known = self._value(name, "pull")
            for target in targets:
                if tuple(target.shape) != known.shape:
                    raise ValueError(f"pull: key {name!r} has the shape {known.shape}, but its output has {tuple(target.shape)}")
            yield name, known, targets


class LocalStore(_KeyedStore):
    """"local" and "device": the values are kept in this process, which is the only worker, however it was started. Without an updater a
    push replaces the value. Thread-safe."""

    def __init__(self, kind: str, communicator: Optional[Communicator]) -> None:
        if communicator is not None and communicator.size > 1:
            raise ValueError(f"the key-value store '{kind}' is for one process, not for {communicator.size} ranks; use 'dist_sync'")
        super().__init__(kind, None)
        self._lock = threading.Lock()
        found = launched()
        workers = os.environ.get("DMLC_NUM_WORKER", "") if found is None else str(found.size)
        if workers not in ("", "0", "1"):
            warnings.warn(f"the key-value store '{kind}' is local to this process: the {workers} workers of the job train separately. "
                          "Take 'dist_sync' to train together", stacklevel=3)

    def _made(self, key: Key, array: Array) -> Array:
        return np.array(array, order="C")

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        for name, array in [(name, self._checked(name, summed(values, "push"), "push")) for name, values in pairs(key, value, "push")]:
            with self._lock:
                if self._updater is None:
                    self._values[name][...] = array
                else:
                    self._updater(name, array, self._values[name])

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        for _, stored, targets in self._targets(key, out):
            with self._lock:
                array = stored.copy()
            write(array, targets, "pull")


class _Value:
    """A key's value on its servers, and this worker's pushes whose results are not known yet."""

    def __init__(self, array: ShardedArray, shape: Tuple[int, ...], dtype: Any) -> None:
        self.array, self.shape, self.dtype = array, shape, dtype
        self.pushes: List[Handle[None]] = []

    def push(self, flat: Array) -> None:
        ended = [push for push in self.pushes if push.done()]
        failed = next((push for push in ended if push.untold() is not None), None)
        self.pushes = [push for push in self.pushes if push not in ended] + ([] if failed is None else [failed])
        self.pushes.append(self.array.send(flat))

    def settle(self) -> None:
        """Raises the error of the first push that failed. To be called when a pull that was made after the pushes has ended: the pushes
        have then ended, too."""
        pushes, self.pushes = self.pushes, []
        for push in pushes:
            push.wait()


def _big_array_bound() -> int:
    """The number of elements that an array must have to be spread over all servers. Raises ValueError if MXNet's variable for it is not a
    number."""
    text = os.environ.get(_BOUND, "")
    try:
        return int(text) if text else _BIG_ARRAY_BOUND
    except ValueError:
        raise ValueError(f"{_BOUND} in the environment is {text!r}, expected a number of elements such as {_BIG_ARRAY_BOUND}, the "
                         "default") from None


class ServerStore(_KeyedStore):
    """"dist_sync" and "dist_async": the values are kept by servers, one in each worker's process."""

    def __init__(self, kind: str, communicator: Optional[Communicator]) -> None:
        self._communicator = communicator_or_world(communicator, "a key-value store")
        super().__init__(kind, self._communicator)
        self._is_sync = "async" not in kind
        self._bound = _big_array_bound()
        self._updater_lock = threading.Lock()  # keys are updated by the server's thread and by this worker's thread

    def _made(self, key: Key, array: Array) -> _Value:
        comm = self._communicator
        check_alike(comm, "init", (key, array.shape, array.dtype.str, self._bound))
        parts = place(key, array.size, range(comm.size), self._bound)
        own = slice_of(comm, np.ascontiguousarray(array).reshape(-1), parts, root=0)
        whole = array.shape if len(parts) == 1 else None
        sharded = ShardedArray(comm, parts, own, lambda values: self._shard(key, values, whole))
        return _Value(sharded, array.shape, array.dtype)

    def _shard(self, key: Key, values: Array, whole: Optional[Tuple[int, ...]]) -> Shard:
        update = functools.partial(self._apply, key, whole)
        what = f"rank {self.rank}: the updater of key {key!r} failed"
        if self._is_sync:
            return RoundShard(values, what, update, self.num_workers)
        return UpdateShard(values, what, update)

    def _apply(self, key: Key, whole: Optional[Tuple[int, ...]], stored: Array, pushed: Array) -> None:
        """Applies a push on the server. `whole` is the shape of the value, or None if it is spread over servers."""
        if self._updater is None:
            stored[:] = pushed  # the sum over all workers
            return
        shape = stored.shape if whole is None else whole
        with self._updater_lock:
            self._updater(key, pushed.reshape(shape), stored.reshape(shape))

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        if not self._is_sync and self._updater is None:
            raise ValueError(f"push: the servers of '{self.type}' have no updater; call set_optimizer before, on all workers")
        ready = [(self._value(name, "push"), self._checked(name, summed(values, "push"), "push"))
                 for name, values in pairs(key, value, "push")]
        for known, array in ready:
            known.push(array.reshape(-1))

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        asked = []
        for _, known, targets in self._targets(key, out):
            memory = shared(targets, "pull")
            in_place = memory is not None and memory.dtype == known.dtype
            array = memory if in_place else np.empty(known.shape, known.dtype)
            asked.append((known, known.array.receive(array.reshape(-1), array), [] if in_place else targets))
        for known, handle, targets in asked:
            array = handle.wait()
            known.settle()
            write(array, targets, "pull")

    def close(self) -> None:
        """Ends the store once all pending pushes have been applied. Collective."""
        values, self._values = self._values, {}
        for value in values.values():
            value.array.free()


#: The store classes by the names that `create` takes.
STORES: Dict[str, Type[_Store]] = {
    **dict.fromkeys(("local", "local_update_cpu", "local_allreduce_cpu", "device", "local_allreduce_device"), LocalStore),
    "dist_sync_mpi": AllreduceStore,
    **dict.fromkeys(("dist_sync", "dist", "dist_sync_device", "dist_device_sync", "dist_async"), ServerStore),
}


def for_mxnet(store: Type[_Store]) -> Type[_Store]:
    """The store class, derived from MXNet's base class if MXNet is imported, so that MXNet accepts it."""
    base = getattr(getattr(sys.modules.get("mxnet"), "kvstore", None), "KVStoreBase", None)
    return store if base is None else type(store.__name__, (store, base), {"__doc__": store.__doc__})

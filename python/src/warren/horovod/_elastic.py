"""hvd.elastic: jobs of `dmlc-submit --num-workers MIN:MAX`, which continue when workers are lost or join. See docs/how-to/elastic.md.

In such a job `hvd.init` waits until this process is a member of a generation of workers (_session.py), and joins it. A function decorated with
`run` is called again in each further generation, with the state of that generation's rank 0."""
import contextlib
import copy
import functools
from typing import Any, Callable, Iterable, List, Optional, TypeVar

import numpy as np

from warren.horovod import _arrays, _job
from warren.horovod._errors import HorovodInternalError, HostsUpdatedInterrupt
from warren.horovod._job import global_process_set, rank
from warren.horovod._named import ReduceOp
from warren.horovod._objects import broadcast_object
from warren.horovod._session import Session, session

T = TypeVar("T")


class State:
    """The base class for the state that ranks share in `run`. `save` keeps a copy of the state in memory, `restore` returns to that copy,
    `sync` copies the state of rank 0 to all ranks, and `reset` adapts the state to changed ranks."""

    def __init__(self, bcast_object: Callable[[Any], Any] = broadcast_object, get_rank: Callable[[], int] = rank) -> None:
        self._bcast_object, self._rank = bcast_object, get_rank
        self._reset_callbacks: List[Callable[[], Any]] = []

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], Any]]) -> None:
        """Adds functions that are called after each change of ranks, such as one that scales the learning rate."""
        self._reset_callbacks += callbacks

    def on_reset(self) -> None:
        """Called after a change of ranks, before `sync`."""
        self.reset()
        for callback in self._reset_callbacks:
            callback()

    def commit(self) -> None:
        """Saves the state, and then calls `check_host_updates`. A collective call."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """A collective call. Raises HostsUpdatedInterrupt on all ranks if any of them has been notified that another worker is waiting,
        that a member was lost, or that it must end. Does nothing in a job with a fixed number of workers."""
        ours = session()
        if ours is None:
            return
        wants = np.array([ours.wants_change()], np.uint8)
        found, = _arrays.allreduce([wants], "warren.elastic", ReduceOp.Max, 1.0, 1.0, global_process_set).wait()
        if found[0]:
            raise HostsUpdatedInterrupt

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """Does nothing; subclasses may override it."""


class ObjectState(State):
    """A state of Python objects, which are its attributes: `ObjectState(epoch=0, batch=0)`."""

    def __init__(self, bcast_object: Callable[[Any], Any] = broadcast_object, get_rank: Callable[[], int] = rank, **kwargs: Any) -> None:
        super().__init__(bcast_object, get_rank)
        self._saved_state = {name: copy.deepcopy(value) for name, value in kwargs.items()}
        for name, value in kwargs.items():
            setattr(self, name, value)

    def save(self) -> None:
        """Saves copies of the attributes."""
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self) -> None:
        """Sets the attributes to copies of the saved values."""
        for name, value in self._saved_state.items():
            setattr(self, name, copy.deepcopy(value))

    def sync(self) -> None:
        """Sets the attributes to rank 0's saved values."""
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self.restore()


def _next_generation(ours: Session) -> None:
    with contextlib.suppress(RuntimeError, ValueError):
        _job.shutdown()
    ours.leave_generation()
    _job.init()


def run_fn(func: Callable[..., T], reset: Optional[Callable[[], Any]] = None) -> Callable[..., T]:
    """Returns a function of a State and other arguments. It calls `func` in each generation of workers, until `func` has returned on all ranks;
    in a job with a fixed number of workers, it calls `func` once. A HorovodInternalError propagates unless a worker was lost or another
    one is waiting. `reset` is ignored; Horovod's modules pass it."""
    del reset

    @functools.wraps(func)
    def wrapper(state: State, *arguments: Any, **named: Any) -> T:
        ours = session()
        if ours is None:
            state.sync()
            return func(state, *arguments, **named)
        if ours.begin_work():
            _next_generation(ours)
        while True:
            try:
                state.sync()
                result = func(state, *arguments, **named)
                _job.barrier()
                ours.end_work()
                return result
            except HorovodInternalError as error:
                ours.require_loss(error)
                state.restore()
            except HostsUpdatedInterrupt:
                pass
            _next_generation(ours)
            state.on_reset()

    return wrapper


def run(func: Callable[..., T]) -> Callable[..., T]:
    """Decorates a training function, whose first argument is a State. The function starts from that state, and commits it at intervals. If a
    worker is lost, the others return to the last commit, and call the function again in the next generation, with the worker's replacement if
    this starts in time. If another worker is waiting at a commit, they call the function again together with that worker. All operations must
    be inside the function, since workers that join later would miss those outside.

    In a job with a fixed number of workers, the function is called once."""
    return run_fn(func)

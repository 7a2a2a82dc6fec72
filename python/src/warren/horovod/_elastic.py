"""hvd.elastic: jobs of `dmlc-submit --num-workers MIN:MAX` that go on when workers are lost or come. See docs/how-to/elastic.md.

In such a job `hvd.init` waits until this process is a member of a generation of workers (warren._launch.membership), and joins it. A function
that `run` decorates is called again in each further generation, with the state that its first rank has committed."""
import contextlib
import copy
import functools
import os
import sys
from typing import Any, Callable, Iterable, List, Optional, TypeVar

import numpy as np

from warren import collectives
from warren._launch import membership as _membership
from warren._launch.preemption import EndRequest
from warren._launch.shared_tracker import entered_again
from warren.horovod import _arrays, _job
from warren.horovod._errors import HorovodInternalError, HostsUpdatedInterrupt
from warren.horovod._job import global_process_set, rank
from warren.horovod._named import ReduceOp
from warren.horovod._objects import broadcast_object

T = TypeVar("T")

#: How long a worker whose operation has failed waits to hear from the tracker that another one is lost.
_PATIENCE_S = 5.0


class Session:
    """The membership of this process in its elastic job."""

    def __init__(self) -> None:
        self._end = EndRequest()
        self._end.may_wait = True
        self._end.begin()
        self._membership = _membership.Membership()
        self._is_done = False
        self._order: Optional[int] = None  # this process's rank in the last generation that it was a member of
        self.is_in_generation = False

    def join(self) -> "_job.Job":
        """Joins the next generation, and returns the job with its ranks. Ends the program if the job has no work left, or if this process has
        been asked to end."""
        while True:
            try:
                generation = self._membership.next_generation(lambda: not self._end.is_there)
            except _membership.JobIsOver:
                sys.stderr.write("warren: the job's work was done before this worker could take part in it\n")
                self._is_done = True
                raise SystemExit(0) from None
            if self._end.is_there:
                self._leave_job()
            try:
                os.environ["DMLC_NUM_WORKER"] = str(generation.size)
                entered_again()
                collectives.init([f"DMLC_TASK_ID={os.environ.get('DMLC_TASK_ID', '')}@{generation.number}",
                                  f"DMLC_NUM_WORKER={generation.size}"])
                # Members of the last generation come first: rank 0, from which states are copied, has one.
                found = _job.Job(collectives.world(), generation.size if self._order is None else self._order)
                self._membership.joined()
            except RuntimeError as error:
                self.require_loss(error)
                self.leave_generation()
                self._membership.come_again()
                continue
            self._order = found.world.rank
            self.is_in_generation = True
            return found

    def require_loss(self, error: Exception) -> None:
        """Raises the error of an operation unless the tracker says that a worker was lost."""
        if not self._membership.is_known_to_end(_PATIENCE_S):
            raise error

    def leave_generation(self) -> None:
        """Leaves the ranks of this generation. Ranks that were lost make no difference."""
        self.is_in_generation = False
        with contextlib.suppress(RuntimeError, ValueError):
            _job.shutdown()
        with contextlib.suppress(RuntimeError):
            collectives.finalize()

    def _leave_job(self) -> None:
        self._membership.leave()
        self._is_done = True
        raise SystemExit(EndRequest.STATUS)

    def begin(self) -> None:
        """To be called at the beginning of `run`."""
        self._end.may_wait = True
        if self._is_done:
            self._is_done = False
            self.next_generation()

    def end(self) -> None:
        """To be called when the decorated function has returned on all ranks: the work is done, unless `begin` is called again."""
        self._end.may_wait = False
        self._membership.done()
        self._is_done = True

    def next_generation(self) -> None:
        """Leaves this generation, and joins the next one."""
        self.leave_generation()
        if self._end.is_there:
            self._leave_job()
        self._membership.come_again()
        _job.init()

    def wants_change(self) -> bool:
        """Whether one of the ranks has heard that another worker waits, or has been asked to end. All of them call it."""
        mine = np.array([self._membership.wants_change() or self._end.is_there], np.uint8)
        found, = _arrays.allreduce([mine], "warren.elastic", ReduceOp.Max, 1.0, 1.0, global_process_set).wait()
        return bool(found[0])

    def close(self, is_well: bool) -> None:
        """To be called when the process ends. `is_well`: it has done its work."""
        if is_well and not self._is_done:
            with contextlib.suppress(RuntimeError):
                self._membership.done()
        self._membership.close()


_session: Optional[Session] = None


def session() -> Optional[Session]:
    """The session of this process, which is made in an elastic job; None in other jobs."""
    global _session  # pylint: disable=global-statement
    if _session is None and _membership.is_elastic() and os.environ.get("DMLC_TRACKER_URI"):
        _session = Session()
    return _session


class State:
    """What ranks have in common, for `run`: a base class. `save` keeps the state in memory, `restore` goes back to what was kept, `sync`
    copies that of rank 0 to all ranks, `reset` prepares for other ranks."""

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
        """Saves the state, and then checks whether workers come or are asked to end. All ranks call it."""
        self.save()
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt on all ranks if another worker waits for a place, or one has been asked to end. All ranks call it."""
        ours = session()
        if ours is not None and ours.wants_change():
            raise HostsUpdatedInterrupt

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def reset(self) -> None:
        """Does nothing."""


class ObjectState(State):
    """A state of Python objects, which are attributes: `ObjectState(epoch=0, batch=0)`."""

    def __init__(self, bcast_object: Callable[[Any], Any] = broadcast_object, get_rank: Callable[[], int] = rank, **kwargs: Any) -> None:
        self._saved_state = dict(kwargs)
        super().__init__(bcast_object, get_rank)
        self.restore()

    def save(self) -> None:
        """Keeps copies of the attributes."""
        self._saved_state = {name: copy.deepcopy(getattr(self, name)) for name in self._saved_state}

    def restore(self) -> None:
        """Sets the attributes to copies of what was kept."""
        for name, value in self._saved_state.items():
            setattr(self, name, copy.deepcopy(value))

    def sync(self) -> None:
        """Sets the attributes to what rank 0 has kept."""
        if self._saved_state:
            self._saved_state = self._bcast_object(self._saved_state)
            self.restore()


def run_fn(func: Callable[..., T], reset: Optional[Callable[[], Any]] = None) -> Callable[..., T]:
    """Returns a function of a State and other arguments that calls `func` in each generation of workers, until it has returned on all
    ranks. `reset` is what Horovod's modules pass; it is not needed here."""
    del reset

    @functools.wraps(func)
    def wrapper(state: State, *arguments: Any, **named: Any) -> T:
        ours = session()
        if ours is None:
            state.sync()
            return func(state, *arguments, **named)
        ours.begin()
        while True:
            try:
                state.sync()
                result = func(state, *arguments, **named)
                _job.barrier()
                ours.end()
                return result
            except HorovodInternalError as error:
                ours.require_loss(error)
                state.restore()
            except HostsUpdatedInterrupt:
                pass
            ours.next_generation()
            state.on_reset()

    return wrapper


def run(func: Callable[..., T]) -> Callable[..., T]:
    """Decorates the function that trains. Its first argument is a State; it commits it now and then, and begins where the state stands. If
    a worker is lost, the others go back to the last commit, and call the function again together with the worker that replaces it, as they
    do at a commit when another worker has come. Operations outside of the function would be missed by workers that come later.

    In a job with a fixed number of workers, the function is called once."""
    return run_fn(func)

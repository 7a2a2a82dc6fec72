"""The job in Horovod's terms: ranks, process sets, and Horovod's environment variables."""
import atexit
import contextlib
import os
import sys
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from warren import collectives
from warren.collectives import Communicator
from warren.horovod._errors import HorovodInternalError
from warren.horovod._named import Named
from warren.horovod._session import session

_NOT_BEGUN = "Horovod has not been initialized; use hvd.init()."


class ProcessSet:
    """A set of ranks that run operations among themselves. It becomes part of the job when it is passed to `hvd.init` or
    `hvd.add_process_set`."""

    def __init__(self, ranks: Iterable[int]) -> None:
        try:
            self.ranks: Optional[List[int]] = sorted(ranks)
        except TypeError:
            raise ValueError(f"a ProcessSet takes ranks, not {ranks!r}; communicators of MPI are not supported") from None
        if any(not isinstance(rank, int) for rank in self.ranks):
            raise ValueError(f"a ProcessSet takes ranks, not {self.ranks}")
        self.process_set_id: Optional[int] = None
        self._named: Optional[Named] = None

    def size(self) -> Optional[int]:
        """Returns the number of ranks; None until the set is part of the job."""
        return None if self.process_set_id is None or self.ranks is None else len(self.ranks)

    def rank(self) -> Optional[int]:
        """Returns this process's rank within the set; None until the set is part of the job. Operations take a root as a rank of the job, not
        of the set. Raises ValueError if this process does not belong to the set."""
        if self.process_set_id is None:
            return None
        return self.named("rank").rank

    def included(self) -> Optional[bool]:
        """Whether this rank belongs to the set; None for an empty set, such as the set of all ranks before the first `hvd.init`. Raises
        ValueError for other sets if Horovod is not initialized."""
        return rank() in self.ranks if self.ranks else None

    def has_others(self, what: str) -> bool:
        """Whether the set has this rank and at least one other. Raises ValueError before `hvd.init`, or if the set is not part of the
        job."""
        if self.process_set_id is None:
            self.named(what)
        return bool(self.included()) and (self.size() or 0) > 1

    def may_have_others(self, what: str) -> bool:
        """Like `has_others`, but also true in an elastic job, in which other ranks may join later."""
        return self.has_others(what) or (session() is not None and bool(self.included()))

    def named(self, what: str) -> Named:
        """Returns the operations of the set. Raises ValueError before `hvd.init`, if the set is not part of the job, or if this rank does
        not belong to the set."""
        if self._named is None:
            if self.process_set_id is None:
                raise ValueError(_NOT_BEGUN if self is global_process_set else f"{what}: {self} is not part of the job; add it with "
                                 "hvd.add_process_set on all ranks")
            raise ValueError(f"{what}: rank {rank()} is not a member of {self}")
        return self._named

    def place_of(self, of_job: int, what: str) -> int:
        """Converts a rank of the job to its rank within the set. Raises ValueError if the set does not contain it."""
        if self.ranks is None or of_job not in self.ranks:
            raise ValueError(f"{what}: rank {of_job} is not a member of {self}")
        return self.ranks.index(of_job)

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"

    __repr__ = __str__

    # --- internal ---

    def _begin(self, number: int, communicator: Communicator) -> None:
        self.process_set_id = number
        self._named = Named(communicator, communicator.coordinator(**_coordinator_options())) if communicator else None

    def _end(self) -> None:
        named, self._named, self.process_set_id = self._named, None, None
        if named is not None:
            named.close()


global_process_set = ProcessSet([])


class Job:
    """The state between init and shutdown."""

    def __init__(self, world: Communicator, order: int) -> None:
        """Ranks are sorted by `order`; ranks with the same `order` keep the engine's order."""
        self.world = world.split(0, order)
        self._engine_ranks = self.world.allgather(np.array([world.rank])).ravel()  # indexed by rank in self.world
        here = self.world.local()
        self.local = _place(here.split(0, self.world.rank))  # ordered by the ranks in self.world
        here.free()
        local_ranks, local_sizes = self.world.allgather(np.array([self.local])).reshape(-1, 2).T
        alike = np.flatnonzero(local_ranks == self.local[0])  # one rank on each host that has this local rank
        self.cross = int(np.searchsorted(alike, self.world.rank)), len(alike)
        self.is_homogeneous = bool((local_sizes == local_sizes[0]).all())
        self.sets: Dict[int, ProcessSet] = {}
        self._num_sets = 0
        places = zip(("", "LOCAL_", "CROSS_"), ((self.world.rank, self.world.size), self.local, self.cross))
        for kind, (rank_there, size_there) in places:
            os.environ[f"HOROVOD_{kind}RANK"], os.environ[f"HOROVOD_{kind}SIZE"] = str(rank_there), str(size_there)

    def rank_of(self, engine_rank: int) -> int:
        """Returns Horovod's rank of the process that has this rank in the engine."""
        return int(np.flatnonzero(self._engine_ranks == engine_rank)[0])

    def rank(self) -> int:
        """This process's rank."""
        return self.world.rank

    def add(self, process_set: ProcessSet) -> None:
        ranks = process_set.ranks or []
        if not ranks or len(set(ranks)) != len(ranks) or not 0 <= ranks[0] <= ranks[-1] < self.world.size:
            raise ValueError(f"{process_set} is not a subset of the job's {self.world.size} ranks")
        for other in self.sets.values():
            if other.ranks == ranks:
                raise ValueError(f"{process_set} has the same ranks as another: {other}")
        process_set._begin(self._num_sets, self.world.create(ranks))  # pylint: disable=protected-access
        self.sets[self._num_sets] = process_set
        self._num_sets += 1

    def remove(self, process_set: ProcessSet) -> None:
        assert process_set.process_set_id is not None
        del self.sets[process_set.process_set_id]
        process_set._end()  # pylint: disable=protected-access

    def end(self) -> None:
        with contextlib.ExitStack() as stack:  # ends all sets, even if ending one of them fails because a rank was lost
            stack.callback(self.world.free)
            for process_set in self.sets.values():
                stack.callback(self.remove, process_set)


_job: Optional[Job] = None


def _made(world: Communicator, order: int) -> Job:
    """Returns a job that has the set of all ranks."""
    job = Job(world, order)
    global_process_set.ranks = list(range(job.world.size))
    job.add(global_process_set)
    return job


def _place(communicator: Communicator) -> Tuple[int, int]:
    found = communicator.rank, communicator.size
    communicator.free()
    return found


# --- the environment ---

def _number(name: str) -> Optional[float]:
    text = os.environ.get(name, "")
    try:
        return float(text) if text else None
    except ValueError:
        raise ValueError(f"{name} in the environment: {text!r} is not a number") from None


def _coordinator_options() -> Dict[str, Any]:
    """Returns the options set by Horovod's variables. Warren's variables and defaults determine the others. Raises ValueError for a variable
    that is not a number."""
    options: Dict[str, Any] = {}
    fusion_bytes, cycle_ms, autotune = (_number(f"HOROVOD_{name}") for name in ("FUSION_THRESHOLD", "CYCLE_TIME", "AUTOTUNE"))
    if fusion_bytes is not None:
        options["fusion_bytes"] = int(fusion_bytes)
    if cycle_ms is not None:
        options["cycle_time"] = cycle_ms / 1000
    if autotune is not None:
        options["autotune"] = bool(autotune)
    warns, fails = _number("HOROVOD_STALL_CHECK_TIME_SECONDS"), _number("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS")
    if _number("HOROVOD_STALL_CHECK_DISABLE"):
        warns, fails = 1e9, 0.0
    if warns is not None:
        options["stall_warning"] = warns
    if fails is not None:
        options["stall_error"] = fails
    return options


def _begin_timeline() -> None:
    path = os.environ.get("HOROVOD_TIMELINE", "")
    if path and path.upper() != "DYNAMIC":
        os.environ.setdefault("WARREN_TIMELINE", path)


# --- Horovod's functions ---

def init(comm: Optional[Sequence[int]] = None, process_sets: Union[None, str, Sequence[ProcessSet]] = None) -> None:
    """Joins the job started by dmlc-submit, mpirun or srun; without a launcher, makes a job of one rank. Does nothing if Horovod is
    initialized already. `process_sets` are added to the job. Except in an elastic job, ranks are ordered by HOROVOD_RANK if the launcher
    has set it. HOROVOD_RANK and HOROVOD_SIZE, and the corresponding variables with LOCAL_ and CROSS_, are set in the environment. Raises
    RuntimeError if the job cannot be joined, and ValueError if `comm` contains only some of the ranks, or for an invalid process set or
    Horovod variable. In an elastic job, raises SystemExit if the work is done, or if this process has received a notice that it must
    end."""
    global _job  # pylint: disable=global-statement
    if _job is not None:
        return
    _begin_timeline()
    elastic = session()
    if elastic is not None:
        _leave_at_exit()
    if elastic is not None and not elastic.is_in_generation:
        job = elastic.join(_made, Job.rank)
    else:
        if elastic is None:
            collectives.init([])
            _leave_at_exit()  # after joining, so that it runs before the end of a tracker that `collectives.init` started
        # A launcher that sets HOROVOD_RANK may number the ranks differently from the engine.
        job = _made(collectives.world(), int(_number("HOROVOD_RANK") or 0))
    if comm is not None and (not isinstance(comm, Sequence) or sorted(comm) not in ([], global_process_set.ranks)):
        job.end()
        raise ValueError("hvd.init: the ranks of a job are those that were started together; for some of them use a ProcessSet")
    _job = job
    for process_set in process_sets if process_sets is not None and not isinstance(process_sets, str) else ():
        add_process_set(process_set)


def shutdown() -> None:
    """Ends all operations, on all ranks. The process stays in the job, and `init` may be called again."""
    global _job  # pylint: disable=global-statement
    job, _job = _job, None
    if job is not None:
        job.end()


_process: Optional[int] = None


def _leave_at_exit() -> None:
    global _process  # pylint: disable=global-statement
    if _process is None:
        _process = os.getpid()
        atexit.register(_leave)


def _leave() -> None:
    """Leaves the job at exit, unless the process has failed with an exception: the other ranks must then notice that it is lost."""
    if _process != os.getpid() or getattr(sys, "last_type", None) is not None:
        return
    elastic = session()
    if elastic is None:
        shutdown()
        collectives.leave()
        return
    with contextlib.suppress(RuntimeError, ValueError):  # fails if other workers have been lost
        shutdown()
    elastic.close()


def abandon() -> None:
    """Marks this process as failed, so that it does not leave the job at exit."""
    global _process  # pylint: disable=global-statement
    _process = 0


def is_initialized() -> bool:
    return _job is not None


def _begun() -> Job:
    if _job is None:
        raise ValueError(_NOT_BEGUN)
    return _job


def rank() -> int:
    return _begun().world.rank


def size() -> int:
    return _begun().world.size


def process_set_of(process_set_id: int) -> ProcessSet:
    """Returns the process set with this number; 0 is the set of all ranks. Raises ValueError if there is no such set."""
    sets = _begun().sets
    if process_set_id not in sets:
        raise ValueError(f"there is no process set {process_set_id}; those of the job are {', '.join(map(str, sets))}")
    return sets[process_set_id]


def local_rank() -> int:
    """Returns this process's rank among the ranks on its host."""
    return _begun().local[0]


def local_size() -> int:
    """Returns the number of ranks on this host."""
    return _begun().local[1]


def cross_rank() -> int:
    """Returns this process's position among the ranks with the same local rank, one per host."""
    return _begun().cross[0]


def cross_size() -> int:
    """Returns the number of hosts that have a rank with this local rank."""
    return _begun().cross[1]


def is_homogeneous() -> bool:
    """Whether all hosts have the same number of ranks."""
    return _begun().is_homogeneous


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:  # pylint: disable=unused-argument
    """Writes a timeline to one file for each rank, from `init` on. Must be called before `init`; raises RuntimeError afterwards."""
    if _job is not None or _process is not None:
        raise RuntimeError("hvd.start_timeline: Warren's timeline covers the whole job: call this before hvd.init, or set "
                           "HOROVOD_TIMELINE or WARREN_TIMELINE in the environment")
    os.environ["WARREN_TIMELINE"] = file_path


def stop_timeline() -> None:
    """Does nothing: the timeline is complete when the process leaves the job."""
    _begun()


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Adds a process set. A collective call of the job. Raises ValueError before `hvd.init`, if the ranks are not a non-empty subset of the
    job's ranks without duplicates, or if a set with the same ranks exists."""
    made = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    _begun().add(made)
    return made


def remove_process_set(process_set: ProcessSet) -> bool:
    """Removes a process set. A collective call of the job; pending operations of the set end with an error. Returns whether the set was
    removed: the set of all ranks cannot be, nor can a set that is not part of the job."""
    if process_set.process_set_id is None or process_set is global_process_set:
        return False
    _begun().remove(process_set)
    return True


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Returns when all ranks of the set have called it. Raises HorovodInternalError if it fails."""
    named = process_set.named("barrier")
    try:
        named.barrier(named.name_of("barrier", None)).wait()
    except RuntimeError as error:
        raise HorovodInternalError(str(error)) from error


def join(device: int = -1) -> int:  # pylint: disable=unused-argument
    """Declares that this rank has no more batches: until all ranks have called it, this rank contributes neutral elements to the other
    ranks' allreduces, and joins their barriers. Returns the last rank that called it."""
    return _begun().rank_of(global_process_set.named("join").join())

"""Detects processes started by mpirun, srun or torchrun instead of dmlc-submit, and makes them one job.

librabit itself finds the ranks of mpirun and srun (rabit_engine/bootstrap). A tracker is needed in two cases: for XGBoost's own
communicator, and for torchrun, whose ranks meet through PyTorch. Rank 0 then runs a tracker until it ends, and all ranks learn its address
by the means that the launcher offers. WARREN_BOOTSTRAP=none declares that the processes are separate programs."""
import json
import os
import sys
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import numpy as np

#: How many seconds the tracker waits for missing ranks; they have all met just before.
_PATIENCE_S = 300
#: How many seconds the tracker of a failed rank 0 stays available for the other ranks.
_FAREWELL_S = 3
_MOST_ADDRESS_BYTES = 4096
_Address = Tuple[str, str]
_TRACKER_NAMES = ("dmlc_tracker_uri", "rabit_tracker_uri")

#: Objects that must live as long as this process: rank 0's tracker, and the store of torchrun's ranks.
_kept: List[Any] = []
#: Rank 0's tracker; `left` waits for it to end.
_awaited: List[Any] = []
#: The address of the tracker whose job this process has left.
_left: Optional[_Address] = None


class Launched(NamedTuple):
    """One of several processes started by a launcher."""

    launcher: str  #: "mpirun", "srun" or "torchrun"
    seen: str  #: the evidence in the environment, such as "OMPI_COMM_WORLD_SIZE=2"
    rank: int
    size: int

    def story(self) -> str:
        """What this process is taken for, and why; for error messages."""
        return f"this is rank {self.rank} of {self.size} processes that {self.launcher} started ({self.seen})"


def _number(name: str) -> Optional[int]:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _of_torch() -> Optional[Launched]:
    """Detects torchrun, or anything that sets all of its variables. WORLD_SIZE alone is no evidence: other programs set it, too."""
    rank, size = _number("RANK"), _number("WORLD_SIZE")
    address, port = os.environ.get("MASTER_ADDR"), _number("MASTER_PORT")
    # dmlc-submit sets the same variables, even if it runs no tracker.
    if rank is None or size is None or not address or port is None or "DMLC_JOB_CLUSTER" in os.environ or not rank < size:
        return None
    return Launched("torchrun", f"RANK={rank}, WORLD_SIZE={size}, MASTER_ADDR={address}, MASTER_PORT={port}", rank, size)


def _of_launcher() -> Optional[Launched]:
    """Detects mpirun and srun by the rules of rabit_engine/engine/join.cc. SLURM_NTASKS is also set in the shell of salloc, which is one
    process; srun starts the tasks of a step."""
    for launcher, rank_name, size_name in (("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                           ("mpirun", "PMI_RANK", "PMI_SIZE"), ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")):
        rank, size = _number(rank_name), _number(size_name)
        if launcher == "srun" and "SLURM_STEP_ID" not in os.environ:
            continue
        if rank is not None and size is not None:
            return Launched("srun" if "SLURM_STEP_ID" in os.environ and rank_name == "PMI_RANK" else launcher, f"{size_name}={size}", rank,
                            size)
    return None


def launched() -> Optional[Launched]:
    """Returns the launcher that started this process as one of several, provided that nothing else tells how they meet. Returns None if a
    tracker is named, if WARREN_BOOTSTRAP is `none` or `tracker`, or if the process is alone."""
    tracker = os.environ.get("DMLC_TRACKER_URI")
    if (tracker and tracker != "NULL") or "DMLC_PS_ROOT_URI" in os.environ:
        return None
    # Same order as in librabit: the new name, then the old one.
    if next(filter(None, (os.environ.get(f"{prefix}_BOOTSTRAP") for prefix in ("WARREN", "RABIT"))), "auto") in ("none", "tracker"):
        return None
    torch, launcher = _of_torch(), _of_launcher()
    # torchrun may run in each task of srun; a script may also pass mpirun's numbers to PyTorch.
    if torch is not None and torch.size > 1 and (launcher is None or launcher.size != torch.size):
        return torch
    return launcher if launcher is not None and launcher.size > 1 else None


def _tracker() -> Optional[_Address]:
    """The tracker named by the environment."""
    uri = os.environ.get("DMLC_TRACKER_URI", "NULL")
    return None if uri in ("", "NULL") else (uri, os.environ.get("DMLC_TRACKER_PORT", ""))


def has_left(tracker: Optional[_Address] = None) -> bool:
    """Whether this process has left the job of a tracker (by default, the one named by the environment), through any library."""
    return _left is not None and _left == (tracker or _tracker())


def before_init(args: Iterable[Union[str, bytes]]) -> None:
    """To be called before librabit's Init with these arguments: provides a tracker for torchrun's ranks, since librabit does not know
    PyTorch. Does nothing for other launchers. Raises RuntimeError if that is impossible, or if this process has left its job: the tracker
    would take it for a failed one that comes back."""
    words = [os.fsdecode(word).partition("=")[0].lower() for word in args]
    if any(word in (*_TRACKER_NAMES, "warren_bootstrap", "rabit_bootstrap") for word in words):
        return
    if has_left():
        raise RuntimeError("this process has left its job and cannot join it again: use one communicator around all training, whichever "
                           "library does it")
    found = launched()
    if found is not None and found.launcher == "torchrun":
        share_tracker(found)


def share_tracker(found: Launched) -> None:
    """Makes rank 0 run a tracker until it ends, and names the tracker in the environment of each process, as dmlc-submit does. A collective
    call of all processes of the launcher. Raises RuntimeError if the ranks do not find each other, or if the tracker does not start."""
    from warren.tracker import Tracker  # pylint: disable=import-outside-toplevel

    exchange: Union[_TorchStore, _LauncherWorld] = _TorchStore(found) if found.launcher == "torchrun" else _LauncherWorld(found)
    told: Dict[str, str] = {}
    if found.rank == 0:
        try:
            # The ranks are the launcher's.
            tracker = Tracker(found.size, host_ip="127.0.0.1" if exchange.is_one_host else None, sortby="task", timeout=_PATIENCE_S,
                              admit="token")
            tracker.start()
            told = {name: str(value) for name, value in tracker.worker_envs().items()}
            _kept.append(tracker)
        except ValueError as error:
            told = {"error": str(error)}
    told = json.loads(exchange.from_rank_zero(json.dumps(told)))
    if "error" in told:
        raise RuntimeError(f"{found.story()}: rank 0 cannot run their tracker: {told['error']}")
    os.environ.update(told, DMLC_TASK_ID=str(found.rank))
    _awaited[:] = _kept[-1:] if found.rank == 0 else []


def left(failed: bool = False, tracker: Optional[_Address] = None) -> None:
    """To be called after this process has left the job of `tracker`, by default the one named by the environment. If it runs the tracker,
    waits until all ranks have left, since they need it for that. If it has `failed`, the other ranks may never come, and get only a moment
    to learn of it."""
    global _left  # pylint: disable=global-statement
    _left = tracker or _tracker()
    while _awaited:
        try:
            _awaited.pop().wait_for(_FAREWELL_S if failed else None)
        except ValueError as error:
            if not failed:
                sys.stderr.write(f"warren: rank 0 left the job, but not all other ranks did: {error}\n")


class _TorchStore:
    """The key-value store of torchrun's ranks."""

    def __init__(self, found: Launched) -> None:
        self._rank = found.rank
        self.is_one_host: bool = _number("LOCAL_WORLD_SIZE") == found.size
        try:
            from torch.distributed import rendezvous  # pylint: disable=import-outside-toplevel
        except ImportError:
            raise RuntimeError(f"{found.story()}, and Warren connects these through PyTorch, which is not installed: start the program "
                               "with "
                               f"dmlc-submit --num-workers {found.size}, or set WARREN_BOOTSTRAP=none if they are separate "
                               "programs") from None
        self._store, *_ = next(iter(rendezvous("env://")))
        _kept.append(self._store)

    def from_rank_zero(self, text: str) -> str:
        """Returns rank 0's text on all ranks."""
        if self._rank == 0:
            self._store.set("warren/tracker", text)
            return text
        return bytes(self._store.get("warren/tracker")).decode()


class _LauncherWorld:
    """The ranks of mpirun or srun, as found by librabit. Leaves their job again if this process was not in it before."""

    def __init__(self, found: Launched) -> None:
        from warren import collectives  # pylint: disable=import-outside-toplevel

        self._leave: Optional[Callable[[], None]] = None
        try:
            self._world = collectives.world()
        except RuntimeError:
            collectives.init([])
            self._leave = collectives.finalize
            self._world = collectives.world()
        if (self._world.rank, self._world.size) != (found.rank, found.size):
            raise RuntimeError(f"{found.story()}, and joined a job as rank {self._world.rank} of {self._world.size}")
        local = self._world.local()
        self.is_one_host: bool = local.size == found.size
        local.free()

    def from_rank_zero(self, text: str) -> str:
        """Returns rank 0's text on all ranks."""
        address = np.frombuffer(text.encode().ljust(_MOST_ADDRESS_BYTES), np.uint8).copy()
        received = self._world.broadcast(address, 0).tobytes().decode()
        if self._leave is not None:
            self._leave()
        return received

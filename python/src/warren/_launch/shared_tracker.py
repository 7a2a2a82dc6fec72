"""The tracker that processes started by mpirun, srun or torchrun share, since none of these launchers runs one; and whether this process
has left its job.

librabit itself finds the ranks of mpirun and srun (rabit_engine/bootstrap). A tracker is needed in two cases: for XGBoost's own communicator,
and for torchrun, whose ranks meet through PyTorch. Rank 0's process then runs a tracker until the process ends, and all ranks receive the
tracker's address by the means that the launcher offers."""
import json
import os
import sys
from typing import Any, Dict, Iterable, List, Optional, Protocol, Tuple, Union

from warren._launch.launched import Launched, launched, number

#: The time in seconds that the tracker waits for missing ranks. All ranks have met just before.
_PATIENCE_S = 300
#: The time in seconds that the tracker of a failed rank 0 stays available for the other ranks.
_FAREWELL_S = 3
_Address = Tuple[str, str]
_TRACKER_NAMES = ("dmlc_tracker_uri", "rabit_tracker_uri")

#: Objects that must live as long as this process: rank 0's tracker, and the store of torchrun's ranks.
_kept: List[Any] = []
#: Rank 0's tracker; `left` waits for it to end.
_awaited: List[Any] = []
#: The address of the tracker whose job this process has left.
_left: Optional[_Address] = None


class Exchange(Protocol):
    """Passes the tracker's address between the processes of a launcher."""

    is_one_host: bool  #: whether all of them run on one host

    def from_rank_zero(self, text: str) -> str:
        """Returns rank 0's text on all ranks."""


class TorchStore:
    """The key-value store of torchrun's ranks."""

    def __init__(self, found: Launched) -> None:
        self._rank = found.rank
        self.is_one_host: bool = number("LOCAL_WORLD_SIZE") == found.size
        try:
            from torch.distributed import rendezvous  # pylint: disable=import-outside-toplevel
        except ImportError:
            raise RuntimeError(f"{found.description()}, and Warren connects these through PyTorch, which is not installed: start the "
                               f"program with dmlc-submit --num-workers {found.size}, or set WARREN_BOOTSTRAP=none if they are separate "
                               "programs") from None
        self._store, *_ = next(iter(rendezvous("env://")))
        _kept.append(self._store)

    def from_rank_zero(self, text: str) -> str:
        """Returns rank 0's text on all ranks."""
        if self._rank == 0:
            self._store.set("warren/tracker", text)
            return text
        return bytes(self._store.get("warren/tracker")).decode()


def share_tracker(found: Launched, exchange: Exchange) -> None:
    """Makes rank 0 run a tracker until rank 0's process ends, and names the tracker in the environment of each process, as dmlc-submit
    does. A collective call of all processes that the launcher started. Raises RuntimeError if the tracker does not start."""
    from warren.tracker import Tracker  # pylint: disable=import-outside-toplevel

    told: Dict[str, str] = {}
    if found.rank == 0:
        try:
            # Sorted by task, so that the tracker gives each process the rank that it has from the launcher.
            tracker = Tracker(found.size, host_ip="127.0.0.1" if exchange.is_one_host else None, sortby="task", timeout=_PATIENCE_S,
                              admit="token")
            tracker.start()
            told = {name: str(value) for name, value in tracker.worker_envs().items()}
            _kept.append(tracker)
        except (OSError, ValueError) as error:
            told = {"error": str(error)}
    told = json.loads(exchange.from_rank_zero(json.dumps(told)))
    if "error" in told:
        raise RuntimeError(f"{found.description()}: rank 0 cannot run their tracker: {told['error']}")
    os.environ.update(told, DMLC_TASK_ID=str(found.rank))
    _awaited[:] = _kept[-1:] if found.rank == 0 else []


def _tracker() -> Optional[_Address]:
    """The tracker named by the environment."""
    uri = os.environ.get("DMLC_TRACKER_URI", "NULL")
    return None if uri in ("", "NULL") else (uri, os.environ.get("DMLC_TRACKER_PORT", ""))


def has_left(tracker: Optional[_Address] = None) -> bool:
    """Whether this process has left the job of a tracker (by default, the one named by the environment), through any library."""
    return _left is not None and _left == (tracker or _tracker())


def before_init(args: Iterable[Union[str, bytes]]) -> None:
    """To be called before librabit's Init with these arguments: provides a tracker for torchrun's ranks (only for these, since librabit
    finds the ranks of the other launchers, but does not use PyTorch). Does nothing if an argument sets the tracker or the bootstrap method.
    Raises RuntimeError if no tracker can be provided, or if this process has left its job: the tracker would take it for a failed process
    that has restarted."""
    words = [os.fsdecode(word).partition("=")[0].lower() for word in args]
    if any(word in (*_TRACKER_NAMES, "warren_bootstrap", "rabit_bootstrap") for word in words):
        return
    if has_left():
        raise RuntimeError("this process has left its job and cannot join it again: use one communicator around all training, whichever "
                           "library does it")
    found = launched()
    if found is not None and found.launcher == "torchrun":
        share_tracker(found, TorchStore(found))


def entered_again() -> None:
    """To be called when this process joins its job again after leaving it, which is possible in an elastic job."""
    global _left  # pylint: disable=global-statement
    _left = None


def left(failed: bool = False, tracker: Optional[_Address] = None) -> None:
    """To be called after this process has left the job of `tracker`, by default the one named by the environment. If it runs the tracker,
    waits until all ranks have left, since they need the tracker to leave. If this process has `failed`, the other ranks may never leave, so
    it waits only a few seconds, in which they can detect the failure."""
    global _left  # pylint: disable=global-statement
    _left = tracker or _tracker()
    while _awaited:
        try:
            _awaited.pop().wait_for(_FAREWELL_S if failed else None)
        except ValueError as error:
            if not failed:
                print(f"warren: rank 0 left the job, but not all other ranks did: {error}", file=sys.stderr, flush=True)

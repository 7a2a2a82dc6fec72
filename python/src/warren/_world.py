"""The world of those who name no communicator: one object for all of them, and a job that is joined when it was not yet."""
import atexit
import contextlib
import sys
from typing import List, Optional

from warren import collectives
from warren.collectives import Communicator

_worlds: List[Communicator] = []
_num_left = 0


def communicator_or_world(communicator: Optional[Communicator], what: str) -> Communicator:
    """The world where none is named. A process that has not called `collectives.init` joins the job by it, and leaves it when
    it ends without an error."""
    global _num_left  # pylint: disable=global-statement
    if communicator is None:
        if not _worlds or _num_left != collectives.num_left:
            _worlds[:] = [_joined()]
            _num_left = collectives.num_left
        communicator = _worlds[0]
    if not communicator:
        raise ValueError(f"{what} needs a communicator, and this is none, or it was freed")
    return communicator


def _joined() -> Communicator:
    try:
        return collectives.world()
    except RuntimeError:
        collectives.init([])
        atexit.unregister(_leave)
        atexit.register(_leave)
        return collectives.world()


def _leave() -> None:
    # The others must not take a process that has failed for one that is done. An error here: it has left by itself.
    if not hasattr(sys, "last_type"):
        with contextlib.suppress(RuntimeError):
            collectives.finalize()

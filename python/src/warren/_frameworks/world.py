"""The default communicator: the world, as one object for all callers. The job is joined on demand."""
import atexit
import contextlib
import sys
from typing import List, Optional

from warren import collectives
from warren.collectives import Communicator

_worlds: List[Communicator] = []
_num_left = 0


def communicator_or_world(communicator: Optional[Communicator], what: str) -> Communicator:
    """Returns the communicator or, if None is given, the world. If the process has not called `collectives.init`, this joins the job; the
    process then leaves it when it exits, unless an uncaught exception other than SystemExit ended it."""
    global _num_left  # pylint: disable=global-statement
    if communicator is None:
        if not _worlds or _num_left != collectives.num_left:
            _worlds[:] = [_joined()]
            _num_left = collectives.num_left
        communicator = _worlds[0]
    if not communicator:
        raise ValueError(f"{what} needs a communicator; this is not one, or it was freed")
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
    # The other ranks must not take a failed process for a finished one. An error here usually means that the job has been left already.
    if not hasattr(sys, "last_type"):
        with contextlib.suppress(RuntimeError):
            collectives.leave()

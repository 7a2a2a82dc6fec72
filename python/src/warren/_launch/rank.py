"""This process's rank in its job, whichever library joined the job. It is still available after the process has left the job."""
import os
from typing import Optional

_rank: Optional[int] = None
_process: Optional[int] = None  # the process that joined


def joined_as(rank: int) -> None:
    """To be called when this process has joined its job, or a generation of it."""
    global _rank, _process  # pylint: disable=global-statement
    _rank, _process = rank, os.getpid()


def last() -> Optional[int]:
    """The rank under which this process last joined its job; None if it never did."""
    return _rank


def is_forked() -> bool:
    """Whether this process was forked from the one that last joined a job, and has not joined one itself: the job is its parent's, and only
    the parent leaves it or reports a failure."""
    return _process is not None and _process != os.getpid()

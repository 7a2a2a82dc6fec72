"""This process's rank in its job, whichever library joined the job. It is still available after the process has left the job."""
from typing import Optional

_rank: Optional[int] = None


def joined_as(rank: int) -> None:
    """To be called when this process has joined its job, or a generation of it."""
    global _rank  # pylint: disable=global-statement
    _rank = rank


def last() -> Optional[int]:
    """The rank under which this process last joined its job; None if it never did."""
    return _rank

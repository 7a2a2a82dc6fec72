"""The interface between a training run and the recipients of its reports."""
import sys
from typing import Any, Mapping, NamedTuple, Optional

from warren._system.printable import printable


class About(NamedTuple):
    """The description of a training run."""

    library: str  #: "xgboost" or "lightgbm"
    params: Mapping[str, Any]
    rounds: Optional[int]  #: the total number of rounds; None if unknown
    begun: int  #: the number of rounds that were finished before this training run began
    number: int  #: the number of earlier training runs in this process
    world: int = 1


class Sink:
    """A recipient of the reports of one training run, on rank 0. Its methods raise nothing."""

    def round(self, number: int, of: Optional[int], metrics: Mapping[str, float]) -> None:
        """Called when a round, counted from 1, has ended."""

    def earlier(self, number: int, metrics: Mapping[str, float]) -> None:
        """Called for a round that ended before this process became rank 0; it may already have been reported."""

    def end(self, model: Any) -> None:
        """Called when training has ended, with its model, or with None after a failure."""


def say(words: str) -> None:
    """Prints a message for the user."""
    print(f"warren: {printable(words)}", file=sys.stderr, flush=True)

"""The interface between a training and the recipients of its reports."""
import sys
from typing import Any, Mapping, NamedTuple, Optional

from warren._system.printable import printable


class About(NamedTuple):
    """A training."""

    library: str  #: "xgboost" or "lightgbm"
    params: Mapping[str, Any]
    rounds: Optional[int]  #: all of its rounds; None if unknown
    begun: int  #: the rounds that an earlier attempt has made
    number: int  #: how many trainings of this process came before it; the same on all ranks
    world: int = 1


class Sink:
    """A recipient of the reports of one training, on rank 0. Its methods raise nothing."""

    def round(self, number: int, of: Optional[int], metrics: Mapping[str, float]) -> None:
        """A round, counted from 1, has ended."""

    def earlier(self, number: int, metrics: Mapping[str, float]) -> None:
        """A round has ended before this process was rank 0; it may have been reported already."""

    def end(self, model: Any) -> None:
        """The training has ended, with this model, or with None after a failure."""


def say(words: str) -> None:
    """Tells the user."""
    print(f"warren: {printable(words)}", file=sys.stderr, flush=True)

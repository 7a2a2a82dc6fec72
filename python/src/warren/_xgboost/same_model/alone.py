"""Calls of XGBoost's functions by one worker, without the others."""
import threading
from typing import Any, Callable, List

import xgboost as xgb

from warren._frameworks.replacing import replaced
from warren.data._peers import Peers, together


def alone(work: Callable[[], Any]) -> Any:
    """Calls `work` in a new thread, and returns its result. XGBoost's communicator belongs to the thread that has joined it, so in a new
    thread XGBoost does not wait for the other workers. Raises the exception of `work`."""
    results: List[Any] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            # This thread is meant to train alone, so `update` is replaced by itself rather than by the method that warns in other threads.
            with replaced("update", lambda inner: inner, xgb.Booster):
                results.append(work())
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)

    thread = threading.Thread(target=run, name="warren-xgboost-alone")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def alone_on_root(work: Callable[[], Any], peers: Peers) -> Any:
    """Returns the result of `work` on rank 0, called as by `alone`, and None on other ranks. A collective call. Raises the exception of
    `work` on all ranks."""
    def ours() -> Any:
        return alone(work) if peers.rank == 0 else None

    return together(peers, ours)

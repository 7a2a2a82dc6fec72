"""Calls of XGBoost that this worker makes without the others."""
import threading
from typing import Any, Callable, List


def alone(work: Callable[[], Any]) -> Any:
    """Calls `work` in a new thread, and returns its result. XGBoost's communicator belongs to the thread that has joined it, so in a new
    thread XGBoost does not wait for the other workers. Raises the exception of `work`."""
    results: List[Any] = []
    errors: List[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # pylint: disable=broad-except
            errors.append(error)

    thread = threading.Thread(target=run, name="warren-xgboost-alone")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

"""Calls of XGBoost that this worker makes without the others."""
import threading
from typing import Any, Callable, List


def alone(work: Callable[[], Any]) -> Any:
    """Returns the result of `work`, called in a thread of its own: XGBoost's communicator belongs to a thread, so there this process is the
    only worker, and nothing waits for the others. Raises the exception of `work`."""
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

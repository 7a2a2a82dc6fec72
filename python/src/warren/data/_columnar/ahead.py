"""Runs an iterator in a thread, ahead of its consumer."""
import queue
import threading
from typing import Any, Callable, Iterator, Optional, Tuple, TypeVar

T = TypeVar("T")


def ahead(make: Callable[[], Iterator[T]], depth: int) -> Iterator[T]:
    """Yields the items of the iterator that `make` returns. A thread produces them, and queues up to `depth` items. An exception of the
    iterator is raised here. The thread ends when the generator ends or is closed."""
    ready: "queue.Queue[Tuple[Any, Optional[BaseException]]]" = queue.Queue(depth)
    stopped = threading.Event()
    end = object()

    def put(item: Any, error: Optional[BaseException] = None) -> bool:
        while not stopped.is_set():
            try:
                ready.put((item, error), timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def run() -> None:
        try:
            for item in make():
                if not put(item):
                    return
            put(end)
        except BaseException as error:  # pylint: disable=broad-except
            put(end, error)

    thread = threading.Thread(target=run, name="warren-data-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        stopped.set()
        thread.join()

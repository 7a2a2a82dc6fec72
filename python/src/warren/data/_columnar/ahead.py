"""Reading ahead in a thread."""
import queue
import threading
from typing import Any, Callable, Iterator, Optional, Tuple, TypeVar

T = TypeVar("T")


def ahead(make: Callable[[], Iterator[T]], depth: int) -> Iterator[T]:
    """Yields the iterator's items, produced by a thread that is up to `depth` items ahead. The thread ends when the generator ends or is
    closed."""
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

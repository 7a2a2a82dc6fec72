"""`horovod.runner.util.threads`, as far as Horovod's own tests need it."""
import threading
from typing import Any, Callable, Optional, Sequence


def in_thread(target: Callable[..., Any], args: Sequence[Any] = (), name: Optional[str] = None, daemon: bool = True,
              silent: bool = False) -> threading.Thread:
    """Calls the function in a new thread, and returns the thread. `silent`: an exception in the function is not printed."""
    def call() -> None:
        try:
            target(*args)
        except Exception:  # pylint: disable=broad-except
            if not silent:
                raise

    thread = threading.Thread(target=call, name=name, daemon=daemon)
    thread.start()
    return thread

"""Replaces functions and methods of other libraries, for one thread and temporarily."""
import contextlib
import functools
import threading
from typing import Any, Callable, Iterator


@contextlib.contextmanager
def replaced(name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *owners: Any) -> Iterator[None]:
    """Within the block, this thread calls the function that `make` returns, given the original of the first owner (a class or module);
    other threads call the original. All owners get the same replacement."""
    before = [getattr(owner, name) for owner in owners]
    function, thread = before[0], threading.get_ident()
    ours = make(function)

    @functools.wraps(function)
    def chosen(*arguments: Any, **named: Any) -> Any:
        return (ours if threading.get_ident() == thread else function)(*arguments, **named)

    for owner in owners:
        setattr(owner, name, chosen)
    try:
        yield
    finally:
        for owner, own in zip(owners, before):
            setattr(owner, name, own)

"""Functions and methods of other libraries, replaced for one thread and for a while."""
import contextlib
import functools
import threading
from typing import Any, Callable, Iterator


@contextlib.contextmanager
def replaced(name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *owners: Any) -> Iterator[None]:
    """`make` is given the function that the first owner (a class, a module) has by this name, and returns what this thread calls instead
    of it; other threads call the function. All owners have the same one meanwhile."""
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

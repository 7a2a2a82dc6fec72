"""Replaces functions and methods of other libraries, for one thread and temporarily."""
import contextlib
import functools
import threading
from typing import Any, Callable, Iterator


@contextlib.contextmanager
def replaced(name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], *owners: Any) -> Iterator[None]:
    """Replaces the function `name` of all `owners` (classes or modules) within the block. This thread then calls the result of
    make(original), where `original` is the first owner's function; other threads call the original."""
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

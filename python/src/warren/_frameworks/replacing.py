"""Replaces functions and methods of other libraries, for one thread and temporarily."""
import contextlib
import functools
import threading
from typing import Any, Callable, Dict, Iterator, List, Tuple

_Function = Callable[..., Any]


class _Replaced:
    """The stand-in for an owner's function while any thread has a replacement."""

    def __init__(self, original: _Function) -> None:
        self.original = original
        self.by_thread: Dict[int, List[_Function]] = {}

        @functools.wraps(original)
        def chosen(*arguments: Any, **named: Any) -> Any:
            return self.current()(*arguments, **named)
        self.chosen = chosen

    def current(self) -> _Function:
        """The function that this thread calls."""
        found = self.by_thread.get(threading.get_ident())
        return found[-1] if found else self.original


_lock = threading.Lock()
#: By owner and name.
_all: Dict[Tuple[int, str], _Replaced] = {}


@contextlib.contextmanager
def replaced(name: str, make: Callable[[_Function], _Function], *owners: Any) -> Iterator[None]:
    """Replaces the function `name` of all `owners` (classes or modules) within the block. This thread then calls the result of
    make(original), where `original` is what it called before as the first owner's function; other threads call the original, or their own
    replacement. Blocks of several threads may begin and end in any order."""
    with _lock:
        places = [_place(owner, name) for owner in owners]
        ours = make(places[0].current())
        for place in places:
            place.by_thread.setdefault(threading.get_ident(), []).append(ours)
    try:
        yield
    finally:
        with _lock:
            for owner, place in zip(owners, places):
                _end(owner, name, place)


def _place(owner: Any, name: str) -> _Replaced:
    """Returns the owner's stand-in, after making it if necessary. A function that another library has put there counts as the original."""
    known, now = _all.get((id(owner), name)), getattr(owner, name)
    if known is not None and now is known.chosen:
        return known
    made = _Replaced(now)
    _all[id(owner), name] = made
    setattr(owner, name, made.chosen)
    return made


def _end(owner: Any, name: str, place: _Replaced) -> None:
    """Ends this thread's newest replacement, and restores the original after the last one of all threads."""
    thread = threading.get_ident()
    stack = place.by_thread[thread]
    stack.pop()
    if not stack:
        del place.by_thread[thread]
    if not place.by_thread:
        if getattr(owner, name) is place.chosen:
            setattr(owner, name, place.original)
        if _all.get((id(owner), name)) is place:
            del _all[id(owner), name]

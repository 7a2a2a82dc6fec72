"""Temporarily replaces functions and methods of other libraries. Each thread can have its own replacement."""
import contextlib
import functools
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

_Function = Callable[..., Any]


class _Replaced:
    """The stand-in for an owner's function while any thread has a replacement."""

    def __init__(self, original: _Function) -> None:
        self.original = original
        self.by_thread: Dict[int, List[_Function]] = {}
        self.elsewhere: List[_Function] = []  #: for threads without a replacement of their own; the newest one is used

        @functools.wraps(original)
        def chosen(*arguments: Any, **named: Any) -> Any:
            return self.current()(*arguments, **named)
        self.chosen = chosen

    def current(self) -> _Function:
        """The function that this thread calls."""
        found = self.by_thread.get(threading.get_ident())
        return found[-1] if found else self.elsewhere[-1] if self.elsewhere else self.original


_lock = threading.Lock()
#: The stand-ins, by the id of the owner and the name of the function.
_all: Dict[Tuple[int, str], _Replaced] = {}


@contextlib.contextmanager
def replaced(name: str, make: Callable[[_Function], _Function], *owners: Any,
             elsewhere: Optional[Callable[[_Function], _Function]] = None) -> Iterator[None]:
    """Replaces the function `name` of all `owners` (classes or modules) within the block. This thread then calls the result of
    make(previous), where `previous` is this thread's previous replacement for the first owner or, if it has none, the original. Other
    threads call their own replacement or, if they have none, the result of elsewhere(original) if `elsewhere` is given, and otherwise the
    original. Blocks of several threads may begin and end in any order."""
    with _lock:
        places = [_place(owner, name) for owner in owners]
        thread = threading.get_ident()
        before = places[0].by_thread.get(thread)
        ours, others = make(before[-1] if before else places[0].original), elsewhere and elsewhere(places[0].original)
        for place in places:
            place.by_thread.setdefault(thread, []).append(ours)
            if others is not None:
                place.elsewhere.append(others)
    try:
        yield
    finally:
        with _lock:
            for owner, place in zip(owners, places):
                if others is not None:
                    place.elsewhere.remove(others)
                _end(owner, name, place)


def warns_once(is_due: Callable[..., bool], text: Callable[[], str]) -> Callable[[_Function], _Function]:
    """Returns a value for the argument `elsewhere` of `replaced`. The replacement calls the original, and warns with text() before the
    first call for which is_due(its arguments) is true."""
    def make(original: _Function) -> _Function:
        due = [True]

        @functools.wraps(original)
        def warning(*arguments: Any, **named: Any) -> Any:
            if due and is_due(*arguments, **named):
                due.clear()
                warnings.warn(text(), stacklevel=3)
            return original(*arguments, **named)
        return warning
    return make


def alone(library: str, workers: int) -> str:
    """The text of the warning about training in a thread that does not take part in the job."""
    return (f"{library} trains on this thread's rows alone: of the {workers} workers of the job, only the threads that have entered communicator() "
            "train together. Train in such a thread, or outside of the block if this is meant")


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

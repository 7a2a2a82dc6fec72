"""Detects a thread that hangs in a library call because it is waiting for another thread of the process that never wakes it."""
import platform
import sys
import threading
import time
from typing import Any, NamedTuple, Optional, Sequence

#: The time without any progress after which a call counts as hanging.
LIMIT_S = 10.0
#: The maximum processor time that a hanging process uses within LIMIT_S, since its other threads may do a little work.
_IDLE_S = 0.5
#: The maximum time between two observations. If they are further apart, they prove nothing: the process was stopped in between, or the
#: machine is overloaded.
_LATE_S = 3.0
#: The number of the system call `futex` on this architecture, as text; None if unknown.
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())


class Thread(NamedTuple):
    """A thread of this process."""

    ident: int
    native_id: int

    @staticmethod
    def current() -> "Thread":
        """The calling thread."""
        return Thread(threading.get_ident(), threading.get_native_id())


class Observation(NamedTuple):
    """The state of a thread at one moment."""

    at_s: float
    used_s: float  #: the processor time that the process has used
    call: Any  #: identifies the library call in which the thread is waiting for another thread; None if it is not waiting in one


def observe(thread: Thread, packages: Sequence[str]) -> Observation:
    """Observes a thread. The thread is considered to be in a call of one of the packages if its innermost Python function belongs to that
    package and it is waiting for another thread."""
    frame = sys._current_frames().get(thread.ident)  # pylint: disable=protected-access
    name = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
    is_inside = any(f"{name}.".startswith(f"{package}.") for package in packages) and _waits_for_thread(thread.native_id)
    return Observation(time.monotonic(), time.process_time(), (id(frame), frame.f_lasti, frame.f_code.co_name) if is_inside and frame else None)


def _waits_for_thread(native_id: int) -> bool:
    """Whether the thread is waiting for another thread, rather than for a file, a pipe or the network. False if this is unknown."""
    try:
        with open(f"/proc/self/task/{native_id}/syscall", encoding="ascii") as file:
            return _FUTEX is not None and file.read().split(" ", 1)[0] == _FUTEX
    except OSError:
        return False


class Watch:
    """Detects a hang in a series of observations."""

    def __init__(self) -> None:
        self._first: Optional[Observation] = None  # the first observation since the thread last made progress
        self._last: Optional[Observation] = None

    def hangs(self, now: Observation) -> bool:
        """Whether the thread has been in the same call for LIMIT_S while the process was almost idle, according to observations at most
        _LATE_S apart."""
        first, last = self._first, self._last
        self._last = now
        if (first is None or last is None or now.call is None or now.call != first.call or now.used_s - first.used_s > _IDLE_S
                or now.at_s - last.at_s > _LATE_S):
            self._first = now
            return False
        return now.at_s - first.at_s >= LIMIT_S

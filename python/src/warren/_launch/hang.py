"""Detects a thread that hangs in a call of a library."""
import sys
import time
from typing import Any, NamedTuple, Optional, Sequence

#: The time without activity after which a call counts as hanging.
LIMIT_S = 10.0
#: The maximum processor time that a hanging process uses in that time; the watching thread uses some.
_IDLE_S = 0.1
#: If two observations are further apart than this, the process was stopped in the meantime, or the machine is overloaded.
_LATE_S = 1.0


class Observation(NamedTuple):
    """The state of a thread at one moment."""

    at_s: float
    used_s: float  #: the processor time that the process has used
    call: Any  #: identifies the library call that the thread is in; None if it is in none


def observe(thread: int, packages: Sequence[str]) -> Observation:
    """Observes a thread of this process. It is in a call of one of the packages if its innermost Python function belongs to that package."""
    frame = sys._current_frames().get(thread)  # pylint: disable=protected-access
    name = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
    is_inside = any(f"{name}.".startswith(f"{package}.") for package in packages)
    return Observation(time.monotonic(), time.process_time(), (id(frame), frame.f_lasti, frame.f_code.co_name) if is_inside and frame else None)


class Watch:
    """Detects a hang in a series of observations."""

    def __init__(self) -> None:
        self._first: Optional[Observation] = None  #: the first observation since the thread last did something
        self._last: Optional[Observation] = None

    def hangs(self, now: Observation) -> bool:
        """Whether the thread has been in the same call for LIMIT_S, while the process used almost no processor time. Observations that come
        too late restart the time."""
        first, last = self._first, self._last
        self._last = now
        if (first is None or last is None or now.call is None or now.call != first.call or now.used_s - first.used_s > _IDLE_S
                or now.at_s - last.at_s > _LATE_S):
            self._first = now
            return False
        return now.at_s - first.at_s >= LIMIT_S

"""Whether a thread hangs in a call of a library."""
import sys
import time
from typing import Any, NamedTuple, Optional, Sequence

#: How long a call may do nothing before it hangs.
LIMIT_S = 10.0
#: What a process that hangs uses of the processor at most in this time: the thread that watches it uses some.
_IDLE_S = 0.1
#: When the thread that watches comes later than this, the process was stopped meanwhile, or the machine has too much to do.
_LATE_S = 1.0


class Observation(NamedTuple):
    """What is seen of a thread at one moment."""

    at_s: float
    used_s: float  #: the processor time that the process has used
    call: Any  #: the call of the library that the thread is in, or None if it is in none


def observe(thread: int, packages: Sequence[str]) -> Observation:
    """Observes a thread of this process. It is in a call of one of the packages if its innermost Python function belongs to that package."""
    frame = sys._current_frames().get(thread)  # pylint: disable=protected-access
    name = str(frame.f_globals.get("__name__", "")) if frame is not None else ""
    is_inside = any(f"{name}.".startswith(f"{package}.") for package in packages)
    return Observation(time.monotonic(), time.process_time(), (id(frame), frame.f_lasti, frame.f_code.co_name) if is_inside and frame else None)


class Watch:
    """Looks for a hang in a series of observations."""

    def __init__(self) -> None:
        self._first: Optional[Observation] = None  #: the first observation since the thread last did something
        self._last: Optional[Observation] = None

    def hangs(self, now: Observation) -> bool:
        """Whether the thread has been in the same call for LIMIT_S, and the process has used no processor time."""
        first, last = self._first, self._last
        self._last = now
        if (first is None or last is None or now.call is None or now.call != first.call or now.used_s - first.used_s > _IDLE_S
                or now.at_s - last.at_s > _LATE_S):
            self._first = now
            return False
        return now.at_s - first.at_s >= LIMIT_S

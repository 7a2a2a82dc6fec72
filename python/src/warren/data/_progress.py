"""How far reading is, on a terminal."""
import contextlib
import os
import sys
import time
from typing import Any, Callable, Optional

#: Between two pictures of it.
_EVERY_S = 0.1
#: Of a terminal that does not say it.
_WIDTH = 80


def line(what: str, rows: int, size: int, seconds: float, total_rows: Optional[int], total_bytes: int, width: int) -> str:
    """What is shown: rows, bytes, how fast, how long it will take. Pure."""
    of_rows = f" of {total_rows:,}" if total_rows is not None else ""
    speed = size / seconds if seconds > 0 else 0.0
    left = f", {_time((total_bytes - size) / speed)} left" if speed > 0 and size < total_bytes else ""
    text = f"{rows:,}{of_rows} rows, {size / 1e6:,.0f} MB, {speed / 1e6:,.0f} MB/s{left}"
    room = width - len(text) - 3
    name = what if len(what) <= room else f"...{what[-(room - 3):]}" if room > 8 else ""
    return (f"{name}: {text}" if name else text)[:width - 1]


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _width(stream: Any) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    except (OSError, ValueError, AttributeError):
        return _WIDTH


def _terminal() -> Any:
    """Standard error, if that is a terminal. That of a worker of dmlc-submit is a pipe, which then says which terminal it has, if it
    has one here. None: there is none."""
    if sys.stderr is not None and sys.stderr.isatty():
        return sys.stderr
    try:
        # Not to become this session's own, and not to wait for it.
        descriptor = os.open(os.environ["WARREN_TERMINAL"], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (KeyError, OSError):
        return None
    return os.fdopen(descriptor, "w")


class Progress:
    """One line on a terminal, drawn again and again; nothing where there is none. To be closed. One thread uses it."""

    def __init__(self, what: str, total_rows: Optional[int], total_bytes: int, wanted: bool = True, stream: Any = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else _terminal() if wanted else None
        self._own = stream is None and self._stream not in (None, sys.stderr)
        self._shown = wanted and self._stream is not None and self._stream.isatty()
        self._what, self._total_rows, self._total_bytes, self._clock = what, total_rows, total_bytes, clock
        self._rows, self._bytes = 0, 0
        self._start = self._last = clock()

    def __call__(self, rows: int, size: int) -> None:
        """So many more of them."""
        self._rows, self._bytes = self._rows + rows, self._bytes + size
        now = self._clock()
        if self._shown and now - self._last >= _EVERY_S:
            self._last = now
            width = _width(self._stream)
            self._draw("\r\x1b[K" + line(self._what, self._rows, self._bytes, now - self._start, self._total_rows, self._total_bytes, width))

    def _draw(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # a terminal that has gone, or takes nothing now
            self._shown = False

    def close(self) -> None:
        """Takes the line away."""
        if self._shown and self._last != self._start:
            self._draw("\r\x1b[K")
        if self._own:
            with contextlib.suppress(OSError):
                self._stream.close()
        self._shown = self._own = False

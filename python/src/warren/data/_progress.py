"""Shows the progress of reading on a terminal, or reports it to the observers of the job."""
import os
import sys
import time
from typing import Any, Callable, Optional

from warren._engine import reporting as _reporting

#: The minimum time between two updates, in seconds.
_EVERY_S = 0.1
#: The width assumed for a terminal that does not report its width.
_WIDTH = 80


def line(what: str, rows: int, size: int, seconds: float, total_rows: Optional[int], total_bytes: int, width: int) -> str:
    """Formats the progress: rows, bytes, speed, and the time left, in fewer than `width` characters. A pure function."""
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


class Progress:
    """One line on a terminal, redrawn repeatedly; nothing without a terminal. A worker started by dmlc-submit reports its progress instead,
    and dmlc-submit shows the progress of all workers. Must be closed. Used by one thread."""

    def __init__(self, what: str, total_rows: Optional[int], total_bytes: int, wanted: bool = True, draws: bool = True,
                 stream: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._reports = wanted and stream is None and _reporting.wanted()
        self._draws = wanted and draws and not self._reports and self._stream is not None and self._stream.isatty()
        self._what, self._total_rows, self._total_bytes, self._clock = what, total_rows, total_bytes, clock
        self._rows, self._bytes = 0, 0
        self._start = self._last = clock()

    def __call__(self, rows: int, size: int) -> None:
        """Adds rows and bytes, and updates the display or report if `_EVERY_S` has passed."""
        self._rows, self._bytes = self._rows + rows, self._bytes + size
        now = self._clock()
        if not (self._draws or self._reports) or now - self._last < _EVERY_S:
            return
        self._last = now
        if self._reports:
            _reporting.reading(self._what, self._rows, self._bytes, self._total_bytes, now - self._start)
        else:
            width = _width(self._stream)
            self._draw("\r\x1b[K" + line(self._what, self._rows, self._bytes, now - self._start, self._total_rows, self._total_bytes, width))

    def _draw(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # the terminal is gone, or does not accept output
            self._draws = False

    def close(self) -> None:
        """Removes the line, or reports that reading has ended."""
        if self._reports and self._last != self._start:
            _reporting.reading("", self._rows, self._bytes, self._total_bytes, self._clock() - self._start)
        if self._draws and self._last != self._start:
            self._draw("\r\x1b[K")
        self._draws = self._reports = False

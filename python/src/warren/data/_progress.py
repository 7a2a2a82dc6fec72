"""How far reading is, on a terminal."""
import sys
import time
from typing import Any, Callable, Optional

#: Between two pictures of it.
_EVERY_S = 0.1


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


class Progress:
    """One line on standard error, drawn again and again, where that is a terminal; else nothing. To be closed. One thread uses it."""

    def __init__(self, what: str, total_rows: Optional[int], total_bytes: int, wanted: bool = True, stream: Any = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
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
            import shutil  # pylint: disable=import-outside-toplevel

            width = shutil.get_terminal_size().columns
            self._stream.write("\r\x1b[K" + line(self._what, self._rows, self._bytes, now - self._start, self._total_rows,
                                                 self._total_bytes, width))
            self._stream.flush()

    def close(self) -> None:
        """Takes the line away."""
        if self._shown and self._last != self._start:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = False

"""Shows the output of a job that was started from Python."""
import codecs
import fcntl
import os
import selectors
import shutil
import struct
import subprocess
import sys
import termios
from typing import Any, Dict, Optional, TextIO

#: The escape sequence with which dmlc-submit erases its live line, after a carriage return. Notebooks support only the carriage return.
_ERASE = "\x1b[J"


def is_terminals() -> bool:
    """Whether a child's output appears in the same place as this process's without being copied. It does not in a notebook, or if sys.stdout
    or sys.stderr has been replaced."""
    def is_own(stream: Any, number: int) -> bool:
        try:
            return bool(stream is not None and stream.fileno() == number)
        except (OSError, ValueError, AttributeError):
            return False
    if sys.stdout is None and sys.stderr is None:
        return True  # for example in a daemon: there is no stream to which output could be copied
    return sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__ and is_own(sys.stdout, 1) and is_own(sys.stderr, 2)


def is_notebooks() -> bool:
    """Whether this process is the kernel of a notebook. Notebooks show a line that is redrawn repeatedly as one line."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class Pump:
    """Copies the output of a child to sys.stdout and sys.stderr, which may be a notebook's. In a notebook the child's standard error is a
    terminal, so that dmlc-submit shows its live line."""

    def __init__(self) -> None:
        self._columns = shutil.get_terminal_size((100, 24)).columns
        self._out_read, self._out_write = os.pipe()
        self._is_live = is_notebooks()
        if self._is_live:
            self._error_read, self._error_write = os.openpty()
            fcntl.ioctl(self._error_write, termios.TIOCSWINSZ, struct.pack("4H", 24, self._columns, 0, 0))
            attributes = termios.tcgetattr(self._error_write)
            attributes[1] &= ~termios.OPOST  # no carriage return before a newline
            termios.tcsetattr(self._error_write, termios.TCSANOW, attributes)
        else:
            self._error_read, self._error_write = os.pipe()

        #: Incremental decoders, because a character may be split between two pieces.
        self._decoders = {descriptor: codecs.getincrementaldecoder("utf-8")("replace") for descriptor in (self._out_read, self._error_read)}

    def streams(self) -> Dict[str, Any]:
        """The arguments for subprocess.Popen."""
        return {"stdout": self._out_write, "stderr": self._error_write}

    def environment(self) -> Dict[str, str]:
        """The additional environment variables for the child."""
        return {"TERM": "xterm-256color"} if self._is_live else {}

    def started(self) -> None:
        """To be called once the child has its streams."""
        os.close(self._out_write)
        os.close(self._error_write)

    def copy(self, process: "subprocess.Popen[bytes]") -> None:
        """Copies output until all processes have closed the streams, or until the child has ended and no more output is available. After a
        KeyboardInterrupt, this method can be called again."""
        with selectors.DefaultSelector() as selector:
            for descriptor in self._decoders:
                selector.register(descriptor, selectors.EVENT_READ, sys.stdout if descriptor == self._out_read else sys.stderr)
            while selector.get_map():
                has_ended = process.poll() is not None
                ready = selector.select(0 if has_ended else 1)
                if not ready and has_ended:
                    return
                for key, _ in ready:
                    if not self._copied(key.fd, key.data):
                        selector.unregister(key.fd)

    def close(self) -> None:
        """Closes this process's ends of the streams."""
        os.close(self._out_read)
        os.close(self._error_read)

    def _copied(self, descriptor: int, to: Optional[TextIO]) -> bool:
        try:
            piece = os.read(descriptor, 1 << 16)
        except OSError:
            piece = b""  # reading from the terminal of a child that has ended fails
        text = self._decoders[descriptor].decode(piece, final=not piece)
        if descriptor == self._error_read and self._is_live:
            text = text.replace(_ERASE, " " * (self._columns - 1) + "\r")
        if to is not None and text:
            try:
                to.write(text)
            except UnicodeEncodeError:
                to.write(text.encode("ascii", "backslashreplace").decode())
            to.flush()
        return bool(piece)

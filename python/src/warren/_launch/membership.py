"""The membership of this process in an elastic job, whose workers may come and go (wire/membership.h, warren/c_api.h)."""
import ctypes
import os
import time
from typing import Any, NamedTuple, Optional

from warren._engine import native as _native

#: How long one call of the library waits: Python handles signals between the calls.
_SLICE_S = 0.2
_STORY_BYTES = 1024
_COMES, _DONE, _LEAVES = 1, 2, 3
_FORMED, _BROKEN, _CHANGE, _OVER = 1, 2, 3, 4


class Generation(NamedTuple):
    """The workers that train together until one is lost, or another one comes."""

    number: int  #: counted from 1
    size: int  #: the number of its members


class JobIsOver(Exception):
    """The work of the job was done before this worker could take part in it."""


def is_elastic() -> bool:
    """Whether this process is a worker of a job that dmlc-submit --num-workers MIN:MAX has started."""
    return bool(os.environ.get("WARREN_ELASTIC")) and os.environ.get("DMLC_ROLE", "worker") == "worker"


def most_workers() -> int:
    """MAX of --num-workers MIN:MAX. Raises RuntimeError if WARREN_ELASTIC has no such value."""
    words = os.environ.get("WARREN_ELASTIC", "").split(":")
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise RuntimeError(f"WARREN_ELASTIC is {os.environ.get('WARREN_ELASTIC')!r}, expected MIN:MAX")
    return int(words[1])


class Membership:
    """A connection to the tracker, which forms the generations. Used by one thread. Raises RuntimeError if the tracker is lost."""

    def __init__(self) -> None:
        """Connects, and waits for the first generation."""
        self._library = _native.library("librabit.so")
        self._library.WarrenGetLastError.restype = ctypes.c_char_p
        self._library.WarrenMembershipHear.argtypes = [
            ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int),
            ctypes.c_char_p, ctypes.c_size_t]
        self._library.WarrenMembershipTell.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._library.WarrenMembershipClose.argtypes = [ctypes.c_void_p]
        self._handle = ctypes.c_void_p()
        self._check(self._library.WarrenMembershipOpen(ctypes.byref(self._handle)))
        self.generation = Generation(0, 0)
        self._broken: Optional[str] = None
        self._change = False

    def _check(self, code: int) -> None:
        if code != 0:
            raise RuntimeError(self._library.WarrenGetLastError().decode(errors="replace"))

    def _hear(self, seconds: float) -> int:
        """Handles the tracker's next message, if one comes in this time. Returns its word, or 0."""
        word, number, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        story = ctypes.create_string_buffer(_STORY_BYTES)
        self._check(self._library.WarrenMembershipHear(self._handle, seconds, word, number, size, story, _STORY_BYTES))
        if word.value == _FORMED:
            self.generation = Generation(number.value, size.value)
            self._broken, self._change = None, False
        elif number.value == self.generation.number:
            if word.value == _BROKEN:
                self._broken = story.value.decode(errors="replace")
            elif word.value == _CHANGE:
                self._change = True
        return word.value

    def wait_for_generation(self, may_wait: Any) -> Generation:
        """Waits until this worker is a member of a new generation. Ends early, with the current one, if `may_wait()` is false. Raises
        JobIsOver."""
        while may_wait():
            word = self._hear(_SLICE_S)
            if word == _OVER:
                raise JobIsOver
            if word == _FORMED:
                break
        return self.generation

    def come_again(self) -> None:
        """Tells the tracker that this worker has left its generation, and waits for another one."""
        self._check(self._library.WarrenMembershipTell(self._handle, _COMES))

    def wants_change(self) -> bool:
        """Whether another worker waits for a place, or a member has been lost. Does not wait."""
        while self._hear(0):
            pass
        return self._change or self._broken is not None

    def loss(self, seconds: float) -> Optional[str]:
        """Which member of the generation was lost, and how; None if none is known to be lost within this time."""
        end = time.monotonic() + seconds
        while self._broken is None and time.monotonic() < end:
            self._hear(min(_SLICE_S, max(0.0, end - time.monotonic())))
        return self._broken

    def done(self) -> None:
        """Tells the tracker that the work of the job is done."""
        self._check(self._library.WarrenMembershipTell(self._handle, _DONE))

    def leave(self) -> None:
        """Tells the tracker that this worker ends, after it has left its generation with the others."""
        self._check(self._library.WarrenMembershipTell(self._handle, _LEAVES))
        self.close()

    def close(self) -> None:
        """Ends the membership."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            self._library.WarrenMembershipClose(handle)

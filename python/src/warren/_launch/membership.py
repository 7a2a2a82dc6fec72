"""The membership of this process in an elastic job, whose workers may come and go (wire/membership.h, warren/c_api.h)."""
import ctypes
import os
import select
import socket
import threading
import time
from typing import Any, Callable, FrozenSet, Iterator, NamedTuple, Optional

from warren._engine import native as _native

#: How long a wait takes at most before Python handles signals.
_SLICE_S = 0.2
#: How long after a loss a member is left alone, which usually notices by itself, in the call that it is in.
_GRACE_S = 1.0
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


def set_environment(rank: int, size: int) -> None:
    """Sets RANK and WORLD_SIZE, as torchrun does, to this worker's place in its generation."""
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(size)


class _Connection:
    """The functions of warren/c_api.h. A lock keeps its callers apart."""

    def __init__(self) -> None:
        self._library = _native.library("librabit.so")
        self._library.WarrenGetLastError.restype = ctypes.c_char_p
        self._library.WarrenMembershipHear.argtypes = [
            ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int),
            ctypes.c_char_p, ctypes.c_size_t]
        self._library.WarrenMembershipTell.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._library.WarrenMembershipDescriptor.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        self._library.WarrenMembershipClose.argtypes = [ctypes.c_void_p]
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._check(self._library.WarrenMembershipOpen(ctypes.byref(self._handle)))
        descriptor = ctypes.c_int()
        self._check(self._library.WarrenMembershipDescriptor(self._handle, descriptor))
        self.descriptor: int = descriptor.value

    def _check(self, code: int) -> None:
        if code != 0:
            raise RuntimeError(self._library.WarrenGetLastError().decode(errors="replace"))

    def tell(self, word: int) -> None:
        """Sends a word."""
        with self._lock:
            if self._handle:
                self._check(self._library.WarrenMembershipTell(self._handle, word))

    def heard(self) -> Iterator[Any]:
        """Yields what has come: the word, the generation, and the story."""
        while True:
            word, number, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
            story = ctypes.create_string_buffer(_STORY_BYTES)
            with self._lock:
                if not self._handle:
                    return
                self._check(self._library.WarrenMembershipHear(self._handle, 0.0, word, number, size, story, _STORY_BYTES))
            if word.value == 0:
                return
            yield word.value, Generation(number.value, size.value), story.value.decode(errors="replace")

    def close(self) -> None:
        """Ends the membership."""
        with self._lock:
            handle, self._handle = self._handle, ctypes.c_void_p()
            if handle:
                self._library.WarrenMembershipClose(handle)


class Membership:
    """A connection to the tracker, which forms the generations, and a thread that listens to it.

    A member may wait in a call for one that is lost, such as for its connection. So when a generation is broken and this member does not
    leave it within a second, the thread shuts down the sockets that it opened to join this generation, which ends the call with an error.
    Other methods are for one thread; they raise RuntimeError if the tracker is lost."""

    def __init__(self) -> None:
        """Connects, and waits for the first generation."""
        self._connection = _Connection()
        self._changed = threading.Condition()
        self._formed: Optional[Generation] = None  # heard of, and not entered yet
        self._current = Generation(0, 0)
        self._is_broken = self._wants_change = self._is_over = self._is_closed = False
        self._failure: Optional[Exception] = None
        self._before: Optional[FrozenSet[str]] = None  # while this process joins a generation: the sockets that it had before
        self._links: FrozenSet[str] = frozenset()  # those that it opened to join
        threading.Thread(target=self._listen, name="warren-membership", daemon=True).start()

    # --- the thread -----------------------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        broken_since: Optional[float] = None
        news = select.poll()
        news.register(self._connection.descriptor, select.POLLIN)
        try:
            while not self._is_closed:
                news.poll(1000 * _SLICE_S)
                for word, generation, _ in self._connection.heard():
                    self._note(word, generation)
                with self._changed:
                    if not self._is_broken or not (self._links or self._before is not None):
                        broken_since = None
                    elif broken_since is None:
                        broken_since = time.monotonic()
                    elif time.monotonic() - broken_since >= _GRACE_S:
                        _shut_down(self._links if self._before is None else _sockets() - self._before)
                        broken_since = time.monotonic()
        except Exception as error:  # pylint: disable=broad-except
            with self._changed:
                if not self._is_closed:
                    self._failure = error
                self._changed.notify_all()

    def _note(self, word: int, generation: Generation) -> None:
        with self._changed:
            if word == _FORMED:
                self._formed = generation
            elif word == _OVER:
                self._is_over = True
            elif generation.number == self._current.number or self._formed and generation.number == self._formed.number:
                self._is_broken = self._is_broken or word == _BROKEN
                self._wants_change = self._wants_change or word == _CHANGE
            self._changed.notify_all()

    # --- the generations ------------------------------------------------------------------------------------------------------------

    def _wait(self, condition: Callable[[], Any], seconds: float) -> None:
        """Waits until the condition holds, the time has passed, or the tracker is lost. Call it with the lock."""
        end = time.monotonic() + seconds
        while not condition() and self._failure is None and time.monotonic() < end:
            self._changed.wait(min(_SLICE_S, max(0.0, end - time.monotonic())))
        if self._failure is not None:
            raise RuntimeError(str(self._failure)) from self._failure

    def next_generation(self, may_wait: Callable[[], bool]) -> Generation:
        """Waits until this worker is a member of a new generation, which it then joins. Ends early, with the last one, if `may_wait()` is
        false. Raises JobIsOver."""
        with self._changed:
            self._wait(lambda: self._formed or self._is_over or not may_wait(), float("inf"))
            if self._is_over:
                raise JobIsOver
            if self._formed is not None:
                self._current, self._formed = self._formed, None
                self._before = _sockets()
            return self._current

    def joined(self) -> None:
        """To be called when this worker has joined its generation: the sockets that it opens from now on are the program's."""
        with self._changed:
            if self._before is not None:
                self._links, self._before = _sockets() - self._before, None

    @property
    def size(self) -> int:
        """The number of members of this worker's generation."""
        return self._current.size

    def come_again(self) -> None:
        """Tells the tracker that this worker has left its generation, and waits for another one."""
        with self._changed:
            self._before, self._links = None, frozenset()
            self._is_broken = self._wants_change = False
            self._current = Generation(0, 0)
        self._connection.tell(_COMES)

    def wants_change(self) -> bool:
        """Whether another worker waits for a place, or a member has been lost."""
        with self._changed:
            return self._wants_change or self._is_broken

    def is_known_to_end(self, seconds: float) -> bool:
        """Whether the tracker says within this time that a member of the generation was lost, or that another worker waits."""
        with self._changed:
            self._wait(lambda: self._wants_change or self._is_broken, seconds)
            return self._wants_change or self._is_broken

    def done(self) -> None:
        """Tells the tracker that the work of the job is done."""
        with self._changed:
            self._before, self._links = None, frozenset()
        self._connection.tell(_DONE)

    def leave(self) -> None:
        """Tells the tracker that this worker ends, after it has left its generation with the others."""
        self._connection.tell(_LEAVES)
        self.close()

    def close(self) -> None:
        """Ends the membership."""
        with self._changed:
            self._is_closed = True
        self._connection.close()


def _sockets() -> FrozenSet[str]:
    """The sockets of this process, by the names that Linux gives them; empty elsewhere."""
    found = set()
    for entry in os.scandir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            name = os.readlink(entry.path)
        except OSError:  # closed in the meantime
            continue
        if name.startswith("socket:"):
            found.add(name)
    return frozenset(found)


def _shut_down(names: FrozenSet[str]) -> None:
    """Shuts down these sockets of this process, so that no thread waits for them."""
    for entry in os.scandir("/proc/self/fd") if names else ():
        try:
            if os.readlink(entry.path) not in names:
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as one:
                one.shutdown(socket.SHUT_RDWR)
        except OSError:  # closed, or not connected
            continue

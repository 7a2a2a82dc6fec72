"""The membership of this process in an elastic job, whose workers may join and leave (wire/membership.h, warren/c_api.h)."""
import ctypes
import contextlib
import os
import select
import socket
import sys
import threading
import time
from typing import Any, Callable, FrozenSet, Iterator, NamedTuple, Optional

from warren._engine import native as _native
from warren._launch import hang as _hang
from warren._launch.preemption import EndRequest

#: The maximum length of a wait, after which conditions are checked that change without a notification.
_SLICE_S = 0.2
#: The time after a loss before this member's sockets are shut down: its current call usually detects the loss itself.
_GRACE_S = 1.0
#: The time that this worker waits for another tracker to take over, once it needs one; and the time that the new tracker may then need to
#: detect members that were lost in the meantime (a little more than kLeavePatience in tracker/generations.h).
_TRACKER_PATIENCE_S, _TRACKER_NOTICES_S = 30.0, 35.0
#: The pause between two attempts to find the tracker.
_SEARCH_PAUSE_S = 0.25
_STORY_BYTES = 1024
_COMES, _DONE, _LEAVES, _STAYS = 1, 2, 3, 4
_FORMED, _BROKEN, _CHANGE, _OVER, _FAILED = 1, 2, 3, 4, 5


class Generation(NamedTuple):
    """The workers that train together until one is lost or leaves, or another one joins."""

    number: int  #: counted from 1
    size: int  #: the number of its members


class JobIsOver(Exception):
    """Raised if the work of the job was done before this worker could take part in it."""


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
    """Sets RANK and WORLD_SIZE, as torchrun does, to this worker's rank in its generation and the generation's size."""
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(size)


class _Connection:
    """A connection to the tracker, through the functions of warren/c_api.h. Thread-safe. Methods raise RuntimeError if the connection
    fails."""

    def __init__(self) -> None:
        self._library = _native.library("librabit.so")
        self._library.WarrenGetLastError.restype = ctypes.c_char_p
        self._library.WarrenMembershipHear.argtypes = [
            ctypes.c_void_p, ctypes.c_double, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int),
            ctypes.c_char_p, ctypes.c_size_t]
        self._library.WarrenMembershipTell.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._library.WarrenMembershipDescriptor.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
        self._library.WarrenMembershipClose.argtypes = [ctypes.c_void_p]
        self._library.WarrenMembershipBegin.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._check(self._library.WarrenMembershipConnect(ctypes.byref(self._handle)))
        descriptor = ctypes.c_int()
        self._check(self._library.WarrenMembershipDescriptor(self._handle, descriptor))
        self.descriptor: int = descriptor.value

    def _check(self, code: int) -> None:
        if code != 0:
            raise RuntimeError(self._library.WarrenGetLastError().decode(errors="replace"))

    def begin(self, word: int, generation: int) -> None:
        """Sends the first message: `word`, which is this worker's state, and its generation."""
        with self._lock:
            self._check(self._library.WarrenMembershipBegin(self._handle, word, generation))

    def tell(self, word: int) -> None:
        """Sends a later message, which consists of `word`. Does nothing after `close`."""
        with self._lock:
            if self._handle:
                self._check(self._library.WarrenMembershipTell(self._handle, word))

    def heard(self) -> Iterator[Any]:
        """Yields (word, generation, reason) for each message received so far, without waiting. The reason may be empty."""
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
    """This worker's membership: a connection to the tracker, which forms the generations, and a thread that receives its messages.

    A member may be waiting in a call for a lost member, for example for its connection. So if a generation is broken and this member does not
    leave it within a second, the thread shuts down the sockets that this member opened to join the generation, which ends the call with an
    error. If the call still does not return, the process ends, as if it had been lost: XGBoost's own communicator, with which workers also
    join, may wait for an operation that its thread has left in the queue (Loop::Block, as of 3.4).

    If the tracker is lost, the thread searches for one that takes over the job (rabit-tracker --state), and reports this worker's state to
    it: waiting, a member of its generation as before, or done. In the meantime, the generation continues training.

    All methods are for one thread. `next_generation` and `is_known_to_end` raise RuntimeError if the job has failed, or if the tracker was
    lost and none has taken over in time."""

    def __init__(self, package: str = "") -> None:
        """Connects to the tracker as a waiting worker; does not wait for the first generation. `package`: the Python package of the library
        whose calls may hang."""
        self._package = package
        self._packages = (package, f"warren._{package}", "warren.data._peers") if package else ()
        self._thread = _hang.Thread.current()  # the thread that trains
        self._connection = _Connection()
        self._connection.begin(_COMES, 0)
        self._changed = threading.Condition()
        self._formed: Optional[Generation] = None  # announced by the tracker, and not entered yet
        self._current = Generation(0, 0)
        self._is_broken = self._wants_change = self._is_over = self._is_closed = False
        self._failure: Optional[Exception] = None
        self._done_in = 0  # the generation in which this worker reported that the work is done, until it takes part in another one
        self._loss: Optional[str] = None  # while there is no tracker: how it was lost
        self._returned_at = float("-inf")  # when a tracker that took over was found
        self._before: Optional[FrozenSet[str]] = None  # while this process joins a generation: the sockets that it had before
        self._links: FrozenSet[str] = frozenset()  # the sockets that this process opened to join
        threading.Thread(target=self._listen, name="warren-membership", daemon=True).start()

    # --- the thread -----------------------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            while not self._has_ended():
                try:
                    self._hear()
                except RuntimeError as error:
                    if not self._has_ended() and not self._needs_no_tracker():
                        self._find_tracker(str(error))
        except Exception as error:  # pylint: disable=broad-except
            with self._changed:
                if not self._is_closed:
                    self._failure = error
                self._changed.notify_all()

    def _needs_no_tracker(self) -> bool:
        return self._is_over or self._failure is not None

    def _is_in_broken_generation(self) -> bool:
        return self._is_broken and (bool(self._links) or self._before is not None)

    def _has_ended(self) -> bool:
        return self._is_closed or (self._needs_no_tracker() and not self._is_in_broken_generation())

    def _hear(self) -> None:
        broken_since: Optional[float] = None
        watch = _hang.Watch()
        news = select.poll()
        news.register(self._connection.descriptor, select.POLLIN)
        while not self._has_ended():
            if self._needs_no_tracker():
                time.sleep(_SLICE_S)
            else:
                news.poll(1000 * _SLICE_S)
                for word, generation, story in self._connection.heard():
                    self._note(word, generation, story)
            with self._changed:
                if not self._is_in_broken_generation():
                    broken_since, watch = None, _hang.Watch()
                elif broken_since is None:
                    broken_since = time.monotonic()
                elif time.monotonic() - broken_since >= _GRACE_S:
                    _shut_down(self._links if self._before is None else _sockets() - self._before)
                    broken_since = time.monotonic()
                if broken_since is not None and watch.hangs(_hang.observe(self._thread, self._packages)):
                    self._end_hanging_process()

    def _end_hanging_process(self) -> None:
        then = "the job's work is done without it" if self._is_over else "another one takes its place"
        sys.stderr.write(f"warren: a worker was lost, and a call of {self._package} has done nothing for {_hang.LIMIT_S:g} s, although its "
                         f"connections have been shut down: this process ends, and {then}\n")
        sys.stderr.flush()
        os._exit(0 if self._is_over else EndRequest.STATUS)  # pylint: disable=protected-access

    def _find_tracker(self, loss: str) -> None:
        """Waits for a tracker that takes over the job, connects to it, and reports this worker's state."""
        with self._changed:
            self._loss = loss
        is_shown = False
        while not self._is_closed:
            time.sleep(_SEARCH_PAUSE_S)
            try:
                found = _Connection()
                try:
                    with self._changed:
                        self._return_over(found)
                except RuntimeError:
                    found.close()
                    raise
            except RuntimeError as error:
                if not is_shown:
                    sys.stderr.write(f"warren: {loss}; this worker goes on until it needs the tracker, and looks for one that takes over ({error})\n")
                is_shown, self._loss = True, str(error)
                continue
            sys.stderr.write("warren: the tracker was lost, and this worker has found the one that takes over\n")
            return

    def _return_over(self, found: _Connection) -> None:
        """Continues the membership over this connection. To be called with the lock held, so that nothing is sent over the old connection
        afterwards."""
        now = self._formed or self._current
        if self._done_in:
            found.begin(_DONE, self._done_in)
            if not now.number:
                found.tell(_COMES)
        else:
            found.begin(_STAYS if now.number else _COMES, now.number)
        lost, self._connection = self._connection, found
        lost.close()
        # The new connection is not one of the generation's sockets.
        with contextlib.suppress(OSError):
            own = frozenset([os.readlink(f"/proc/self/fd/{found.descriptor}")])
            self._before, self._links = None if self._before is None else self._before | own, self._links - own
        if self._is_closed:
            found.close()
        self._loss, self._returned_at = None, time.monotonic()
        self._changed.notify_all()

    def _note(self, word: int, generation: Generation, story: str) -> None:
        with self._changed:
            if word == _FORMED:
                self._formed, self._done_in = generation, 0
            elif word == _OVER:
                self._is_over = True
            elif word == _FAILED:
                self._failure = RuntimeError(story)
            elif generation.number == self._current.number or self._formed and generation.number == self._formed.number:
                self._is_broken = self._is_broken or word == _BROKEN
                self._wants_change = self._wants_change or word == _CHANGE
            self._changed.notify_all()

    # --- the generations ------------------------------------------------------------------------------------------------------------

    def _wait(self, condition: Callable[[], Any], seconds: float, after_return_s: float = 0) -> None:
        """Waits until the condition holds or `seconds` have passed. If the tracker is lost, the time starts anew when another one has taken
        over, and lasts until at least `after_return_s` after that. To be called with the lock held. Raises RuntimeError if the job has
        failed, or if no tracker has taken over in time."""
        begun = time.monotonic()
        end = begun + seconds
        while not condition() and self._failure is None:
            end = max(end, self._returned_at + after_return_s)
            if self._loss is None and time.monotonic() >= end:
                break
            self._changed.wait(_SLICE_S if self._loss is not None else min(_SLICE_S, max(0.0, end - time.monotonic())))
            if self._loss is None:
                begun = time.monotonic()
            elif time.monotonic() - begun < _TRACKER_PATIENCE_S:
                end = time.monotonic() + seconds
            else:
                raise RuntimeError(f"{self._loss} No tracker has taken over within {_TRACKER_PATIENCE_S:.0f} s: rabit-tracker --state FILE, started "
                                   "again with the same options, does")
        if self._failure is not None:
            raise RuntimeError(str(self._failure)) from self._failure

    def next_generation(self, may_wait: Callable[[], bool]) -> Generation:
        """Waits until this worker is a member of a new generation, and returns it, for the caller to join. Returns early, with a
        meaningless value, if `may_wait()` becomes false. Raises JobIsOver if the work of the job is done."""
        with self._changed:
            self._wait(lambda: self._formed or self._is_over or not may_wait(), float("inf"))
            if self._is_over:
                raise JobIsOver
            if self._formed is not None:
                self._thread = _hang.Thread.current()
                self._current, self._formed = self._formed, None
                self._before = _sockets()
            return self._current

    def joined(self) -> None:
        """To be called when this worker has joined its generation: sockets opened from now on belong to the program."""
        with self._changed:
            if self._before is not None:
                self._links, self._before = _sockets() - self._before, None

    @property
    def size(self) -> int:
        """The number of members of this worker's generation."""
        return self._current.size

    def come_again(self) -> None:
        """Reports to the tracker that this worker has left its generation and is waiting for another one. Returns immediately."""
        with self._changed:
            self._before, self._links = None, frozenset()
            self._is_broken = self._wants_change = False
            self._current = Generation(0, 0)
            self._tell(_COMES)

    def _tell(self, word: int) -> None:
        """Sends a word to the tracker. Does nothing if the tracker is lost: _return_over then reports this worker's state to the next one.
        To be called with the lock held."""
        with contextlib.suppress(RuntimeError):
            self._connection.tell(word)

    def wants_change(self) -> bool:
        """Whether another worker is waiting to join, or a member has been lost."""
        with self._changed:
            return self._wants_change or self._is_broken

    def is_known_to_end(self, seconds: float) -> bool:
        """Waits up to this time, longer if a tracker has just taken over, for a report that a member of the generation was lost or that
        another worker is waiting. Returns whether there is one."""
        with self._changed:
            self._wait(lambda: self._wants_change or self._is_broken, seconds, after_return_s=_TRACKER_NOTICES_S)
            return self._wants_change or self._is_broken

    def done(self) -> None:
        """Reports to the tracker that the work of the job is done. If the tracker is lost, waits for another one to take over; if none does,
        prints a message."""
        with self._changed:
            self._before, self._links = None, frozenset()
            self._done_in = self._current.number
            self._tell(_DONE)
            try:
                self._wait(lambda: self._loss is None, float("inf"))
            except RuntimeError as error:
                sys.stderr.write(f"warren: the work is done, but this worker could not tell the tracker: {error}\n")

    def leave(self) -> None:
        """Reports to the tracker that this worker ends, after it has left its generation with the others, and ends the membership."""
        with self._changed:
            self._tell(_LEAVES)
        self.close()

    def close(self) -> None:
        """Ends the membership."""
        with self._changed:
            self._is_closed = True
        self._connection.close()


def _sockets() -> FrozenSet[str]:
    """The sockets of this process, by their names in Linux's /proc; empty on other systems."""
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

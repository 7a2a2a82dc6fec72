"""Threads that call the program's functions when operations end (`Handle.when_done`).

The engine's threads, which carry operations out, must not do so: such a function may wait for further operations, as
communication hooks of PyTorch do, and those would wait for the thread that it occupies.
"""
import atexit
import collections
import os
import sys
import threading
import time
from typing import Callable, Deque

#: A thread that has had nothing to do for so long ends.
_IDLE_S = 5.0
#: How long the end of a process waits for functions that run.
_AT_EXIT_S = 5.0
_LOOK_AGAIN_S = 0.01


def _patience_s(num_running: int) -> float:
    """How long the running functions may take before another thread calls the next one. It doubles with their number, so that a
    program which is merely slow does not get a thread for each function."""
    return 0.001 * float(1 << min(num_running - 1, 6))


class CallbackThreads:
    """Calls functions one after the other, in the order in which they were given. One that takes longer than a millisecond or so,
    or waits for another one, does not hold up those behind it. Thread safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: Deque[Callable[[], None]] = collections.deque()
        self._num_threads = self._num_idle = self._num_running = self._num_ended = 0

    def call(self, function: Callable[[], None]) -> None:
        """In another thread, or, where none can be started, in this one."""
        with self._changed:
            if self._has_idle_thread():
                self._waiting.append(function)
                self._changed.notify()
                return
        function()

    def wait(self, seconds: float) -> None:
        """Returns when no function runs or waits to run, or after so long."""
        until = time.monotonic() + seconds
        while (self._waiting or self._num_running) and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)

    def _has_idle_thread(self) -> bool:
        """Starts a thread if none is idle. Returns whether functions will be called at all."""
        if self._num_idle == 0:
            try:
                threading.Thread(target=self._serve, name="warren callbacks", daemon=True).start()
                self._num_threads += 1
            except RuntimeError:  # the system has no more of them, or the interpreter is ending
                pass
        return self._num_threads > 0

    def _idle_until(self, reached: Callable[[], bool], seconds: float) -> bool:
        self._num_idle += 1
        try:
            return self._changed.wait_for(reached, seconds)
        finally:
            self._num_idle -= 1

    def _serve(self) -> None:
        with self._changed:
            while self._idle_until(lambda: bool(self._waiting), _IDLE_S):
                num_ended = self._num_ended
                # Whoever runs a function now also takes the next one, unless that function waits for something.
                if self._num_running > 0 and self._idle_until(
                        lambda ended=num_ended: self._num_ended != ended or not self._waiting,  # type: ignore[misc]
                        _patience_s(self._num_running)):
                    continue
                while self._waiting:
                    self._run_first()
            self._num_threads -= 1

    def _run_first(self) -> None:
        function = self._waiting.popleft()
        self._num_running += 1
        if self._waiting:
            self._has_idle_thread()
        self._changed.release()
        try:
            function()
        except BaseException:  # pylint: disable=broad-except
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        finally:
            del function
            self._changed.acquire()
            self._num_running -= 1
            self._num_ended += 1


_threads = CallbackThreads()


def call(function: Callable[[], None]) -> None:
    """See `CallbackThreads.call`; by threads of this process."""
    _threads.call(function)


def _begin_anew() -> None:
    global _threads  # pylint: disable=global-statement
    _threads = CallbackThreads()  # a forked process has none of the others


os.register_at_fork(after_in_child=_begin_anew)
# A thread that is inside of a C++ library when the interpreter ends aborts the process.
atexit.register(lambda: _threads.wait(_AT_EXIT_S))

"""Threads that call the program's functions when operations end (`Handle.when_done`).

The engine's threads, which carry out operations, must not do this: such a function may wait for further operations, as PyTorch's
communication hooks do, and those operations could not run on the engine's thread that the function blocks."""
import atexit
import collections
import os
import sys
import threading
import time
from typing import Callable, Deque

#: A thread that has been idle for this long ends.
_IDLE_S = 5.0
#: The maximum time that the process waits at exit for pending and running functions.
_AT_EXIT_S = 5.0
_LOOK_AGAIN_S = 0.01


def _patience_s(num_running: int) -> float:
    """Returns the time that the running functions may take before another thread calls the next one. It doubles with each running function,
    up to 64 ms, so that a program that is merely slow does not get a thread for each function."""
    return 0.001 * float(1 << min(num_running - 1, 6))


class CallbackThreads:
    """Calls functions one after the other, in the order in which they were submitted. A function that takes long, or waits for a later one,
    delays those after it only briefly; see `_patience_s`. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: Deque[Callable[[], None]] = collections.deque()
        self._num_threads = self._num_idle = self._num_running = self._num_ended = 0

    def call(self, function: Callable[[], None]) -> None:
        """Calls the function in another thread or, if none can be started, in this one."""
        with self._changed:
            if self._has_idle_thread():
                self._waiting.append(function)
                self._changed.notify()
                return
        function()

    def wait(self, seconds: float) -> None:
        """Returns when no function is running or pending, or after `seconds`."""
        until = time.monotonic() + seconds
        while (self._waiting or self._num_running) and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)

    def _has_idle_thread(self) -> bool:
        """Starts a thread if none is idle. Returns whether any thread exists that can call functions."""
        if self._num_idle == 0:
            try:
                threading.Thread(target=self._serve, name="warren callbacks", daemon=True).start()
                self._num_threads += 1
            except RuntimeError:  # no more threads are available, or the interpreter is shutting down
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
                # Usually the thread that is running a function also runs the next one. This thread does so only if that function takes too
                # long.
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
    """Calls the function on one of this process's callback threads; see `CallbackThreads.call`."""
    _threads.call(function)


def _begin_anew() -> None:
    global _threads  # pylint: disable=global-statement
    _threads = CallbackThreads()  # a forked process has none of the parent's threads


os.register_at_fork(after_in_child=_begin_anew)
# A thread that is inside a C++ library when the interpreter exits could abort the process.
atexit.register(lambda: _threads.wait(_AT_EXIT_S))

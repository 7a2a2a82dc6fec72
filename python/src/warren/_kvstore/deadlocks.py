"""Detects workers that are deadlocked in calls of a store: for example, one is in `pushpull` of key 'p', another in `pushpull` of 'q'.

A thread checks every second whether this worker is stuck, which means that every thread that could still submit a key is in a call of the
store. It then sends the other workers the names for which this one waits, and receives theirs once all workers are stuck. If two such
exchanges in a row have the same result, no worker has made progress between them. If, in addition, every worker waits for a name for which
some other worker does not wait, none can proceed, and all of them end their calls with an error."""
import contextlib
import json
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set

import numpy as np

from warren.collectives import Communicator

#: The time between two checks. Calls that end before the next check cost only an entry in a table.
_LOOK_S = 1.0
#: The size of a worker's message. A worker whose names do not fit sends nothing; deadlocks are then not detected.
_MESSAGE_BYTES = 2048


class Waiting:
    """The calls of a store in which this worker waits. Creating it and `close` are collective calls. Thread-safe."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        # Without stall warnings and errors: an exchange may take long, since a worker answers only when it is stuck itself.
        self._exchange = communicator.coordinator(stall_warning=1e9, stall_error=0)
        self._lock = threading.Lock()
        self._calls: Dict[int, Sequence[str]] = {}  # the names in each thread's current call, by thread id
        self._users: Set[threading.Thread] = set()
        self._num_calls = 0
        self._closed = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._story = ""

    @contextlib.contextmanager
    def call(self, names: Sequence[str], end: Any) -> Iterator[None]:
        """Wraps a call that waits until all workers have made a call with the same names. If the call is deadlocked, `end` is called, which
        ends the waiting operations, and the RuntimeError of the call is replaced by one that explains the deadlock."""
        thread = threading.current_thread()
        with self._lock:
            if self._thread is None and self._communicator.size > 1:
                self._thread = threading.Thread(target=self._look, args=(end,), name="warren-kvstore", daemon=True)
                self._thread.start()
            self._users.add(thread)
            self._calls[thread.ident or 0] = names
            self._num_calls += 1
        try:
            yield
        except RuntimeError as error:
            if self._story:
                raise RuntimeError(self._story) from error
            raise
        finally:
            with self._lock:
                self._calls.pop(thread.ident or 0, None)

    def close(self) -> None:
        """Ends the checks on all workers."""
        self._closed.set()
        self._exchange.close()

    def _state(self) -> Optional[bytes]:
        """Returns this worker's message, with the names for which it waits; None if it may still proceed, or if the message would be too
        long."""
        with self._lock:
            self._users = {thread for thread in self._users if thread.is_alive()}
            # A daemon thread that has never used the store serves another purpose.
            could = self._users | {thread for thread in threading.enumerate() if not thread.daemon}
            if not self._calls or any(thread.ident not in self._calls for thread in could):
                return None
            names = sorted(name for names in self._calls.values() for name in names)
            said = json.dumps({"calls": self._num_calls, "names": names}).encode()
        return said if len(said) <= _MESSAGE_BYTES else None

    def _look(self, end: Any) -> None:
        before: Optional[List[Any]] = None
        number = 0
        with contextlib.suppress(RuntimeError, ValueError):  # the store was closed, or a worker was lost, which the calls also report
            while not self._closed.wait(_LOOK_S):
                state = self._state()
                if state is None:
                    continue
                mine = np.frombuffer(state.ljust(_MESSAGE_BYTES), np.uint8)
                said = self._exchange.allgather(f"waits {number}", mine).wait().reshape(self._communicator.size, -1)
                number += 1
                now = [json.loads(one.tobytes()) for one in said]
                names = [set(one["names"]) for one in now]
                if now == before and all(any(own - others for others in names) for own in names):
                    self._story = _story(self._communicator.rank, names)
                    self._exchange.barrier("all know").wait()  # each worker must have set its _story before one of them ends all calls
                    end()
                    return
                before = now


def _story(rank: int, names: Sequence[Set[str]]) -> str:
    """The error message of a rank: the names for which it waits, and those of the first rank that does not wait for all of them."""
    other = next(index for index, others in enumerate(names) if names[rank] - others)
    mine, others = (", ".join(sorted(one)[:3]) for one in (names[rank], names[other]))
    return (f"rank {rank} waits in {mine}, and rank {other} in {others}: neither can go on. Call the store for the same keys in the same order "
            "on all workers, or for all keys of a step at once: pushpull([key, ...], [value, ...])")

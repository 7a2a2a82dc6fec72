"""Notices that the workers of a store wait for each other in calls that can never end: one in `pushpull` of key 'q', another of 'p'.

How it works: a thread looks every second whether this worker is stuck, that is, whether every thread that could still give a key is in
a call of the store. It then tells the other workers the names it waits for, and hears theirs once all are stuck. Two rounds with the
same answers mean that no worker has moved in between. If every worker waits for a name that some other one does not wait for, none
can go on, and all of them end their calls with an error.
"""
import contextlib
import json
import threading
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set

import numpy as np

from warren.collectives import Communicator

#: Between two looks. Calls that end sooner cost nothing but an entry in a table.
_LOOK_S = 1.0
#: What a worker says of itself; with more names than fit it says nothing, and no verdict is reached.
_MESSAGE_BYTES = 2048


class Waiting:
    """The calls of a store in which this worker waits. Thread safe. All workers make it, and call `close`."""

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        # An exchange may take long: a worker answers when it is stuck itself.
        self._exchange = communicator.coordinator(stall_warning=1e9)
        self._lock = threading.Lock()
        self._calls: Dict[int, Sequence[str]] = {}  # by thread
        self._users: Set[threading.Thread] = set()
        self._num_calls = 0
        self._closed = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._story = ""

    @contextlib.contextmanager
    def call(self, names: Sequence[str], end: Any) -> Iterator[None]:
        """Around a call that waits until all workers have made one with these names. When it can never end, `end` is called, which ends
        what is waited for, and the RuntimeError of the call becomes one that tells the story."""
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
        """Ends it on all workers."""
        self._closed.set()
        self._exchange.close()

    def _state(self) -> Optional[bytes]:
        """What this worker waits for; None while it may still go on."""
        with self._lock:
            self._users = {thread for thread in self._users if thread.is_alive()}
            # A daemon thread that never used the store serves something else.
            could = self._users | {thread for thread in threading.enumerate() if not thread.daemon}
            if not self._calls or any(thread.ident not in self._calls for thread in could):
                return None
            names = sorted(name for names in self._calls.values() for name in names)
            said = json.dumps({"calls": self._num_calls, "names": names}).encode()
        return said if len(said) <= _MESSAGE_BYTES else None

    def _look(self, end: Any) -> None:
        before: Optional[List[Any]] = None
        number = 0
        with contextlib.suppress(RuntimeError, ValueError):  # the store was closed, or a worker is lost, which its calls say, too
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
                    self._exchange.barrier("all know").wait()  # before the first of them ends the calls of the others
                    end()
                    return
                before = now


def _story(rank: int, names: Sequence[Set[str]]) -> str:
    """The message of a rank: what it waits for, and what the first rank that does not give it waits for."""
    other = next(index for index, others in enumerate(names) if names[rank] - others)
    mine, others = (", ".join(sorted(one)[:3]) for one in (names[rank], names[other]))
    return (f"rank {rank} waits in {mine}, and rank {other} in {others}: neither can go on. Call the store for the same keys in the same order "
            "on all workers, or for all keys of a step at once: pushpull([key, ...], [value, ...])")

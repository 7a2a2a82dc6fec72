"""c10d's works: operations that are pending or have ended."""
import threading
import time
import warnings
from typing import Any, Callable, List, Optional, Set

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Work as C10dWork
from torch.futures import Future

from warren.collectives import Handle
from warren.torch._tensors import Staging

#: Up to PyTorch 2.6, C++ callers keep only the C++ part of a work alive. Its Python part is kept here until they have waited for the work,
#: and in `_waited` until the same thread has waited for another one: DistributedDataParallel calls `get_future` after `wait`.
_of_callers_in_cpp: Optional[Set[Any]] = None if hasattr(dist.AllreduceOptions, "asyncOp") else set()
_waited = threading.local()


def keep(work: Any) -> None:
    if _of_callers_in_cpp is not None:
        _of_callers_in_cpp.add(work)


def let_go(work: Any) -> None:
    if _of_callers_in_cpp is not None:
        _of_callers_in_cpp.discard(work)
        _waited.last = work


class Callbacks:
    """Detects callbacks of a group's futures that start operations in an order that may differ between ranks. Thread-safe."""

    _here = threading.local()

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._lock = threading.Lock()
        self._num_in_flight = 0  #: futures that are not complete
        self._is_said = False

    def add(self, num_futures: int) -> None:
        with self._lock:
            self._num_in_flight += num_futures

    @staticmethod
    def complete(future: "Future[None]") -> None:
        """Completes the future; its callbacks run in this thread."""
        depth = getattr(Callbacks._here, "depth", 0)
        Callbacks._here.depth = depth + 1
        try:
            future.set_result(None)
        finally:
            Callbacks._here.depth = depth

    def look_at_call(self, name: str) -> None:
        """Warns once about a call inside a callback while other callbacks are pending."""
        if getattr(Callbacks._here, "depth", 0) == 0 or self._num_in_flight == 0 or self._is_said:
            return
        self._is_said = True
        warnings.warn(f"warren.torch: rank {self._rank} begins {name} inside a callback of a future while {self._num_in_flight} other "
                      "futures of the group are not complete. Their callbacks may run in another order on other ranks, and calls of "
                      "equal sizes would be confused. Put all gradients into one bucket (DistributedDataParallel with bucket_cap_mb), "
                      "or wait for each operation before the next one begins.", RuntimeWarning, stacklevel=4)


class BaseWork(C10dWork):  # type: ignore[misc]
    """The common part of c10d's works. Subclasses implement `wait`, `is_completed`, `exception` and `get_future`."""

    def __init__(self, result: List[Tensor]) -> None:
        super().__init__()
        self._result = result
        keep(self)

    def synchronize(self) -> None:
        self.wait()

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def result(self) -> List[Tensor]:
        return self._result


class Work(BaseWork):
    """A pending operation. Thread-safe."""

    def __init__(self, handle: "Handle[Any]", result: List[Tensor], staging: Staging, callbacks: Optional[Callbacks] = None) -> None:
        """`callbacks`: the Callbacks of the group, for operations that all ranks start in the same order."""
        super().__init__(result)
        self._handle, self._staging, self._callbacks = handle, staging, callbacks
        self._error: Optional[BaseException] = None
        self._ended: Optional["Future[None]"] = None
        self._future: Optional["Future[List[Tensor]]"] = None
        # Reentrant: the waiting thread may run the operation itself, and is then notified of its end.
        self._lock = threading.RLock()
        self._is_finished = self._is_told = False

    def _finish(self, wait: Callable[[], Any]) -> None:
        """Calls `wait`, and then copies the results back; records an error. Does nothing when called again."""
        with self._lock:
            if self._is_finished:
                return
            try:
                wait()
                if not self._is_finished:
                    self._staging.copy_back()
            except Exception as error:  # pylint: disable=broad-except
                self._error = self._error or error
            self._is_finished = True

    def wait(self, timeout: Any = None) -> bool:  # pylint: disable=arguments-differ
        """Waits until the operation has ended. Raises RuntimeError if it failed, or has not ended within `timeout`."""
        if not self._is_finished:
            if timeout is not None and timeout.total_seconds() > 0:
                _poll(self._handle.done, timeout.total_seconds())
            self._finish(self._handle.wait)
        self._tell()
        let_go(self)  # after the callbacks, which may wait for other works
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether the operation has failed, or its results are in the tensors."""
        if not self._is_finished and self._handle.done():
            self._finish(self._handle.wait)
        return self._is_finished

    def exception(self) -> Optional[BaseException]:
        return self._error if self.is_completed() else None

    def get_future(self) -> "Future[List[Tensor]]":
        with self._lock:
            if self._future is not None:
                return self._future
            # An error set by `set_exception` is visible in Python only; one raised in `then` is visible in C++, too.
            self._ended = Future()
            self._future = self._ended.then(self._value)
        if self._callbacks is not None:
            self._callbacks.add(1)
        if self.is_completed():
            self._tell()
            return self._future
        try:
            self._handle.when_done(self._when_done)
        except ValueError:  # `wait` was called on the handle in the meantime
            self._finish(self._handle.wait)
            self._tell()
        return self._future

    def _when_done(self, error: Optional[str]) -> None:
        def ended() -> None:
            if error is not None:
                raise RuntimeError(error)

        self._finish(ended)
        self._tell()

    def _value(self, _: Any) -> List[Tensor]:
        if self._error is not None:
            raise self._error
        return self._result

    def _tell(self) -> None:
        """Completes the future, if there is one and it is not complete yet."""
        with self._lock:
            if self._ended is None or self._is_told:
                return
            self._is_told = True
        if self._callbacks is not None:
            self._callbacks.add(-1)
        Callbacks.complete(self._ended)
        let_go(self)


class Receive(Work):
    """A receive, which also provides the sender's rank."""

    def __init__(self, handle: "Handle[Any]", result: List[Tensor], staging: Staging, source: Callable[[], int]) -> None:
        super().__init__(handle, result, staging)
        self._source = source

    def source_rank(self) -> int:
        return self._source()

    _source_rank = source_rank


class Done(BaseWork):
    """An operation that ended before the caller received this work."""

    def wait(self, timeout: Any = None) -> bool:  # pylint: disable=unused-argument
        let_go(self)
        return True

    def is_completed(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def get_future(self) -> "Future[List[Tensor]]":
        future: "Future[List[Tensor]]" = Future()
        future.set_result(self._result)
        let_go(self)
        return future


class Several(BaseWork):
    """Several operations that are waited for together."""

    def __init__(self, works: List[C10dWork], result: List[Tensor]) -> None:
        super().__init__(result)
        self._works = works

    def wait(self, timeout: Any = None) -> bool:
        try:
            for work in self._works:
                work.wait(timeout)
        finally:
            let_go(self)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def exception(self) -> Optional[BaseException]:
        return next((error for error in (work.exception() for work in self._works) if error is not None), None)

    def get_future(self) -> "Future[List[Tensor]]":
        def end(_: Any) -> List[Tensor]:
            self.wait()
            return self._result

        return torch.futures.collect_all([work.get_future() for work in self._works]).then(end)


def _poll(condition: Callable[[], bool], seconds: float) -> None:
    """Waits for the condition. Raises RuntimeError if it is still false after `seconds`."""
    end, pause = time.monotonic() + seconds, 20e-6
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"the operation has not ended within {seconds} s")
        time.sleep(pause)
        pause = min(2 * pause, 1e-3)

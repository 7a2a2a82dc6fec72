"""Admits a worker that uses XGBoost's own protocol to a job with a token. Since that protocol cannot prove the token, the worker's process
proves it to the tracker over a separate connection and registers a ticket, which the worker then carries in its task id (wire/vouch.h)."""
import contextlib
import ctypes
import os
import secrets
from typing import Any, Iterator, Optional

from warren._engine import native as _native
from warren._engine import sealed as _sealed

_TICKET_BYTES = 16


def task_id_of(task_id: str, uri: str, port: int) -> str:
    """Returns the task id with which a worker of this process may join the job at this tracker, once. Returns `task_id` unchanged if the
    process has no token, if the environment names another tracker, or if Warren's engine is preloaded, which proves the token itself. Raises
    RuntimeError if the tracker cannot be reached, or rejects the token."""
    named = os.environ.get("DMLC_TRACKER_URI", ""), os.environ.get("DMLC_TRACKER_PORT", "")
    if _sealed.token() is None or named not in (("", ""), (uri, str(port))) or _engine_is_preloaded():
        return task_id
    ticket = secrets.token_urlsafe(_TICKET_BYTES)
    library = _native.library("librabit.so")
    library.WarrenVouch.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p]
    library.WarrenGetLastError.restype = ctypes.c_char_p
    if library.WarrenVouch(uri.encode(), port, task_id.encode(), ticket.encode()) != 0:
        raise RuntimeError(library.WarrenGetLastError().decode(errors="replace"))
    return f"{task_id}#{ticket}"


def _engine_is_preloaded() -> bool:
    """Whether XGBoost before 2.1 joins through Warren's engine, which proves the token itself."""
    return "librabit_xgboost" in os.environ.get("LD_PRELOAD", "") and os.environ.get("WARREN_XGBOOST_ENGINE") != "own"


_joins_quietly = False


@contextlib.contextmanager
def joining_quietly() -> Iterator[None]:
    """Within the block, joining does not print XGBoost's line "Task 0 got rank 0": a program that trains in hundreds of jobs would print
    hundreds of them."""
    global _joins_quietly  # pylint: disable=global-statement
    before, _joins_quietly = _joins_quietly, True
    try:
        yield
    finally:
        _joins_quietly = before


@contextlib.contextmanager
def hidden_in_log(library: Any, joined_by: str, task_id: str) -> Iterator[None]:
    """XGBoost logs the task id when it joins. Within the block, its log lines show `task_id` instead of `joined_by`. `library` is XGBoost's C
    library; its log lines are printed by Python on this thread."""
    own: Optional[Any] = getattr(library, "callback", None)
    if own is None or (joined_by == task_id and not _joins_quietly):
        yield
        return

    def show(line: bytes) -> None:
        if _joins_quietly and b" got rank " in line:
            return
        print(line.decode(errors="replace").replace(joined_by, task_id))

    callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(show)
    library.XGBRegisterLogCallback(callback)
    try:
        yield
    finally:
        library.XGBRegisterLogCallback(own)

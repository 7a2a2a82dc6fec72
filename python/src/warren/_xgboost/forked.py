"""XGBoost in a process forked from a worker: the copy of the worker's communicator does not work there, since the threads that serve it are
not copied, and a collective call would wait forever. XGBoost must not destroy the copy either: it would report to the tracker that the
worker has left, or crash."""
import atexit
import contextlib
import functools
import os
import sys
from typing import Any, Dict, NoReturn, Optional, Tuple

import xgboost as xgb

from warren._launch import rank as _rank
from warren._xgboost.versions import collective

#: The classes and their methods that make collective calls.
_METHODS: Dict[str, Tuple[str, ...]] = {
    "DMatrix": ("__init__",), "QuantileDMatrix": ("__init__",), "ExtMemQuantileDMatrix": ("__init__",), "DeviceQuantileDMatrix": ("__init__",),
    "Booster": ("update", "boost", "eval_set")}
#: The functions of xgboost.collective, or of xgboost.rabit, that do.
_FUNCTIONS = ("init", "finalize", "allreduce", "broadcast", "signal_error")
_registered = False
_code = 0  # the exit code of the forked process, as far as it is known


def refuse_in_children() -> None:
    """Makes collective calls raise RuntimeError in all processes that are forked from this one while the forking thread is in the job."""
    global _registered  # pylint: disable=global-statement
    if not _registered:
        os.register_at_fork(after_in_child=_refuse)
        _registered = True


def _refuse() -> None:
    if not _is_in_parents_job():
        return
    for name, methods in _METHODS.items():
        if name in vars(xgb):
            for method in methods:
                _wrap(getattr(xgb, name), method)
    for name in _FUNCTIONS:
        _wrap(collective(), name)
    atexit.register(_end)
    own_exit = sys.exit

    @functools.wraps(own_exit)
    def noting(code: Any = None) -> NoReturn:
        note_end(SystemExit(code))
        own_exit(code)

    sys.exit = noting


def note_end(error: Optional[BaseException]) -> None:
    """To be called in a forked process with the exception that leaves the worker's block: the interpreter does not tell _end the exit code."""
    global _code  # pylint: disable=global-statement
    if isinstance(error, SystemExit):
        _code = 0 if error.code is None else error.code & 0xff if isinstance(error.code, int) else 1


def _end() -> None:
    """Ends the forked process at exit as multiprocessing ends its own: without destroying XGBoost's objects."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
    os._exit(1 if hasattr(sys, "last_type") else _code)  # pylint: disable=protected-access


def _is_in_parents_job() -> bool:
    """Whether this process has been forked from a worker, and this thread has the copy of its communicator. Other threads are not part of
    any job."""
    return _rank.is_forked() and int(collective().get_world_size()) > 1


def _wrap(owner: Any, name: str) -> None:
    own: Any = getattr(owner, name, None)
    if own is None:
        return
    what = owner.__name__ if name == "__init__" else f"{owner.__name__}.{name}"

    @functools.wraps(own)
    def refusing(*arguments: Any, **named: Any) -> Any:
        if _is_in_parents_job():
            raise RuntimeError(f"{what}: this process was forked from a worker, and XGBoost cannot communicate in it: to train or to make a "
                               "matrix, start it with multiprocessing's \"spawn\" method; for predictions, inplace_predict works here")
        return own(*arguments, **named)

    setattr(owner, name, refusing)

"""Lets the rank that caused an error report it before the other ranks report that they cannot join or leave the job."""
import atexit
import contextlib
import os
import re
import sys
import threading
import time
from typing import Callable, Iterator, List

from warren._launch import membership as _membership

#: The time for which a rank that could not leave waits before it raises its error: long enough for the rank in another call to fail first,
#: and for the launcher to stop this rank.
_OTHERS_FIRST_S = 5.0
#: The engine's message if this rank leaves while another one makes a call.
_IN_ANOTHER_CALL = re.compile(r"calls barrier .*where rank \d+ calls")
#: The engine's message if another rank has had an error.
_GAVE_UP = "gave up after an error"
#: The time for which a rank waits before it raises the error that another rank was lost while the ranks joined the job.
_LOST_FIRST_S = 2.0
#: The engine's messages if another rank closes its connections.
_LOST = re.compile(r"lost rank \d+|rank \d+ was lost|rank \d+, on the same host, has ended before")
#: The call that leaves the job, at most one, while it is postponed.
_postponed: List[Callable[[], None]] = []


def is_after_error() -> bool:
    """Whether an exception is being handled or ends a block, as in `finally: finalize()`, in the main thread, whose exceptions end the
    program. sys.exit without a failure is no error."""
    error = sys.exc_info()[1]
    if error is None or isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code):
        return False
    return threading.current_thread() is threading.main_thread()


def postpone_after_error(leave: Callable[[], None]) -> bool:
    """Returns whether `leave` must wait, because `is_after_error`: the call that leaves is a barrier, which the other ranks would report in
    place of this rank's exception. If the program survives the exception, `leave` is called before the process joins a job again, or at
    exit."""
    if not is_after_error():
        return False
    if not _postponed:
        _postponed.append(leave)
        atexit.register(_leave_at_exit, os.getpid())
    return True


def _leave_at_exit(process: int) -> None:
    if process == os.getpid() and not hasattr(sys, "last_type"):
        for leave in _postponed[:]:
            leave()


def leave_postponed() -> None:
    """Leaves the job if that was postponed; to be called before the process joins a job again. Errors are ignored: the job is over for this
    process in any case, as when an error of the engine postponed it."""
    for leave in _postponed[:]:
        with contextlib.suppress(RuntimeError):
            leave()


def forget_postponed() -> None:
    """To be called when the process leaves the job."""
    _postponed.clear()
    atexit.unregister(_leave_at_exit)


@contextlib.contextmanager
def lost_reports_first() -> Iterator[None]:
    """Wraps the call that joins the job. A rank in which it fails, as for a wrong setting, closes its connections before it reports why. If
    the launcher stopped the job because of another rank's error, that a rank was lost, the reason might never be seen. So this error is
    raised after a pause; in an elastic job, which goes on without lost ranks, immediately."""
    try:
        yield
    except RuntimeError as error:
        if _LOST.search(str(error)) and not _membership.is_elastic():
            time.sleep(_LOST_FIRST_S)
        raise


@contextlib.contextmanager
def others_report_first() -> Iterator[None]:
    """Wraps the call that leaves the job, which is a barrier. If it fails because another rank makes a call that this rank does not make
    (`if rank == 0: model.eval(...)`), the other rank's error should be reported first, since its traceback shows the call; the launcher
    then stops this rank. So this rank's error is raised after a pause, which is longer if the call fails because another rank gave up after
    an error. Other errors are raised immediately."""
    forget_postponed()
    try:
        yield
    except RuntimeError as error:
        if _IN_ANOTHER_CALL.search(str(error)):
            time.sleep(_OTHERS_FIRST_S)
        elif _GAVE_UP in str(error):  # the failed rank may itself be in the pause above
            time.sleep(2 * _OTHERS_FIRST_S)
        raise

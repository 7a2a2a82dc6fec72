"""Lets the rank that caused an error report it before the other ranks report that they cannot leave the job."""
import atexit
import contextlib
import os
import re
import sys
import threading
import time
from typing import Callable, Iterator, List

#: The time for which a rank that could not leave waits before it raises its error: long enough for the rank in another call to fail first,
#: and for the launcher to stop this rank.
_OTHERS_FIRST_S = 5.0
#: The engine's message if this rank leaves while another one makes a call.
_IN_ANOTHER_CALL = re.compile(r"calls barrier .*where rank \d+ calls")
#: The engine's message if another rank has had an error.
_GAVE_UP = "gave up after an error"
#: The call that leaves the job, at most one, while it is postponed.
_postponed: List[Callable[[], None]] = []


def is_after_error() -> bool:
    """Whether an exception is being handled or ends a block, as in `finally: finalize()`. sys.exit without a failure is no error."""
    error = sys.exc_info()[1]
    return error is not None and not isinstance(error, GeneratorExit) and not (isinstance(error, SystemExit) and not error.code)


def postpone_after_error(leave: Callable[[], None]) -> bool:
    """Returns whether `leave` must wait, because `is_after_error`: the call that leaves is a barrier, which the other ranks would report in
    place of this rank's exception. If the program survives the exception, `leave` is called before the process joins a job again, or at exit.
    Only the main thread's exceptions end the program."""
    if not is_after_error() or threading.current_thread() is not threading.main_thread():
        return False
    if not _postponed:
        _postponed.append(leave)
        atexit.register(_leave_at_exit, os.getpid())
    return True


def _leave_at_exit(process: int) -> None:
    if process == os.getpid() and not hasattr(sys, "last_type"):
        leave_postponed()


def leave_postponed() -> None:
    """Leaves the job if that was postponed; to be called before the process joins a job again."""
    for leave in _postponed[:]:
        leave()


def forget_postponed() -> None:
    """To be called when the process leaves the job."""
    _postponed.clear()
    atexit.unregister(_leave_at_exit)


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

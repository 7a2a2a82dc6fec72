"""Lets the rank that caused an error report it before the other ranks report that they cannot leave the job."""
import contextlib
import re
import time
from typing import Iterator

#: The time for which a rank that could not leave waits before it raises its error: long enough for the rank in another call to fail first,
#: and for the launcher to stop this rank.
_OTHERS_FIRST_S = 5.0
#: The engine's message if this rank leaves while another one makes a call.
_IN_ANOTHER_CALL = re.compile(r"calls barrier .*where rank \d+ calls")
#: The engine's message if another rank has had an error.
_GAVE_UP = "gave up after an error"


@contextlib.contextmanager
def others_report_first() -> Iterator[None]:
    """Wraps the call that leaves the job, which is a barrier. If it fails because another rank makes a call that this rank does not make
    (`if rank == 0: model.eval(...)`), the other rank's error should be reported first, since its traceback shows the call; the launcher
    then stops this rank. So this rank's error is raised after a pause, which is longer if the call fails because another rank gave up after
    an error. Other errors are raised immediately."""
    try:
        yield
    except RuntimeError as error:
        if _IN_ANOTHER_CALL.search(str(error)):
            time.sleep(_OTHERS_FIRST_S)
        elif _GAVE_UP in str(error):  # the failed rank may itself be in the pause above
            time.sleep(2 * _OTHERS_FIRST_S)
        raise

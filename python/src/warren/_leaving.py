"""Leaving a job."""
import contextlib
import re
import time
from typing import Iterator

#: How long a rank that could not leave is silent: longer than the one in another call takes to end by its error, and its launcher to stop
#: this one.
_OTHERS_FIRST_S = 5.0
#: The engine's words for it.
_IN_ANOTHER_CALL = re.compile(r"calls barrier .*where rank \d+ calls")
#: The engine's words where another rank has had an error.
_GAVE_UP = "gave up after an error"


@contextlib.contextmanager
def after_the_others() -> Iterator[None]:
    """For the call that leaves, a barrier. Where it fails since another rank makes a call that this one does not (`if rank == 0:
    model.eval(...)`), the error of that rank is to be reported first, whose traceback shows the call: the launcher then stops this rank. So
    the error is raised after a pause. Other errors are raised at once."""
    try:
        yield
    except RuntimeError as error:
        if _IN_ANOTHER_CALL.search(str(error)):
            time.sleep(_OTHERS_FIRST_S)
        elif _GAVE_UP in str(error):  # that rank may be in this pause
            time.sleep(2 * _OTHERS_FIRST_S)
        raise

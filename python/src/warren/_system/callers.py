"""Which line of the user's program a warning refers to."""
import sys

_NOT_THE_USERS = ("warren", "xgboost", "lightgbm", "sklearn", "contextlib", "functools")


def stacklevel() -> int:
    """The `stacklevel` with which warnings.warn, called in the same function, refers to the nearest line of the user's program."""
    level, frame = 1, sys._getframe(1)  # pylint: disable=protected-access
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _NOT_THE_USERS:
        level, frame = level + 1, frame.f_back
    return level

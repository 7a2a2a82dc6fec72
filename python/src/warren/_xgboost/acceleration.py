"""Warren's engine in the communicators of XGBoost 2.1 and later. The communication of earlier versions can be replaced only by preloading a
library, so there is nothing to turn on for them."""
import contextlib
from typing import Any, Iterator, Mapping, Optional

import xgboost as xgb

from warren._xgboost.versions import VERSION

if hasattr(xgb, "collective"):
    from warren._xgboost import engine as _engine

_IS_POSSIBLE = VERSION >= (2, 1)


def begin(arguments: Mapping[str, Any]) -> None:
    """Turns on the engine for the communicator that this thread has joined with these arguments. XGBoost must be 2.1 or later."""
    _engine.begin(arguments.get("dmlc_timeout", arguments.get("DMLC_TIMEOUT")))


def end(failed: bool) -> None:
    """Turns off the engine, before the communicator is finalized."""
    if _IS_POSSIBLE:
        _engine.end(failed)


def is_on() -> bool:
    """Whether the engine runs the collectives of this thread's communicator."""
    return _IS_POSSIBLE and _engine.serves()


@contextlib.contextmanager
def accelerated(timeout: Optional[float]) -> Iterator[None]:
    """See warren.xgboost.accelerate."""
    if not _IS_POSSIBLE:
        yield
        return
    with _engine.served(timeout):
        yield


def accelerate_all() -> None:
    """See warren.xgboost.accelerate_all."""
    if not _IS_POSSIBLE or hasattr(xgb.collective.CommunicatorContext, "_warren_contexts"):
        return
    context = xgb.collective.CommunicatorContext
    enter, leave = context.__enter__, context.__exit__

    def enter_accelerated(self: Any) -> Any:
        arguments = enter(self)
        try:
            begin(self.args)
        except BaseException as error:
            leave(self, type(error), error, error.__traceback__)
            raise
        return arguments

    def leave_accelerated(self: Any, *error: Any) -> Any:
        try:
            end(failed=bool(error) and error[0] is not None)
        finally:
            result = leave(self, *error)
        return result

    context.__enter__, context.__exit__, context._warren_contexts = enter_accelerated, leave_accelerated, True

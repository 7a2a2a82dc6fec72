"""Joins and leaves the generations of an elastic job, for warren.lightgbm."""
import contextlib
import os
from typing import Any, Callable, Iterator, NoReturn, Optional

import lightgbm

from warren import rabit
from warren._elastic import session as _session
from warren._frameworks.replacing import replaced
from warren._launch.membership import Generation, is_elastic, set_environment
from warren._launch.shared_tracker import entered_again
from warren._lightgbm.hooks import modules_of_train
from warren._lightgbm.network import over_the_job
from warren.data import _peers

#: LightGBM's network, while this process is in a generation.
_network = contextlib.ExitStack()

_NAME = "LightGBM"


def session() -> Optional[_session.Session]:
    """The session of this process, if it has joined an elastic job. Raises RuntimeError if it trains there with XGBoost."""
    return _session.current(_NAME)


def is_needed() -> bool:
    """Whether this process is to join an elastic job."""
    return is_elastic() and os.environ.get("DMLC_TRACKER_URI", "NULL") not in ("", "NULL")


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Joins the job of this process, for the first time or again, and leaves it at the end."""
    _session.begin(_session.Library(_NAME, lightgbm.basic.LightGBMError, _join, _leave))
    failed = True
    try:
        yield
        failed = False
    except SystemExit as error:
        failed = bool(error.code)
        raise
    finally:
        with _session.ended(_peers.current, failed) as leaves:
            if failed:
                # The launcher detects the failure when this process ends, and the other workers when its connections close.
                _network.close()
            elif leaves:
                _leave(False)


def refuse(what: str) -> NoReturn:
    """Raises RuntimeError: `what` cannot continue when a worker is lost."""
    raise RuntimeError(f"{what}: this job may lose workers (--num-workers MIN:MAX), and only warren.lightgbm.train(..., elastic=True) goes on "
                       "without them: use it, or start this program with a fixed number, --num-workers N")


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Within the block, lightgbm.train, lightgbm.cv, the estimators, and Boosters with training rows raise RuntimeError in this thread."""
    def making(inner: Callable[..., None]) -> Callable[..., None]:
        def make(self: Any, params: Any = None, train_set: Any = None, *more: Any, **named: Any) -> None:
            if train_set is not None and not getattr(train_set, "warren_is_elastic", False):
                refuse("lightgbm.Booster")
            inner(self, params, train_set, *more, **named)
        return make

    with replaced("train", lambda _: lambda *_, **__: refuse("lightgbm.train"), *modules_of_train()), \
            replaced("__init__", making, lightgbm.Booster):
        yield


def _join(generation: Generation) -> None:
    os.environ["DMLC_NUM_WORKER"] = str(generation.size)
    entered_again()
    rabit.init([f"DMLC_TASK_ID={os.environ.get('DMLC_TASK_ID', '')}@{generation.number}", f"DMLC_NUM_WORKER={generation.size}"])
    set_environment(rabit.get_rank(), generation.size)
    _network.enter_context(over_the_job())


def _leave(failed: bool) -> None:
    """Leaves the generation; if it has `failed`, without the other members."""
    _network.close()
    if failed:
        rabit.abandon()
    else:
        rabit.leave()

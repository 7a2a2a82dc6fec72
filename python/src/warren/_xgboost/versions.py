"""The version of XGBoost, and what depends on it: classes, and the module of its communicator."""
import warnings
from typing import Any, Optional

import xgboost as xgb

from warren._system import callers as _callers
from warren.data import _peers

#: The library's name in warren._elastic.session; some of its error messages begin with it.
LIBRARY = "XGBoost"
#: The installed XGBoost's version: (3, 0) for 3.0.5.
VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])
#: The matrices of bins, which have quantile cuts once they are made. Computing the cuts of other matrices is expensive, and is a collective
#: call.
WITH_CUTS = tuple(getattr(xgb, name) for name in ("QuantileDMatrix", "ExtMemQuantileDMatrix") if hasattr(xgb, name))
#: The base class of callbacks; `object` before 1.3, which has none.
TrainingCallback: Any = getattr(xgb.callback, "TrainingCallback", object)


def collective() -> Any:
    """The module with rank, world size, broadcast and allreduce: `collective`, or `rabit` before 1.7."""
    return xgb.collective if VERSION >= (1, 7) else xgb.rabit


def peers_of_job() -> _peers.Peers:
    """The ranks of XGBoost's communicator. Raises RuntimeError if this process is one of several in a job and has not joined it with
    XGBoost."""
    peers = _peers.over_xgboost(collective())
    if peers.world == 1:
        _peers.current()
        require_joined()
    return peers


def _other_job() -> Optional[_peers.Peers]:
    """The ranks of the job that this process has joined through another library alone; None if XGBoost has joined it, or if there is none."""
    return _peers.of_other_libraries() if int(collective().get_world_size()) == 1 else None


def _words_on(found: _peers.Peers) -> str:
    return (f"this process is rank {found.rank} of {found.world} of a job that it has not joined with XGBoost, which would train on this worker's rows "
            "alone, without the others: train inside `with warren.xgboost.communicator(): ...`")


def require_joined() -> None:
    """Raises RuntimeError if this process has joined a job of several workers through another library alone: it reads its share of the rows
    there, and XGBoost would train on this share alone."""
    found = _other_job()
    if found is not None:
        raise RuntimeError(_words_on(found))


def warn_unless_joined() -> None:
    """Warns where require_joined raises: the rows may also be for something else than training."""
    found = _other_job()
    if found is not None:
        warnings.warn(_words_on(found), stacklevel=_callers.stacklevel())

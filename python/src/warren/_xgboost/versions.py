"""The version of XGBoost, and the module of its communicator, whose name depends on the version."""
from typing import Any

import xgboost as xgb

from warren.data import _peers

#: The library's name in warren._elastic.session; some of its error messages begin with it.
LIBRARY = "XGBoost"
#: The installed XGBoost's version: (3, 0) for 3.0.5.
VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])


def collective() -> Any:
    """The module with rank, world size, broadcast and allreduce: `collective`, or `rabit` before 1.7."""
    return xgb.collective if VERSION >= (1, 7) else xgb.rabit


def peers_of_job() -> _peers.Peers:
    """The ranks of XGBoost's communicator. Raises RuntimeError if this process is one of several in a job and has not joined it."""
    peers = _peers.over_xgboost(collective())
    if peers.world == 1:
        _peers.current()
    return peers

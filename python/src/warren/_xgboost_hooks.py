"""What warren.xgboost adds to a training by this thread while it is in a job, through whichever function of XGBoost it is begun."""
import contextlib
from typing import Any, Callable, Iterator

import numpy as np
import xgboost as xgb

from warren import _same_rows, _xgboost_digest
from warren._replacing import replaced
from warren.data import _peers

_INSTEAD = ("give each worker rows of its own, by warren.xgboost.load_dmatrix for files, or by warren.data.scatter for a DataFrame "
            "that one worker has")


def _word(matrix: Any) -> int:
    """A digest of a matrix's labels and the like, and of some of its rows; the order of rows matters."""
    pieces = [matrix.num_row(), matrix.num_col(), *(getattr(matrix, "get_" + name)() for name in ("label", "weight", "base_margin"))]
    rows = _xgboost_digest.some_rows(matrix, _same_rows.places(matrix.num_row()))
    return _same_rows.digest(*map(np.asarray, pieces), *((rows.indptr, rows.indices, rows.data) if rows is not None else ()))


def _collective() -> Any:
    return xgb.collective if hasattr(xgb, "collective") else xgb.rabit


def _look(matrix: Any) -> None:
    if _collective().get_world_size() > 1:
        peers = _peers.current()
        is_share = getattr(matrix, "warren_is_share", hasattr(matrix, "warren_categories"))
        _same_rows.look(peers.greatest, peers.rank, peers.world, matrix.num_row(), is_share, lambda: _word(matrix), _INSTEAD)


def _noticing(update: Callable[..., None]) -> Callable[..., None]:
    """Booster.update, which all ranks call for a round, and which makes collective calls itself. Whether ranks compare their rows must
    not differ between them: the number of the round decides, not the matrix, which may be another object in each round of one rank alone.
    They do it after the round: before its first round a model that one rank asks for something makes a collective call, which meets that
    of the others' update."""
    def noticing(self: Any, dtrain: Any, iteration: int, *more: Any, **named: Any) -> None:
        update(self, dtrain, iteration, *more, **named)
        if iteration == 0:
            _look(dtrain)
    return noticing


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """From here to the end of the block, for this thread: workers that all train on the same rows are noticed."""
    with replaced("update", _noticing, xgb.Booster):
        yield

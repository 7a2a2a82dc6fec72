"""What warren.xgboost adds to a training by this thread while it is in a job, through whichever function of XGBoost it is begun."""
import contextlib
import inspect
import sys
from typing import Any, Callable, Iterator, Optional

import numpy as np
import xgboost as xgb

from warren import _reporting, _same_rows, _xgboost_digest
from warren._replacing import replaced
from warren.data import _peers

_INSTEAD = ("give each worker rows of its own, by warren.xgboost.load_dmatrix for files, or by warren.data.scatter for a DataFrame "
            "that one worker has")


def _word(matrix: Any, model: "xgb.Booster") -> Optional[int]:
    """A digest of a matrix's labels and the like, and of some of its rows; the order of rows matters. Where rows cannot be taken out, what
    the model says of them after its first round stands for the features (XGBoost has that already). None where too little is seen."""
    labels = matrix.get_label()
    pieces = [matrix.num_row(), matrix.num_col(), labels, matrix.get_weight(), matrix.get_base_margin()]
    rows = _xgboost_digest.some_rows(matrix, _same_rows.places(matrix.num_row()))
    if rows is not None:
        pieces += [rows.indptr, rows.indices, rows.data]
    elif not _same_rows.labels_tell(labels):
        said = model.predict(matrix, output_margin=True)
        if len(np.unique(said)) <= max(1, len(np.unique(labels))):
            return None
        pieces.append(said)
    return _same_rows.digest(*map(np.asarray, pieces))


def _collective() -> Any:
    return xgb.collective if hasattr(xgb, "collective") else xgb.rabit


def _look(matrix: Any, model: "xgb.Booster") -> None:
    if _collective().get_world_size() > 1:
        peers = _peers.current()
        is_share = getattr(matrix, "warren_is_share", hasattr(matrix, "warren_categories"))
        _same_rows.look(peers.greatest, peers.rank, peers.world, matrix.num_row(), is_share, lambda: _word(matrix, model), _INSTEAD)


def _noticing(update: Callable[..., None]) -> Callable[..., None]:
    """Booster.update, which all ranks call for a round, and which makes collective calls itself. Whether ranks compare their rows must
    not differ between them: the number of the round decides, not the matrix, which may be another object in each round of one rank alone.
    They do it after the round: before its first round a model that one rank asks for something makes a collective call, which meets that
    of the others' update."""
    def noticing(self: Any, dtrain: Any, iteration: int, *more: Any, **named: Any) -> None:
        update(self, dtrain, iteration, *more, **named)
        if iteration == 0:
            _look(dtrain, self)
    return noticing


_HAS_CALLBACKS = hasattr(xgb.callback, "TrainingCallback")


class Progress(xgb.callback.TrainingCallback if _HAS_CALLBACKS else object):  # type: ignore[misc]
    """Rank 0 tells whoever watches the job which of how many rounds has ended, so that the time left can be computed."""

    def __init__(self, rounds: int, begun: int = 0) -> None:
        """`begun`: rounds that were there before this training; `rounds` counts them, too."""
        super().__init__()
        self._rounds, self._begun = rounds, begun

    def after_iteration(self, model: "xgb.Booster", epoch: int, evals_log: Any) -> bool:
        """Never stops the training."""
        del model, evals_log
        if _collective().get_rank() == 0:
            _reporting.progress(self._begun + epoch + 1, self._rounds, {})
        return False


def _telling(train: Callable[..., Any]) -> Callable[..., Any]:
    """xgboost.train, which knows the number of rounds."""
    signature = inspect.signature(train)

    def telling(*arguments: Any, **named: Any) -> Any:
        try:
            given = signature.bind(*arguments, **named)
        except TypeError:
            return train(*arguments, **named)  # which says what is wrong
        callbacks = list(given.arguments.get("callbacks") or ())
        if not any(isinstance(one, Progress) for one in callbacks):
            rounds = given.arguments.get("num_boost_round", signature.parameters["num_boost_round"].default)
            given.arguments["callbacks"] = [*callbacks, Progress(int(rounds))]
        return train(*given.args, **given.kwargs)
    return telling


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """From here to the end of the block, for this thread: workers that all train on the same rows are noticed, and the number of rounds
    is reported to whoever watches the job (not by an xgboost.train that a program has imported by this name before)."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced("update", _noticing, xgb.Booster))
        if _reporting.wanted() and _HAS_CALLBACKS:
            estimators = sys.modules.get("xgboost.sklearn")
            places = [one for one in (xgb, xgb.training, estimators) if getattr(one, "train", None) is xgb.train]
            stack.enter_context(replaced("train", _telling, *places))
        yield

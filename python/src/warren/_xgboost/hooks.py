"""Additions to all training by a thread that is in a job, whichever XGBoost function starts the training."""
import contextlib
import sys
from typing import Any, Callable, ContextManager, Dict, Iterator, Mapping, Optional

import numpy as np
import xgboost as xgb

from warren._frameworks import same_rows as _same_rows
from warren._frameworks.replacing import alone, replaced, warns_once
from warren._rounds import training as _rounds
from warren._xgboost import digest as _digest
from warren._xgboost import same_on_ranks as _same_on_ranks
from warren._xgboost.versions import WITH_CUTS, TrainingCallback, collective
from warren.data import _peers

_ADVICE = ("give each worker its own rows, with warren.xgboost.load_dmatrix for files, or with warren.data.scatter for a DataFrame "
           "that one worker has")


def _digest_of_rows(matrix: Any, model: "xgb.Booster") -> Optional[int]:
    """Returns a digest of a matrix's labels and other fields, and of some of its rows; the order of rows matters. If rows cannot be
    extracted and the labels are not enough to tell data sets apart, the model's predictions after its first round take the place of the
    rows (XGBoost has computed them already). None if too little of the matrix is accessible."""
    labels = matrix.get_label()
    pieces = [matrix.num_row(), matrix.num_col(), labels, matrix.get_weight(), matrix.get_base_margin()]
    rows = _digest.some_rows(matrix, _same_rows.sampled_rows(matrix.num_row()))
    if rows is not None:
        pieces += [rows.indptr, rows.indices, rows.data]
    elif not _same_rows.labels_suffice(labels):
        said = model.predict(matrix, output_margin=True)
        if len(np.unique(said)) <= max(1, len(np.unique(labels))):
            return None
        pieces.append(said)
    return _same_rows.digest(*map(np.asarray, pieces))


def _compare(matrix: Any, model: "xgb.Booster") -> None:
    if collective().get_world_size() > 1:
        peers = _peers.current()
        is_share = getattr(matrix, "warren_is_share", hasattr(matrix, "warren_categories"))
        is_same = _same_rows.check(peers.greatest, peers.rank, peers.world, matrix.num_row(), is_share,
                                   lambda: _digest_of_rows(matrix, model), _ADVICE, lambda: _same_on_ranks.digest(matrix, model))
        if not is_same:
            _same_on_ranks.require(matrix, model, peers)


def _comparing(update: Callable[..., None]) -> Callable[..., None]:
    """Wraps Booster.update to compare the ranks' rows and models after the first round. All ranks call `update` for each round, and
    `update` makes collective calls itself, so all have to agree on whether they compare. The number of the round decides, not the
    matrix, which may be a new object in each round on one rank only. The comparison follows the round: before the first round, a query
    of the model makes a collective call, which would be matched with the other ranks' update."""
    def comparing(self: Any, dtrain: Any, iteration: int, *more: Any, **named: Any) -> None:
        update(self, dtrain, iteration, *more, **named)
        if iteration == 0:
            _name_features(dtrain, self)
            _compare(dtrain, self)
    return comparing


def _name_features(matrix: Any, model: "xgb.Booster") -> None:
    """Copies the names and types of features to the model from a matrix without rows, which XGBoost does not do: this worker may save the
    model."""
    if matrix.num_row() == 0:
        for name in ("feature_names", "feature_types"):
            if getattr(model, name) is None and getattr(matrix, name) is not None:
                setattr(model, name, getattr(matrix, name))


#: This process's rank and the world size.
PLACE = _rounds.Place(lambda: int(collective().get_rank()), lambda: int(collective().get_world_size()))


class Progress(TrainingCallback):  # type: ignore[misc]
    """See warren.xgboost.ReportRounds."""

    def __init__(self, rounds: int, begun: int = 0) -> None:
        """`begun` is the number of rounds that existed before this training; `rounds` includes them."""
        super().__init__()
        self._rounds, self._begun = rounds, begun
        self._own: Optional[_rounds.Training] = None

    def before_training(self, model: "xgb.Booster") -> "xgb.Booster":
        """Begins a report, unless this thread's training is already being reported."""
        if _rounds.current() is None:
            self._own = _rounds.begun("xgboost", {}, self._rounds, PLACE, self._begun)
        return model

    def after_iteration(self, model: "xgb.Booster", epoch: int, evals_log: Any) -> bool:
        """Reports the round. Never stops the training."""
        del model
        training = self._own or _rounds.current()
        if training is not None:
            number = self._begun + epoch + 1
            known = max((len(values) for of_one in evals_log.values() for values in of_one.values()), default=1)
            training.round(number, _metrics(evals_log, 0),
                           lambda: ((number - back, _metrics(evals_log, back)) for back in range(known - 1, 0, -1)))
        return False

    def after_training(self, model: "xgb.Booster") -> "xgb.Booster":
        """Ends the report that before_training began, if any."""
        own, self._own = self._own, None
        if own is not None:
            own.end(model)
        return model


def _metrics(evals_log: Mapping[str, Mapping[str, Any]], back: int) -> Dict[str, float]:
    """The values of a round, by their names in XGBoost's output. `back` counts from the last round."""
    return {f"{data}-{metric}": float(values[-1 - back]) for data, of_one in evals_log.items() for metric, values in of_one.items()
            if len(values) > back and isinstance(values[-1 - back], (int, float, np.number))}


def reporting_rounds() -> ContextManager[None]:
    """Within the block, training in this thread reports its rounds, except by an xgboost.train that the program imported by name earlier."""
    modules = [one for one in (xgb, xgb.training, sys.modules.get("xgboost.sklearn")) if TrainingCallback is not object and hasattr(one, "train")]
    return _rounds.reporting("xgboost", PLACE, modules, Progress, Progress)


@contextlib.contextmanager
def installed(workers: Callable[[], int]) -> Iterator[None]:
    """Within the block, for this thread: detects workers that all train on the same rows or that train different models, and reports the
    rounds of training. Training in another thread, which is not part of the job, causes a warning if `workers` returns more than 1."""
    elsewhere = warns_once(lambda _, dtrain, iteration, *more, **named: iteration == 0 and workers() > 1, lambda: alone("XGBoost", workers()))
    with contextlib.ExitStack() as stack:
        for kind in (xgb.DMatrix, *WITH_CUTS):
            stack.enter_context(replaced("__init__", _same_on_ranks.keeping_categories, kind))
        stack.enter_context(replaced("update", _comparing, xgb.Booster, elsewhere=elsewhere))
        stack.enter_context(reporting_rounds())
        yield

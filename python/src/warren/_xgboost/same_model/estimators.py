"""Makes XGBoost's scikit-learn estimators train the model of one process, for warren.xgboost.reproducible."""
import contextlib
from typing import Any, Callable, Dict, Iterator

import numpy as np

from warren._frameworks.replacing import replaced
from warren._frameworks.rows import split_arguments
from warren._xgboost import matrices as _matrices
from warren._xgboost import rows as _rows
from warren._xgboost.same_model import training as _training
from warren.data import _peers


@contextlib.contextmanager
def reproducible() -> Iterator[None]:
    """See warren.xgboost.reproducible."""
    _training.require_version()
    import xgboost.sklearn as estimators  # pylint: disable=import-outside-toplevel

    def creating(_: Callable[..., Any]) -> Callable[..., Any]:
        def create(self: Any, ref: Any, **given: Any) -> Any:
            _training.check(self.get_xgb_params())
            return _matrix({**given, "ref": ref, "max_bin": self.max_bin, "nthread": self.n_jobs})
        return create

    def training(_: Callable[..., Any]) -> Callable[..., Any]:
        def train(params: Dict[str, Any], dtrain: Any, num_boost_round: int = 10, *, evals: Any = None, **options: Any) -> Any:
            _training.check(params)
            return _training.train(params, dtrain, num_boost_round, list(evals or ()), False, options)
        return train

    def fitting(inner: Callable[..., Any]) -> Callable[..., Any]:
        def fit(self: Any, X: Any, y: Any, *more: Any, **named: Any) -> Any:  # pylint: disable=invalid-name
            _require_same_classes(y)
            return inner(self, X, y, *more, **named)
        return fit

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced("_create_dmatrix", creating, estimators.XGBModel))
        stack.enter_context(replaced("train", training, estimators))
        stack.enter_context(replaced("fit", fitting, estimators.XGBClassifier))
        yield


def _matrix(given: Dict[str, Any]) -> Any:
    """Makes a matrix of this worker's rows from the arguments of XGBoost's matrices."""
    rows, missing, fields, options = split_arguments(given)
    if "weight" in fields and "qid" in fields:
        raise ValueError(_training.WEIGHTS_OF_QUERIES)
    _rows.require_whole_queries(fields.get("qid"), _peers.current())
    return _matrices.of_rows(_rows.table(rows, missing=missing, **fields), _peers.current(), {**options, "reproducible": True})


def _require_same_classes(labels: Any) -> None:
    """Raises ValueError unless all workers have the same classes: XGBClassifier derives them from the labels of one worker. A collective
    call."""
    peers = _peers.current()
    ours = [repr(one) for one in np.unique(np.asarray(labels)).tolist()]
    for rank, theirs in enumerate(peers.allgather(ours)):
        if theirs != ours:
            here, there = (", ".join(one[:5]) + (", ..." if len(one) > 5 else "") or "no class" for one in (ours, theirs))
            raise ValueError(f"rank {peers.rank} has rows of {here}, and rank {rank} of {there}: XGBClassifier takes the classes that a worker "
                             "has, so all workers need rows of each; or number them yourself, and use warren.xgboost.train")

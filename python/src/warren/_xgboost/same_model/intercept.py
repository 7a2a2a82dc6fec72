"""The intercept (base_score) that one process would estimate from the labels and weights of all rows."""
import json
from typing import Any, Dict, Iterator, Mapping

import numpy as np
import xgboost as xgb

from warren._xgboost.same_model.alone import alone_on_root
from warren._xgboost.same_model.rows import OfAllRows
from warren.data._peers import Peers

#: Parameters that do not influence the intercept, and may not be valid for a matrix without features.
_OF_TREES = ("base_score", "booster", "tree_method", "updater", "process_type", "grow_policy", "max_depth", "max_leaves", "max_bin",
             "monotone_constraints", "interaction_constraints", "num_parallel_tree", "eval_metric", "colsample_bytree", "colsample_bylevel",
             "colsample_bynode", "subsample", "sampling_method", "rate_drop", "one_drop", "skip_drop", "sample_type", "normalize_type",
             "max_cat_to_onehot", "max_cat_threshold", "min_child_weight", "gamma", "min_split_loss", "eta", "learning_rate", "lambda",
             "reg_lambda", "alpha", "reg_alpha", "refresh_leaf", "max_cached_hist_node", "disable_default_eval_metric", "verbosity")


def of_objective(params: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the parameters except those for trees and metrics."""
    return {name: value for name, value in params.items() if name not in _OF_TREES}


def of_all_rows(params: Mapping[str, Any], matrix: Any, peers: Peers) -> str:
    """Returns the intercept as the text of a `base_score` parameter. If `base_score` is given, returns it, after XGBoost has checked that the
    labels fit the objective. A collective call. Raises XGBoost's errors on all workers."""
    rows = OfAllRows(matrix, peers)
    return str(peers.broadcast(alone_on_root(lambda: _estimated(params, rows.matrix()), peers), 0))


def _estimated(params: Mapping[str, Any], rows: Any) -> str:
    how: Dict[str, Any] = {**of_objective(params), "tree_method": "hist", "max_depth": 1, "disable_default_eval_metric": 1, "verbosity": 0}
    if params.get("base_score") is not None:
        xgb.train({**how, "base_score": params["base_score"]}, rows, 1)
        return str(params["base_score"])
    found = _base_score(xgb.train(how, rows, 1))
    # XGBoost before 3.1 may parse a number that it has printed as a neighboring one.
    for text in _texts(found):
        if _base_score(xgb.Booster({**how, "base_score": text}, [rows])) == found:
            return text
    raise RuntimeError(f"reproducible=True: found no text from which XGBoost {xgb.__version__} reads the intercept {found} that it has "
                       "estimated: give base_score")


def _base_score(model: "xgb.Booster") -> str:
    return str(json.loads(model.save_config())["learner"]["learner_model_param"]["base_score"])


def _texts(printed: str) -> Iterator[str]:
    """Yields the texts of numbers that are equal to the printed number, or so close that an inexact parser may read them as that number."""
    yield printed
    if printed.startswith("["):
        return
    value = np.float32(printed)
    for digits in range(7, 20):
        yield f"{float(value):.{digits}f}"
        yield f"{float(value):.{digits}e}"
    for step in range(1, 9):
        for towards in (-np.inf, np.inf):
            near = float(value)
            for _ in range(step):
                near = np.nextafter(near, towards) if step > 4 else float(np.nextafter(np.float32(near), np.float32(towards)))
            yield f"{near:.17f}"
            yield f"{near:.17e}"


def mark_as_estimated(model: "xgb.Booster") -> None:
    """Records in a trained model that its intercept was estimated. To be called after the last round."""
    model.set_param({"boost_from_average": "1"})


def is_needed(params: Mapping[str, Any], num_boost_round: int, options: Mapping[str, Any]) -> bool:
    """Whether XGBoost would estimate the intercept of this training."""
    return num_boost_round > 0 and params.get("base_score") is None and options.get("xgb_model") is None and options.get("obj") is None

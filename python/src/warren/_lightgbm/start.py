"""The score from which LightGBM's workers start.

Each worker computes a score from its own rows, and all workers use the mean of these scores (LightGBM's GlobalSyncUpByMean), which depends on
how the rows are divided. This module replaces it with the score that one process would compute from all rows, for the objectives whose score
is a function of the mean label (BoostFromScore in LightGBM's src/objective)."""
import ctypes
import functools
import re
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

import lightgbm
import numpy as np

from warren._engine import native as _native
from warren._system import callers as _callers

#: The smallest fraction of positive labels (LightGBM's kEpsilon).
_LEAST = 1e-15


def _logit(mean: float) -> float:
    share = min(max(mean, _LEAST), 1 - _LEAST)
    return float(np.log(share / (1 - share)))


def _log(mean: float) -> float:
    return float(np.log(mean)) if mean > 0 else float("-inf")


#: The scores as functions of the mean label, by LightGBM's names of the objectives.
_SCORES: Dict[str, Callable[[float], float]] = {
    **dict.fromkeys(("regression", "huber", "fair"), float), **dict.fromkeys(("poisson", "gamma", "tweedie"), _log),
    "cross_entropy": _logit, "cross_entropy_lambda": lambda mean: float(np.log(np.expm1(mean)))}


def _objective_of(booster: "lightgbm.Booster") -> Tuple[List[str], bool]:
    """Returns the words of the objective of a booster without trees, and whether the booster always starts from the average; otherwise it
    does so only if its first tree has no splits. The list is empty for a booster with trees, and for random forests."""
    text = booster.model_to_string()
    found = re.search(r"^objective=(.*)$", text, re.MULTILINE)
    words = found[1].split() if found and "\n[boosting: rf]\n" not in text and booster.num_trees() == 0 else []
    return words, "\n[boost_from_average: 1]\n" in text


@functools.lru_cache(maxsize=None)
def _engine() -> ctypes.CDLL:
    library = _native.library("librabit.so")
    library.WarrenLightGBMCorrect.argtypes = [ctypes.c_double] * 3
    return library


def from_all_rows(booster: "lightgbm.Booster", rows: "lightgbm.Dataset", summed: Callable[[List[float]], List[float]],
                  update: Callable[[], Any]) -> Any:
    """Calls `update`, the first update of `booster`, so that it starts from the score of all workers' rows, and returns its result. Has no
    effect on the score for objectives outside of _SCORES, or if the rows have initial scores. `summed` adds up lists over the workers. A
    collective call."""
    objective, starts = _objective_of(booster)
    score = _SCORES.get(objective[0]) if objective else None
    if score is None or rows.get_init_score() is not None:
        return update()
    labels = np.asarray(rows.get_label())
    if "sqrt" in objective:
        labels = np.sign(labels) * np.sqrt(np.abs(labels))
    labels = labels.astype(float)
    weights: Optional[Any] = rows.get_weight()
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, float)
    own, weight, size = map(float, (labels @ weights, weights.sum(), np.abs(labels) @ weights))
    total, total_weight = summed([own, weight])
    with np.errstate(all="ignore"):
        mine, of_all = (score(float(np.divide(*sums))) for sums in ((own, weight), (total, total_weight)))
        # LightGBM adds in another order, so its score differs in the last digits.
        tolerance = 1e-9 * (abs(mine) + float(np.divide(size, weight)) if weight else 1)
    _engine().WarrenLightGBMCorrect(mine, tolerance, of_all)
    try:
        result = update()
    finally:
        is_corrected = _engine().WarrenLightGBMCorrected() == 1
    if starts and not is_corrected:
        warnings.warn(f"LightGBM {lightgbm.__version__} computes the score that it starts from in an unknown way: it is the mean of what the workers "
                      "computed from their own rows, and depends on which worker has which rows", stacklevel=_callers.stacklevel())
    return result

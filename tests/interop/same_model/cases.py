"""Random data sets and parameters for training. The model must be the same with any number of workers."""
import dataclasses
import hashlib
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import xgboost

import warren.xgboost

_OBJECTIVES = ("binary:logistic", "binary:hinge", "binary:logitraw", "reg:squarederror", "reg:squaredlogerror", "reg:logistic",
               "reg:pseudohubererror", "count:poisson", "reg:gamma", "reg:tweedie", "multi:softprob", "multi:softmax", "rank:ndcg",
               "rank:pairwise", "rank:map", "survival:aft", "a function")
_METRICS = {"binary:hinge": ["error"], "survival:aft": ["aft-nloglik"], "rank:ndcg": ["ndcg"], "rank:pairwise": ["ndcg@3"],
            "rank:map": ["map", "pre@2"], "binary": ["auc", "aucpr", "logloss", "error"], "multi": ["mlogloss", "merror", "auc"],
            "other": ["rmse", "mae"]}
#: Parameters that a case may have. For each, its probability and its values.
_PARAMETERS: Dict[str, Tuple[float, List[Any]]] = {
    "max_bin": (.5, [2, 8, 64, 256, 1000]), "grow_policy": (.2, ["lossguide"]), "max_leaves": (.2, [5, 17]), "colsample_bytree": (.2, [.5]),
    "colsample_bynode": (.2, [.5]), "colsample_bylevel": (.2, [.7]), "num_parallel_tree": (.2, [2]), "min_child_weight": (.2, [0., 5.]),
    "gamma": (.2, [.1]), "alpha": (.2, [.1]), "lambda": (.2, [0., 3.]), "max_delta_step": (.1, [.5]), "booster": (.15, ["dart"]),
    "base_score": (.1, [.3]), "seed": (.1, [7]), "max_cat_to_onehot": (.1, [1, 100])}


@dataclasses.dataclass
class Case:
    """The data and the parameters of one training."""

    seed: int
    features: Any  #: float32 (rows, features), with NaN for missing values
    types: List[str]  #: XGBoost's letter for each feature: q or c
    label: Any
    weight: Optional[Any]
    query: Optional[Any]  #: the query of each row
    margin: Optional[Any]
    bounds: Optional[Tuple[Any, Any]]  #: the lower and upper bounds of survival times
    params: Dict[str, Any]
    function: Optional[Callable[..., Any]]  #: the objective, if it is a function
    rounds: int
    is_evaluated: bool
    stop_after: Optional[int]  #: early_stopping_rounds

    def cuts(self, workers: int, may_be_empty: bool) -> Optional[List[int]]:
        """Random row numbers at which the workers' shares begin, followed by the total row count. No query is split. None if there are too
        few rows or queries for this many workers. `may_be_empty`: whether shares may have no rows."""
        random, rows = np.random.RandomState([self.seed, workers]), len(self.label)
        starts = np.arange(rows + 1)
        if self.query is not None:
            starts = np.append(np.flatnonzero(np.append(True, self.query[1:] != self.query[:-1])), rows)
        inner = starts[1:-1] if not may_be_empty else starts
        if len(inner) < workers - 1:
            return None
        return [0, *sorted(random.choice(inner, workers - 1, replace=may_be_empty).tolist()), rows]


def _features(random: Any, rows: int, width: int) -> Any:
    kinds: List[Callable[[Any], Any]] = [np.round, np.ones_like, lambda x: np.exp(8 * x), lambda x: x * 1e-40, lambda x: x * 1e30,
                                         lambda x: np.full_like(x, np.nan), lambda x: -np.abs(x), lambda x: x, lambda x: x]
    found = np.stack([kinds[random.randint(len(kinds))](random.randn(rows)) for _ in range(width)], axis=1)
    return found.astype("float32")


def _labels(random: Any, objective: str, signal: Any, params: Dict[str, Any]) -> Any:
    if objective.startswith("binary") or objective in ("reg:logistic", "rank:map"):
        return signal > 0
    if objective.startswith("multi"):
        params["num_class"] = 3
        return np.clip(np.round(signal + 1), 0, 2)
    if objective.startswith("rank"):
        return np.clip(np.round(2 * signal + 1), 0, 3)
    if objective == "count:poisson":
        return np.round(np.exp(signal))
    if objective == "reg:squarederror" and random.rand() < .2:
        return np.stack([signal, -signal], axis=1)
    return np.exp(signal) if objective in ("reg:gamma", "reg:tweedie", "reg:squaredlogerror") else signal


def _squared_error(predictions: Any, matrix: Any) -> Tuple[Any, Any]:
    gradient = (predictions - matrix.get_label().reshape(predictions.shape)).astype("float32")
    return gradient, np.ones_like(gradient)


def make(seed: int) -> Case:
    """Draws the case of a seed."""
    random = np.random.RandomState(seed)
    rows, width = int(random.choice([1, 3, 20, 300, 2000, 6000], p=[.05, .05, .1, .2, .3, .3])), int(random.randint(1, 9))
    features = _features(random, rows, width)
    signal = np.tanh(np.nan_to_num(features[:, 0]) / (1e-30 + np.nanmax(np.abs(features[:, 0]), initial=0))) + random.randn(rows) / 2
    features[random.rand(rows, width) < random.choice([0, 0, .2, .9])] = np.nan
    types = ["c" if random.rand() < .15 else "q" for _ in range(width)]
    for number, letter in enumerate(types):
        if letter == "c":
            values = random.randint(0, random.choice([2, 5, 40]), rows)
            features[:, number] = np.where(np.isnan(features[:, number]), np.nan, values)
    objective = str(random.choice(_OBJECTIVES))
    params: Dict[str, Any] = {"nthread": 1, "max_depth": int(random.randint(1, 7)), "eta": float(random.choice([.05, .3, 1])),
                              "objective": objective if objective != "a function" else "reg:squarederror"}
    label = np.asarray(_labels(random, objective, signal, params), "float32")
    ranks = objective.startswith("rank")
    query = np.repeat(np.arange(rows), random.randint(1, 30, rows))[:rows] if ranks else None
    weight = (random.rand(rows) * random.choice([1, 1000])).astype("float32") if random.rand() < .4 and not ranks else None
    # The squared log error gets no margins: near -1, its gradients differ by many orders of magnitude, and their sums are not exact.
    margin = random.randn(rows).astype("float32") if random.rand() < .1 and objective in ("binary:logistic", "reg:pseudohubererror") else None
    times = np.exp(signal).astype("float32")
    bounds = (times, np.where(times > 1, np.inf, times).astype("float32")) if objective == "survival:aft" else None
    for name, (probability, values) in _PARAMETERS.items():
        if random.rand() < probability:
            params[name] = values[random.randint(len(values))]
    if params.get("booster") == "dart":
        params["rate_drop"] = .3
    if objective.startswith("binary") and random.rand() < .2:
        params["scale_pos_weight"] = 3.
    if "c" not in types and random.rand() < .1:
        params["monotone_constraints"] = f"({','.join(str(one) for one in random.randint(-1, 2, width))})"
    metrics = _METRICS.get(objective, _METRICS.get(objective.partition(":")[0], _METRICS["other"]))
    params["eval_metric"] = [str(name) for name in random.permutation(metrics)[:random.randint(1, len(metrics) + 1)]]
    is_evaluated = random.rand() < .8
    found = Case(seed, features, types, label, weight, query, margin, bounds, params, _squared_error if objective == "a function" else None,
                 int(random.randint(1, 9)), is_evaluated, 2 if is_evaluated and random.rand() < .3 else None)
    has_no_subsample = objective == "binary:hinge" or objective.startswith(("multi", "rank")) or label.ndim == 2 or any(
        name in params for name in ("num_parallel_tree", "booster", "colsample_bytree", "colsample_bynode", "colsample_bylevel"))
    if random.rand() < .4 and not has_no_subsample:
        params["subsample"] = float(random.choice([.1, .5, .632, .9]))
    return found


def trained(case: Case, data: Any, rounds: int, **how: Any) -> List[Any]:
    """Trains a case; `how`: further arguments of warren.xgboost.train. Returns the model's digest, its evaluations and its number of
    rounds, or the kind of the error that XGBoost raises with any number of workers."""
    values: Dict[str, Any] = {}
    try:
        model = warren.xgboost.train(case.params, data, rounds, evals=[(data, "train")] if case.is_evaluated else [], evals_result=values,
                                     obj=case.function, early_stopping_rounds=case.stop_after, verbose_eval=False, **how)
    except (ValueError, xgboost.core.XGBoostError) as error:
        if "base_score must be in (0,1)" not in str(error):
            raise
        return ["an intercept that XGBoost refuses"]
    return [hashlib.sha256(bytes(model.save_raw("json"))).hexdigest(), values, model.num_boosted_rounds()]

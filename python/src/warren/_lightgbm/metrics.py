"""Computes LightGBM's metrics over the rows of all workers: LightGBM itself computes them over the rows of one."""
import hashlib
from typing import Any, Dict, List, NamedTuple, Sequence

import lightgbm
import numpy as np
from numpy.typing import NDArray

from warren import rabit
from warren.data import _peers
from warren.data._peers import Peers

#: The metrics that are roots of means over rows, and those that are means over queries, up to an `@`.
_ROOTS, _OF_QUERIES = ("rmse",), ("ndcg", "map")
#: The metrics that depend on the order of all rows.
_OF_ORDER = ("auc", "average_precision")


def summed(values: List[float]) -> List[float]:
    """Returns the elementwise sums over all workers; the same bits on each. Raises LightGBMError if the job fails."""
    try:
        return list(rabit.allreduce(np.array(values), rabit.SUM))
    except RuntimeError as error:
        raise lightgbm.basic.LightGBMError(str(error)) from error


def number_of(what: Any) -> float:
    """A 32-bit hash of a value, as a float, so that the sum over all workers is exact."""
    return float(int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:4], "big"))


def over_workers(booster: "lightgbm.Booster", data_name: str, data_idx: int, found: List[Any]) -> List[Any]:
    """Returns the metrics `found`, which LightGBM computed over this worker's rows of a data set, over the rows of all workers. LightGBM's own
    metrics that are means over rows or queries, or roots of such means, `auc` and `average_precision` have the value over all rows; all others
    are means over the workers, weighted by their rows. All workers get the same bits. A collective call. Raises LightGBMError if the workers
    evaluate different metrics."""
    measured = booster.train_set if data_idx == 0 else booster.valid_sets[data_idx - 1]
    weights = measured.get_weight()
    rows = float(measured.num_data() if weights is None else np.sum(weights, dtype=float))
    queries = _weight_of_queries(measured, weights)
    # The caller's own metrics (feval) come after LightGBM's.
    own = int(getattr(booster, "_Booster__num_inner_eval", len(found)))
    names = [one[1].partition("@")[0] if place < own else "" for place, one in enumerate(found)]
    parts = [queries if name in _OF_QUERIES else rows for name in names]
    values = [one[2] ** 2 if name in _ROOTS else one[2] for name, one in zip(names, found)]
    checked = [data_name, *(one[1] for one in found)]
    *sums, all_rows, all_queries, number = summed([value * part if part else 0.0 for value, part in zip(values, parts)]
                                                  + [rows, queries, number_of(checked)])
    if number != rabit.get_world_size() * number_of(checked):
        raise lightgbm.basic.LightGBMError(f"rank {rabit.get_rank()} evaluates {', '.join(checked[1:])} of {data_name}, and other workers "
                                           "evaluate different ones: all need the same validation sets, names and metrics, in the same "
                                           "order")
    means = [float(total / (all_queries if name in _OF_QUERIES else all_rows)) for name, total in zip(names, sums)]
    ordered = _of_order(booster, data_idx, measured, weights) if set(names) & set(_OF_ORDER) else {}
    return [_with_value(one, ordered.get(name, mean ** 0.5 if name in _ROOTS else mean)) for name, one, mean in zip(names, found, means)]


def _with_value(evaluation: Any, value: float) -> Any:
    """Returns LightGBM's tuple for a metric (data name, metric name, value, whether higher is better, perhaps more) with another value.
    From LightGBM 4.7 on, it is a named tuple."""
    changed = (*evaluation[:2], value, *evaluation[3:])
    return type(evaluation)(*changed) if hasattr(evaluation, "_fields") else changed


def _weight_of_queries(measured: "lightgbm.Dataset", weights: Any) -> float:
    """The number of queries, or, if the rows have weights, the sum of the queries' mean weights, as in LightGBM."""
    sizes = measured.get_group()
    if sizes is None or len(sizes) == 0:
        return 0.0
    if weights is None:
        return float(len(sizes))
    begins = np.cumsum([0, *sizes[:-1]]).astype(int)
    return float(np.sum(np.add.reduceat(np.asarray(weights, float), begins) / sizes))


class _Sorted(NamedTuple):
    """Scores in rising order, and the sums of the weights from each one on; the last sum is 0."""

    scores: NDArray[np.float64]
    sums: NDArray[np.float64]

    def from_on(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weight of the scores here that are not lower than each given one."""
        return self.sums[np.searchsorted(self.scores, scores, "left")]

    def above(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weight of the scores here that are higher than each given one."""
        return self.sums[np.searchsorted(self.scores, scores, "right")]


def _sorted(scores: NDArray[np.float64], weights: NDArray[np.float64]) -> _Sorted:
    order = np.argsort(scores, kind="stable")
    return _Sorted(scores[order], np.append(np.cumsum(weights[order][::-1])[::-1], 0))


def _of_order(booster: Any, data_idx: int, measured: "lightgbm.Dataset", weights: Any) -> Dict[str, float]:
    """Returns the metrics of _OF_ORDER over all rows. A collective call."""
    scores = np.asarray(booster._Booster__inner_predict(data_idx=data_idx), np.float64)  # pylint: disable=protected-access
    is_positive = np.asarray(measured.get_label()) > 0
    shares = np.ones(len(scores)) if weights is None else np.asarray(weights, np.float64)
    try:
        return of_order(scores, is_positive, shares, _peers.current())
    except RuntimeError as error:
        raise lightgbm.basic.LightGBMError(str(error)) from error


def of_order(scores: NDArray[np.float64], is_positive: NDArray[np.bool_], weights: NDArray[np.float64], peers: Peers) -> Dict[str, float]:
    """Returns `auc` and `average_precision` of the rows of all workers, by name: 1 if all rows are positive or none is, as in LightGBM. Rows
    with equal scores count as one threshold. Each worker receives the scores of every other one, and keeps them only until it has counted
    those that are above its own. A collective call."""
    own = scores[is_positive]
    shares = weights[is_positive]
    mine = [_sorted(scores[chosen], weights[chosen]) for chosen in (is_positive, ~is_positive)]
    above, from_on, positives = np.zeros(len(own)), np.zeros(len(own)), np.zeros(len(own))
    for root in range(peers.world):
        sizes = peers.broadcast([len(one.scores) for one in mine], root)
        theirs = [_received(one, size, peers, root) for one, size in zip(mine, sizes)]
        positives += theirs[0].from_on(own)
        from_on += theirs[1].from_on(own)
        above += theirs[1].above(own)
    precisions = positives / np.maximum(positives + from_on, np.finfo(float).tiny)
    sums = [shares.sum(), weights[~is_positive].sum(), np.dot(shares, (above + from_on) / 2), np.dot(shares, precisions)]
    all_positive, all_negative, wrong, precision = np.sum(peers.allgather([float(one) for one in sums]), axis=0)
    if all_positive <= 0 or all_negative <= 0:
        return {"auc": 1.0, "average_precision": 1.0}
    return {"auc": float(1 - wrong / (all_positive * all_negative)), "average_precision": float(precision / all_positive)}


def _received(own: _Sorted, size: int, peers: Peers, root: int) -> _Sorted:
    """Returns the `size` scores of rank `root`. A collective call."""
    arrays: Sequence[NDArray[np.float64]] = own if peers.rank == root else [np.empty(size), np.empty(size + 1)]
    for one in arrays:
        peers.broadcast_bytes(np.ascontiguousarray(one).view(np.uint8), root)
    return _Sorted(*arrays)

"""Histograms whose sums are exact, and a check of whether they are.

XGBoost adds gradients, which are floats, as doubles. If all gradients are multiples of a power of two u, and the sum of their absolute values
is below 2^53 u, every partial sum is exact, in any order. `Grid` rounds gradients so that this holds. `Check` computes the bits that the sums
of a training may need."""
import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np
import xgboost as xgb

from warren._xgboost.same_model.gradients import OF_OBJECTIVES
from warren.data._peers import Peers

#: The bits of a double's mantissa.
_BITS = 53

Objective = Callable[[Any, Any], Tuple[Any, Any]]


def _function_of(params: Mapping[str, Any]) -> Optional[Objective]:
    """Returns a function for the weighted gradients and Hessians of the parameters' objective, in float64; None if they are not known."""
    known = OF_OBJECTIVES.get(str(params.get("objective") or "reg:squarederror"))
    if known is None:
        return None
    function = known

    def of_rows(margins: Any, matrix: Any) -> Tuple[Any, Any]:
        wide = np.asarray(margins, np.float64)
        labels = np.asarray(matrix.get_label(), np.float64)
        weights = np.asarray(matrix.get_weight(), np.float64)
        is_of_classes = str(params.get("objective")).startswith("multi:")
        gradients, hessians = function(wide, labels if is_of_classes else labels.reshape(wide.shape), params)
        if weights.size:
            weights = weights.reshape(-1, *([1] * (wide.ndim - 1)))
            gradients, hessians = gradients * weights, hessians * weights
        return gradients, hessians

    return of_rows


class Grid:
    """An objective for xgboost.train: the gradients of another objective, rounded to multiples of a power of two that is the same on all
    workers."""

    def __init__(self, params: Mapping[str, Any], function: Optional[Objective], rows: int, peers: Peers) -> None:
        """`function`: the caller's objective; None means the objective in the parameters. `rows`: the number of rows of all workers. Raises
        ValueError for an objective whose gradients are not known."""
        self._function = function or _function_of(params)
        if self._function is None:
            raise ValueError(f"reproducible='exact': objective={params.get('objective')!r} has no gradients here; expected one of "
                             f"{', '.join(OF_OBJECTIVES)}, or a function as obj")
        self._rows, self._peers = rows, peers

    def __call__(self, margins: Any, matrix: Any) -> Tuple[Any, Any]:
        """Returns the rounded gradients and Hessians. A collective call."""
        assert self._function is not None
        found = [np.asarray(values, np.float64) for values in self._function(margins, matrix)]
        greatest = np.array([np.abs(values).max(initial=0) for values in found], np.float64)
        # Non-negative floating-point numbers are ordered like their bits.
        greatest = self._peers.greatest(greatest.view(np.uint64)).view(np.float64)
        return tuple(_rounded(values, float(most), self._rows) for values, most in zip(found, greatest))  # type: ignore[return-value]


def _rounded(values: Any, greatest: float, rows: int) -> Any:
    """Returns the values, as float32, rounded to multiples of a power of two, chosen so that a sum of `rows` values is below 2^53 times that
    power."""
    if greatest == 0 or not math.isfinite(greatest):
        return values.astype(np.float32)
    unit = math.ldexp(1.0, math.frexp(greatest * rows)[1] + 1 - _BITS)
    # A float32 value none of whose 24 bits is below the unit is already a multiple of the unit, and remains unchanged.
    return (np.rint(values.astype(np.float32).astype(np.float64) / unit) * unit).astype(np.float32)


def bits_of_sums(values: Any) -> Tuple[int, float]:
    """Returns the exponent of the greatest power of two of which all values (float32) are multiples, and the sum of their absolute
    values. Without values other than 0, the exponent is 1024."""
    words = np.ascontiguousarray(values, np.float32).view(np.uint32).reshape(-1)
    words = words[(words << np.uint32(1)) != 0]
    if not words.size:
        return 1024, 0.0
    exponents = np.maximum((words >> np.uint32(23)) & np.uint32(255), 1).astype(np.int64)
    mantissas = (words & np.uint32(0x7FFFFF)) | np.where((words >> np.uint32(23)) & np.uint32(255), np.uint32(1 << 23), np.uint32(0))
    lowest = mantissas & (~mantissas + np.uint32(1))
    return int((exponents - 150 + np.log2(lowest).astype(np.int64)).min()), float(np.abs(values, dtype=np.float64).sum())


class Check(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Computes the gradients of each round a second time, and reports on rank 0 at the end whether their sums may have been inexact."""

    def __init__(self, params: Mapping[str, Any], function: Optional[Objective], matrix: Any, peers: Peers, say: Callable[[str], None]) -> None:
        super().__init__()
        self._function, self._matrix, self._peers, self._say = function or _function_of(params), matrix, peers, say
        self._needed: List[int] = []

    def before_iteration(self, model: Any, epoch: int, evals_log: Dict[str, Any]) -> bool:
        """Records the number of bits that the sums of this round may need. A collective call."""
        del epoch, evals_log
        if self._function is None:
            return False
        found = self._function(model.predict(self._matrix, output_margin=True), self._matrix)
        ours = [bits_of_sums(np.asarray(values, np.float32)) for values in found]
        all_of_them = self._peers.allgather(ours)
        self._needed.append(max(_bits([one[kind] for one in all_of_them]) for kind in range(len(ours))))
        return False

    def after_training(self, model: Any) -> Any:
        """Reports the result."""
        if self._peers.rank == 0:
            self._say(self._words())
        return model

    def _words(self) -> str:
        if self._function is None:
            return "WARREN_CHECK_SUMS: the gradients of this objective are not known: nothing was checked"
        inexact = [bits for bits in self._needed if bits > _BITS]
        if not inexact:
            return f"WARREN_CHECK_SUMS: all sums of {len(self._needed)} rounds were exact: they need at most {max(self._needed, default=0)} of 53 bits"
        return (f"WARREN_CHECK_SUMS: in {len(inexact)} of {len(self._needed)} rounds sums may have been rounded: they need up to {max(inexact)} "
                "bits, and a double has 53; reproducible='exact' avoids it")


def _bits(parts: List[Tuple[int, float]]) -> int:
    """The number of bits that sums of all ranks' values may need."""
    total = sum(size for _, size in parts)
    return math.frexp(total)[1] - min(exponent for exponent, _ in parts) if total else 0

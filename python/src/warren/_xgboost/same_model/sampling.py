"""The rows of each round (`subsample`), drawn as one process draws them.

XGBoost's own draws depend on a row's number on its worker. For the tree of a round, one process draws a seed from the booster's Mersenne
Twister, and keeps row i if the (i + 1)-th number of a multiplicative generator with this seed is small enough (src/tree/hist/sampler.h of 2.1
to 3.4, and std::bernoulli_distribution of GNU's C++ library, with which XGBoost's wheels are made). Here each worker computes the numbers for
its rows from their positions in the data set, and excludes the rows that are not drawn from the round: with weights of 0 or, if the objective
is a function of the caller, with gradients of 0. `subsample` is not passed to XGBoost itself."""
import contextlib
from typing import Any, Callable, ContextManager, Iterator, List, Mapping, Optional, Tuple

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from warren._frameworks.replacing import replaced
from warren._xgboost.same_model import generator as _generator
from warren.data._peers import Peers

#: The multiplicative generator: x becomes 16807 x modulo 2^63.
_BASE, _BITS = 16807, 63
#: With `seed_per_iteration`, the seed of a round is the parameter `seed` times this number, plus the number of the round.
_MAGIC = 127
_COLUMNS = ("colsample_bytree", "colsample_bylevel", "colsample_bynode")


def rate_of(params: Mapping[str, Any]) -> float:
    """Returns the fraction of the rows that each round uses, rounded to float32 as in XGBoost; 1 for a number outside [0, 1], which XGBoost
    refuses."""
    given = params.get("subsample")
    rate = 1.0 if given is None else float(np.float32(given))
    return rate if 0 <= rate <= 1 else 1.0


def check(params: Mapping[str, Any]) -> None:
    """Raises ValueError if `subsample` cannot be combined with the other parameters."""
    if rate_of(params) >= 1:
        return
    for name, value, is_wrong, why in _obstacles(params):
        if is_wrong:
            raise ValueError(f"reproducible=True: subsample={params['subsample']!r} with {name}={value!r} would make a model that depends on "
                             f"the number of workers: {why}; leave one of them out")


def check_training(params: Mapping[str, Any], matrix: Any, options: Mapping[str, Any], peers: Peers) -> None:
    """Raises ValueError, on all workers, for training whose rows cannot be drawn. A collective call."""
    if rate_of(params) >= 1:
        return
    several = any(peers.allgather(matrix.get_label().size > matrix.num_row())) and params.get("multi_strategy") != "multi_output_tree"
    has_queries = any(peers.allgather(len(matrix.get_uint_info("group_ptr")) > 1))
    is_unknown = options.get("xgb_model") is not None and not _generator.is_known()
    for is_there, what, why in (
            (is_unknown, "xgb_model", "how many random numbers its training has drawn is not known"),
            (has_queries, "queries", "XGBoost has weights of queries, not of rows, then"),
            (several, "several labels", "each tree of a round would have other rows, and multi_strategy='multi_output_tree' has one")):
        if is_there:
            raise ValueError(f"reproducible=True: subsample={params['subsample']!r} with {what} would make a model that depends on the number of "
                             f"workers: {why}; leave one of them out")


def _obstacles(params: Mapping[str, Any]) -> Iterator[Tuple[str, Any, bool, str]]:
    """Yields parameters, their values, whether these values rule out `subsample`, and the reason."""
    trees, objective = params.get("num_parallel_tree"), str(params.get("objective", ""))
    yield "num_parallel_tree", trees, trees is not None and int(trees) > 1, "each tree of a round would have other rows"
    # These objectives are refused even with multi_output_tree, which makes one tree per round.
    yield ("objective", objective, objective.startswith("multi:") or objective == "binary:hinge",
           "its gradients of rows without weight are not 0, and most have several trees in a round")
    yield "objective", objective, objective.startswith("rank:"), "XGBoost has weights of queries, not of rows, then"
    yield "booster", params.get("booster"), params.get("booster") == "dart", "trees are dropped by the same random numbers"
    for name in _COLUMNS:
        value = params.get(name)
        yield (name, value, value is not None and float(value) < 1 and _generator.is_known() and _is_seeded_per_round(params),
               f"with seed_per_iteration, XGBoost {xgb.__version__} draws columns and rows by the same random numbers")


def _is_seeded_per_round(params: Mapping[str, Any]) -> bool:
    return str(params.get("seed_per_iteration", "0")).lower() in ("1", "true")


class _Seeds:
    """The seed of each round's draw."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        seeds = (params.get("seed"), params.get("random_state"), 0)
        self._seed = int(next(one for one in seeds if one is not None))
        self._is_per_round = _is_seeded_per_round(params)
        self._drawn: List[int] = []

    def of(self, model: "xgb.Booster", config: Any, number: int) -> int:
        """Returns the seed for the round `number`, counted from 0, which the model with this configuration is about to train. From XGBoost
        3.3 on, rows and columns are drawn from one generator; without `seed_per_iteration`, this call advances it, as if XGBoost had drawn
        the seed. In earlier versions, the first number drawn is the seed of a separate generator for columns."""
        first = 0 if _generator.is_known() else 1
        if self._is_per_round:
            # From 3.3 on, the rounds of a continued model count, too.
            seed = self._seed * _MAGIC + (int(model.num_boosted_rounds()) if _generator.is_known() else number)
            return self._draws(seed, first + 1)[first if number == 0 else 0]
        if _generator.is_known():
            found, after = _generator.drawn(_generator.state_in(config))
            _generator.set_state(model, after)
            return found
        if len(self._drawn) <= first + number:
            self._drawn = self._draws(self._seed, 2 * (first + number) + 64)
        return self._drawn[first + number]

    @staticmethod
    def _draws(seed: int, count: int) -> List[int]:
        """The first numbers of std::mt19937(seed), which is seeded like NumPy's RandomState."""
        generator: Any = np.random.RandomState(seed % 2**32)
        return [int(one) for one in generator.randint(0, 2**32, count, dtype=np.uint32)]


class Rows:
    """The rows of this worker's matrix that each round uses. All workers create it together."""

    def __init__(self, params: Mapping[str, Any], matrix: Any, peers: Peers) -> None:
        """`params` includes the parameters of a continued model."""
        self._matrix, self._rate, self._seeds = matrix, rate_of(params), _Seeds(params)
        self._given = params["subsample"]
        self._seed_before: Optional[str] = None
        # For each row, the factor by which the generator's seed is multiplied.
        self._powers = np.concatenate([_powers(first, count) for first, count in _ranges(matrix, peers)] or [np.empty(0, np.uint64)])
        self._weights = np.asarray(matrix.get_weight(), np.float32)

    def _kept(self, model: "xgb.Booster", number: int) -> NDArray[np.float32]:
        """Returns 1 for each row that the round `number`, counted from 0, uses, and 0 for the others. Raises ValueError if the model now
        makes several trees per round, or (before XGBoost 3.3) if its seed has changed."""
        config = _generator.config_of(model)
        self._check(config["learner"])
        seed = np.uint64(self._seeds.of(model, config, number) or 1)  # C++'s generator replaces a seed of 0 by 1
        words = (self._powers * seed) & np.uint64(2**_BITS - 1)
        return ((words - np.uint64(1)).astype(np.float64) / 2.0**_BITS < self._rate).astype(np.float32)

    def _check(self, learner: Any) -> None:
        """Checks the configuration, whose parameters may come from a continued model or from callbacks. See _kept for errors."""
        outputs = max(int(learner["learner_model_param"][name]) for name in ("num_class", "num_target"))
        if learner["learner_train_param"].get("multi_strategy") == "multi_output_tree":
            outputs = 1
        trees = max(1, outputs) * int(learner["gradient_booster"].get("gbtree_model_param", {}).get("num_parallel_tree", 1))
        if trees > 1:
            raise ValueError(f"reproducible=True: subsample={self._given!r} with {trees} trees in a round would make a model that depends on the "
                             "number of workers: each would have other rows; leave subsample out")
        seed = str(learner["generic_param"].get("seed"))
        if self._seed_before is not None and self._seed_before != seed and not _generator.is_known():
            raise ValueError(f"reproducible=True: subsample={self._given!r} with a seed that changes during the training would make a model that "
                             "depends on the number of workers: leave one of them out")
        self._seed_before = seed

    def updating(self, inner: Callable[..., None]) -> Callable[..., None]:
        """For replaced("update", ...): an update with the matrix uses only the rows drawn for the round."""
        def update(model: Any, dtrain: Any, iteration: int, fobj: Optional[Callable[..., Any]] = None) -> None:
            if dtrain is not self._matrix:
                return inner(model, dtrain, iteration, fobj)
            kept = self._kept(model, iteration)
            if fobj is not None:
                return inner(model, dtrain, iteration, lambda predictions, matrix: [_of_rows(one, kept) for one in fobj(predictions, matrix)])
            dtrain.set_weight(kept * self._weights if self._weights.size else kept)
            try:
                return inner(model, dtrain, iteration)
            finally:
                dtrain.set_weight(self._weights)
        return update


def of(params: Mapping[str, Any], matrix: Any, peers: Peers) -> ContextManager[None]:
    """Within the block, when this thread updates a model with the matrix, only the rows drawn for the round are used. A collective call."""
    return replaced("update", Rows(params, matrix, peers).updating, xgb.Booster) if rate_of(params) < 1 else contextlib.nullcontext()


def _of_rows(values: Any, kept: NDArray[np.float32]) -> Any:
    """Returns the gradients or Hessians, with 0 for the rows that are not used."""
    found = np.asarray(values)
    return np.where(kept.reshape(-1, *[1] * (found.ndim - 1)) > 0, found, np.zeros((), found.dtype))


def _powers(first: int, count: int) -> NDArray[np.uint64]:
    """16807 to the powers first + 1, first + 2, ..., modulo 2^64."""
    found = np.full(count, _BASE, np.uint64)
    found[:1] = pow(_BASE, first + 1, 2**64)
    return np.cumprod(found, dtype=np.uint64)


def _ranges(matrix: Any, peers: Peers) -> List[Tuple[int, int]]:
    """Returns the positions of this worker's rows in the data set as ranges, in the order of the matrix: the first position and the number of
    rows of each range. A collective call."""
    parts = getattr(matrix, "warren_parts", None)
    ours: List[Tuple[int, int]] = [(peers.rank, matrix.num_row())] if parts is None else [(place, rows) for place, rows, _ in parts]
    everybody = sorted(part for of_rank in peers.allgather(ours) for part in of_rank)
    firsts, first = {}, 0
    for place, rows in everybody:
        firsts[place] = first
        first += rows
    return [(firsts[place], rows) for place, rows in ours]

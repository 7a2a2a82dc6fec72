"""Parameters with which XGBoost's model depends on how the rows are divided among workers."""
from typing import Any, Callable, List, Mapping, NamedTuple

from warren._xgboost.same_model import sampling as _sampling


class _Refusal(NamedTuple):
    """A value of a parameter that is refused."""

    name: str
    is_refused: Callable[[Any], bool]
    why: str
    remedy: str


def _one_of(*values: str) -> Callable[[Any], bool]:
    return lambda value: str(value) in values


_REFUSALS: List[_Refusal] = [
    _Refusal("tree_method", lambda value: str(value) not in ("hist", "auto"),
             "makes cuts of each worker's rows in each round, or needs all rows in one process", "use tree_method='hist'"),
    _Refusal("booster", _one_of("gblinear"), "updates its weights from one worker's rows after the other", "use gbtree or dart"),
    _Refusal("updater", lambda value: str(value) not in ("grow_quantile_histmaker", "grow_quantile_histmaker,prune"),
             "may use each worker's rows alone", "leave it out, with tree_method='hist'"),
    _Refusal("process_type", lambda value: str(value) != "default", "changes trees by each worker's rows", "leave it out"),
    _Refusal("device", lambda value: not str(value).startswith("cpu"), "has not been compared with one process", "use device='cpu'"),
    _Refusal("sampling_method", lambda value: str(value) != "uniform", "draws a row by its number on its worker", "leave it out"),
    _Refusal("objective", _one_of("reg:absoluteerror", "reg:quantileerror"),
             "sets a leaf to the mean of the workers' quantiles of their own residuals",
             "use reg:pseudohubererror, or reg:expectileerror where XGBoost has it"),
    _Refusal("objective", _one_of("survival:cox"), "compares a row with the rows of its worker alone", "use survival:aft"),
    _Refusal("lambdarank_pair_method", _one_of("mean"), "draws pairs by the number of a query on its worker", "use topk"),
    _Refusal("lambdarank_unbiased", lambda value: str(value).lower() in ("1", "true"), "estimates the bias from a worker's own queries",
             "leave it out"),
]


#: The names of the parameters that may be refused.
NAMES = frozenset(refusal.name for refusal in _REFUSALS) - {"updater"} | {"subsample"}
#: The names of the parameters of random draws, which a continued model may bring along.
DRAWS = frozenset(("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode", "rate_drop", "skip_drop", "one_drop", "seed",
                   "seed_per_iteration", "num_parallel_tree", "multi_strategy"))


def check(params: Mapping[str, Any]) -> None:
    """Raises ValueError if a model with these parameters would depend on the number of workers. The message names the parameter, the reason
    and a remedy."""
    for refusal in _REFUSALS:
        value = params.get(refusal.name)
        if value is not None and refusal.is_refused(value):
            raise ValueError(f"reproducible=True: {refusal.name}={value!r} {refusal.why}, so that the model would depend on the number of "
                             f"workers: {refusal.remedy}")
    _sampling.check(params)

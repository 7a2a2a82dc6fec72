"""Training that produces the model of one process, for warren.xgboost."""
import contextlib
import hashlib
import json
import os
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import xgboost as xgb

from warren._frameworks.replacing import replaced
from warren._rounds.sinks import say
from warren._xgboost.same_model import evaluation as _evaluation
from warren._xgboost.same_model import exact as _exact
from warren._xgboost.same_model import generator as _generator
from warren._xgboost.same_model import intercept as _intercept
from warren._xgboost.same_model import refusals as _refusals
from warren._xgboost.same_model import sampling as _sampling
from warren._xgboost.same_model.alone import alone
from warren._xgboost.versions import VERSION, WITH_CUTS, peers_of_job
from warren.data._peers import Peers, same_on_all

#: The reason why weights are refused for ranking.
WEIGHTS_OF_QUERIES = ("reproducible=True: XGBoost divides the weights of queries by their mean on each worker, so that the model would depend "
                      "on the number of workers: leave the weights out, or repeat queries instead")
#: The first version whose models have been compared with those of one process.
_FIRST = (2, 1)


def require_version() -> None:
    """Raises RuntimeError if XGBoost is older than 2.1, the first version for which reproducible=True is supported."""
    if VERSION < _FIRST:
        raise RuntimeError(f"reproducible=True needs XGBoost {'.'.join(map(str, _FIRST))} or later; found {xgb.__version__}")


def check(params: Mapping[str, Any]) -> None:
    """Raises RuntimeError or ValueError if these parameters, or this version of XGBoost, cannot give the model of one process."""
    require_version()
    _refusals.check(params)


class Prepared(NamedTuple):
    """A training run that produces the model of one process."""

    params: Dict[str, Any]
    options: Dict[str, Any]  #: the other arguments of xgboost.train
    effective: Dict[str, Any]  #: the parameters, including those of a continued model
    has_function: bool  #: whether the objective is a function of the caller
    intercept: Optional[str]  #: the estimated intercept; None if it is given or not needed
    matrix: Any  #: this worker's training rows

    @contextlib.contextmanager
    def training(self, peers: Peers, has_callbacks: bool) -> Iterator[None]:
        """Within the block, each round of training uses the rows that one process would draw, and models are evaluated on the rows of all
        workers. `has_callbacks`: whether the caller passed callbacks, which may set parameters. All workers enter the block."""
        with contextlib.ExitStack() as block:
            block.enter_context(_evaluation.of_all_rows(self.effective, peers, self.has_function))
            if has_callbacks:
                block.enter_context(replaced("update", _checked_update, xgb.Booster))
            block.enter_context(_sampling.of(self.effective, self.matrix, peers))
            yield

    def ended(self, model: "xgb.Booster") -> "xgb.Booster":
        """Returns the trained model as one process would leave it."""
        if self.intercept is not None:
            _intercept.mark_as_estimated(model)
        return model


def prepared(params: Mapping[str, Any], matrix: Any, num_boost_round: int, evals: Sequence[Tuple[Any, str]], is_exact: bool,
             options: Dict[str, Any], peers: Peers, intercept: Optional[str] = None) -> Prepared:
    """Checks a training run, and adds the values that one process would compute from all rows. `intercept`: an earlier estimate, or None.
    `params` have been checked. A collective call. Raises ValueError if the model would depend on the number of workers, if the arguments
    differ between workers, or if a worker without rows cannot take part."""
    effective = _effective(params, options)
    _refusals.check(effective)
    _check_matrices(effective, matrix, evals, peers)
    _sampling.check_training(effective, matrix, options, peers)
    given = {**params, "tree_method": params.get("tree_method") or "hist", **({"subsample": 1} if _sampling.rate_of(effective) < 1 else {})}
    same_on_all(peers, {**_shared(params), "xgb_model": options.get("xgb_model") is not None, "is_exact": is_exact,
                        "obj": options.get("obj") is not None, "num_boost_round": num_boost_round, "evals": [name for _, name in evals],
                        "WARREN_CHECK_SUMS": _wants_check()})
    rows = peers.allgather(matrix.num_row())
    is_estimated, has_function = _intercept.is_needed(given, num_boost_round, options), options.get("obj") is not None
    if intercept is None and (is_estimated or (is_exact and not has_function)):
        intercept = _intercept.of_all_rows(effective, matrix, peers)  # here, XGBoost also checks the labels
    if is_estimated:
        given["base_score"] = intercept
    if is_exact:
        options = {**options, "obj": _exact.Grid(effective, options.get("obj"), sum(rows), peers)}
    if 0 in rows and (is_exact or has_function and VERSION >= (3, 4)):
        raise ValueError(f"rank {rows.index(0)} of {peers.world} has no rows, as it needs with {'exact sums' if is_exact else 'obj'} over XGBoost "
                         f"{xgb.__version__}: start fewer workers")
    if _wants_check():
        check = _exact.Check(effective, options.get("obj"), matrix, peers, say)
        options = {**options, "callbacks": [*(options.get("callbacks") or ()), check]}
    return Prepared(given, options, effective, has_function, intercept if is_estimated else None, matrix)


def train(params: Mapping[str, Any], matrix: Any, num_boost_round: int, evals: Sequence[Tuple[Any, str]], is_exact: bool,
          options: Dict[str, Any]) -> "xgb.Booster":
    """See warren.xgboost.train, with reproducible=True. `params` have been checked."""
    peers = peers_of_job()
    if peers.world == 1 and not is_exact and not _wants_check():
        effective = _effective(params, options)
        _refusals.check(effective)
        _check_matrices(params, matrix, evals, peers)
        _sampling.check_training(effective, matrix, options, peers)
        return xgb.train({**params, "tree_method": params.get("tree_method") or "hist"}, matrix, num_boost_round, evals=evals, **options)
    require_same_start(options, peers)
    found = prepared(params, matrix, num_boost_round, evals, is_exact, options, peers)
    with found.training(peers, bool(options.get("callbacks"))):
        model = xgb.train(found.params, matrix, num_boost_round, evals=evals, **found.options)
    return found.ended(model)


def require_same_start(options: Mapping[str, Any], peers: Peers) -> None:
    """Raises ValueError on all ranks if the workers continue different models. A collective call."""
    def contents() -> str:
        found = xgb.Booster(model_file=options["xgb_model"])
        found.feature_names = found.feature_types = None
        found.set_attr(**{name: None for name in found.attributes()})
        return f"a model with the hash {hashlib.blake2b(found.save_raw('ubj'), digest_size=8).hexdigest()}"

    if peers.world > 1:
        said = None
        if options.get("xgb_model") is not None:
            try:
                said = alone(contents)
            except Exception:  # pylint: disable=broad-except
                said = "unreadable"  # XGBoost says why, when it reads the model for the training
        same_on_all(peers, {"xgb_model": said})


#: Parameters that may differ between workers.
_FREE = frozenset(("nthread", "n_jobs", "verbosity", "silent", "validate_parameters", "device", "gpu_id"))


def _shared(params: Mapping[str, Any]) -> Dict[str, Any]:
    """The parameters that all workers must give, with the names of functions and types in place of other values than plain ones."""
    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(one) for one in value]
        if isinstance(value, Mapping):
            return [plain(one) for one in value.items()]
        value = value.item() if isinstance(value, np.generic) else value
        return value if isinstance(value, (str, bool, int, float)) else getattr(value, "__name__", type(value).__name__)

    return {name: plain(value) for name, value in params.items() if value is not None and name not in _FREE}


def _checked_update(inner: Callable[..., None]) -> Callable[..., None]:
    """For replaced("update", ...): raises ValueError if callbacks have set parameters with which the model would depend on the number of
    workers."""
    def update(model: Any, *arguments: Any, **named: Any) -> None:
        leaves = dict(_leaves(_generator.config_of(model)["learner"]))
        if float(leaves.get("subsample", 1)) != 1:
            raise ValueError(f"reproducible=True: subsample={leaves['subsample']} is set by a callback, so that the model would depend on the "
                             "number of workers: pass it in params")
        _refusals.check({name: leaves[name] for name in _refusals.NAMES if name in leaves})
        inner(model, *arguments, **named)
    return update


def _check_matrices(params: Mapping[str, Any], matrix: Any, evals: Sequence[Tuple[Any, str]], peers: Peers) -> None:
    """Raises ValueError for a matrix with which the model would depend on the number of workers. A collective call."""
    if not getattr(matrix, "warren_is_reproducible", False):
        raise ValueError("reproducible=True: the cuts of this matrix may be those of one worker's rows: make it with "
                         "warren.xgboost.load_dmatrix(..., reproducible=True), or pass a warren.xgboost.Data")
    for one, name in evals:
        if isinstance(one, WITH_CUTS) and not getattr(one, "warren_is_reproducible", False):
            raise ValueError(f"reproducible=True: the cuts of the evaluation matrix {name!r} may be those of one worker's rows: make it "
                             "with warren.xgboost.load_dmatrix(..., reproducible=True, ref=...), or make a DMatrix")
    is_weighted = any(peers.allgather(len(matrix.get_weight()) > 0))
    if is_weighted and str(params.get("objective", "")).startswith("rank:"):
        raise ValueError(WEIGHTS_OF_QUERIES)


def _effective(params: Mapping[str, Any], options: Mapping[str, Any]) -> Dict[str, Any]:
    """The parameters, including those of a continued model. As in XGBoost, None counts as not given."""
    return {**_continued(params, options.get("xgb_model")), **{name: value for name, value in params.items() if value is not None}}


def _continued(params: Mapping[str, Any], model: Any) -> Dict[str, Any]:
    """The parameters that training takes from the model that it continues: the objective with its parameters, and the parameters that
    refusals.py checks; empty without a model."""
    if model is None:
        return {}
    config = json.loads(alone(lambda: xgb.Booster(dict(params), model_file=model).save_config()))["learner"]
    found = {name: value for name, value in _leaves(config) if name in _refusals.NAMES | _refusals.DRAWS}
    found.update(_leaves(config["objective"]))
    return {**found, "objective": config["objective"]["name"], "booster": config["gradient_booster"]["name"]}


def _leaves(config: Any) -> Iterator[Tuple[str, str]]:
    """Yields the names and values of the parameters in a configuration, at all depths."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        elif isinstance(value, str) and name != "name":
            yield name, value


def _wants_check() -> bool:
    value = os.environ.get("WARREN_CHECK_SUMS") or "0"
    if value not in ("0", "1", "false", "true"):
        raise ValueError(f"WARREN_CHECK_SUMS is {value!r}, expected 0, 1, true or false")
    return value in ("1", "true")

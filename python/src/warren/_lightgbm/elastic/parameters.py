"""The parameters of elastic training. Pure functions.

LightGBM cannot save the state of training: after a loss, a new Booster starts with the trees so far. Everything else that the old Booster
kept from one round to the next, such as its random number generators, is lost, except for the scores of the rows."""
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from lightgbm.basic import _ConfigAliases

#: The parameters that warren.lightgbm.parameters sets for each generation.
_OF_WORKERS = ("num_machines", "tree_learner", "pre_partition")
#: The seeds that a caller may set instead of `seed`, which sets those that are not given.
_SEEDS = ("bagging_seed", "feature_fraction_seed", "extra_seed", "objective_seed")
#: The distance between the seeds of two rounds, so that rounds have different seeds whatever the caller's seeds are.
_STEP = 1_000_003


class Effective(NamedTuple):
    """The arguments of lightgbm.train, as it uses them."""

    params: Dict[str, Any]  #: without the parameters that depend on the workers
    rounds: int
    objective: Optional[Callable[..., Any]]  #: the caller's function
    tree_learner: str
    #: The arguments of lightgbm.early_stopping; None unless the parameters request early stopping.
    stopping: Optional[Dict[str, Any]]


def value(params: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """The parameter's value, by its name or an alias."""
    names = _ConfigAliases.get(name)
    return next((params[one] for one in (name, *sorted(names)) if params.get(one) is not None), default)


def _without(params: Mapping[str, Any], *names: str) -> Dict[str, Any]:
    others = _ConfigAliases.get(*names)
    return {name: one for name, one in params.items() if name not in others}


def tree_learner(params: Mapping[str, Any]) -> str:
    """The tree learner in a job: the caller's, or `data` in place of `serial`."""
    found = str(value(params, "tree_learner", "serial"))
    return "data" if found == "serial" else found


def effective(params: Mapping[str, Any], num_boost_round: int) -> Effective:
    """Returns the arguments as lightgbm.train uses them. Raises ValueError for parameters that elastic training does not support."""
    _require_possible(params)
    rounds = int(value(params, "num_iterations", num_boost_round))
    if rounds <= 0:
        raise ValueError(f"Number of boosting rounds must be greater than 0. Got {rounds}.")
    objective, stops_after = value(params, "objective"), value(params, "early_stopping_round")
    stopping = None
    if stops_after is not None and int(stops_after) > 0:
        stopping = {"stopping_rounds": int(stops_after), "first_metric_only": bool(params.get("first_metric_only", False)),
                    "verbose": int(value(params, "verbosity", 1)) > 0}
        if "early_stopping_min_delta" in params:
            stopping["min_delta"] = params["early_stopping_min_delta"]
    kept = {**_without(params, "objective", "num_iterations", *_OF_WORKERS), "num_iterations": rounds}
    if objective is not None:
        kept["objective"] = "none" if callable(objective) else objective
    return Effective(kept, rounds, objective if callable(objective) else None, tree_learner(params), stopping)


def _is_on(given: Any) -> bool:
    return given not in (None, False, 0, "", "0", "false", "False", "-", [], ())


def _require_possible(params: Mapping[str, Any]) -> None:
    boosting = str(value(params, "boosting", "gbdt"))
    reasons = {
        "dart": "a round changes the trees of earlier rounds, by weights that only the lost worker's Booster knows",
        "rf": "its trees are averages, from which LightGBM cannot go on",
        "random_forest": "its trees are averages, from which LightGBM cannot go on"}
    if boosting in reasons:
        raise ValueError(f"elastic=True: boosting={boosting!r} cannot go on after a loss: {reasons[boosting]}; use gbdt or goss, or a job with "
                         "a fixed number of workers")
    for name, why in (("linear_tree", "LightGBM's workers train linear trees on their own rows alone"),
                      ("cegb_penalty_feature_lazy", "LightGBM forgets which rows have paid for a feature"),
                      ("cegb_penalty_feature_coupled", "LightGBM forgets which features have been paid for"),
                      ("machines", "the workers communicate over Warren's engine"),
                      ("machine_list_filename", "the workers communicate over Warren's engine")):
        given = value(params, name)
        if _is_on(given):
            raise ValueError(f"elastic=True: {name}={given!r} is not possible: {why}")


def draws(params: Mapping[str, Any]) -> List[str]:
    """Returns the names of the parameters that cause random draws, whose generators restart after a loss."""
    def is_part(name: str) -> bool:
        return float(value(params, name, 1)) < 1

    found = [name for name in ("feature_fraction", "feature_fraction_bynode") if is_part(name)]
    if int(value(params, "bagging_freq", 0)) > 0:
        found += [name for name in ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction") if is_part(name)]
    if uses_goss(params):
        found.append("goss")
    found += [name for name in ("extra_trees", "use_quantized_grad") if _is_on(value(params, name))]
    if str(value(params, "objective", "")) in ("rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart"):
        found.append("rank_xendcg")
    return found


def uses_goss(params: Mapping[str, Any]) -> bool:
    """Whether rows are sampled by their gradients."""
    return "goss" in (str(value(params, "boosting", "")), str(params.get("data_sample_strategy", "")))


def with_seeds_of(rounds: int, params: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the parameters for continuing after these rounds. If random numbers are drawn, the seeds change: the generators restart, and
    would otherwise repeat the draws of the first rounds. The result is the same on all workers."""
    if rounds == 0 or not draws(params):
        return dict(params)
    seed = int(value(params, "seed", 0))
    explicit = {name: int(given) for name, given in ((name, value(params, name)) for name in _SEEDS) if given is not None}
    return {**_without(params, "seed", *_SEEDS), **{name: (one + _STEP * rounds) % 2**31 for name, one in {"seed": seed, **explicit}.items()}}


def bundles(params: Mapping[str, Any]) -> bool:
    """Whether LightGBM may bundle sparse features."""
    return value(params, "enable_bundle") is None or _is_on(value(params, "enable_bundle"))


def difference(rounds: int, params: Mapping[str, Any], is_same_place: bool, before: int, now: int, is_bundled: bool) -> str:
    """Returns a message with the reasons why the model may differ from the model of an uninterrupted training run with `before` workers, if
    `now` workers continue after these rounds; empty if there are no reasons. `is_same_place`: whether each rank holds the rows that it held
    at the beginning. `is_bundled`: whether LightGBM may have bundled features."""
    reasons = []
    if before != now:
        reasons.append(f"{now} worker{'s' * (now > 1)}, not {before}, add{'s' * (now == 1)} up histograms, and LightGBM "
                       + ("counts the rows of leaves, which several workers estimate" if now == 1 else "estimates the rows of leaves from other sums"))
    elif not is_same_place:
        reasons.append("workers hold other rows than at the beginning, so sums are added in another order")
    drawn = draws(params)
    if drawn:
        reasons.append(f"random numbers ({', '.join(drawn)}) are drawn with other seeds")
    if uses_goss(params):
        reasons.append(f"goss takes all rows for {int(1 / float(value(params, 'learning_rate', 0.1)))} rounds, as at the beginning")
    if is_bundled:
        reasons.append("LightGBM may have bundled sparse features, and then ignores some of their values in training, but not in predictions, "
                       "from which rows start after a loss; enable_bundle=False avoids this")
    if not reasons:
        return ""
    return f"from round {rounds + 1} on, the model may differ from that of an undisturbed training: {'; '.join(reasons)}"

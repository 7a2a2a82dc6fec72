"""Detects ranks that train different models together, because they differ in quantile cuts, parameters, columns or categories, of which
XGBoost compares none."""
import contextlib
import json
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import xgboost as xgb

from warren._frameworks import same_rows as _same_rows
from warren._system import callers as _callers
from warren._xgboost.same_model import generator as _generator
from warren._xgboost.same_model.alone import alone
from warren.data._peers import Peers

#: Parameters in a model's configuration that may differ between ranks, because they do not change the model, or are derived from others.
_FREE = frozenset(("learning_rate", "min_split_loss", "reg_alpha", "reg_lambda", "cache_opt", "debug_synchronize", "max_cached_hist_node",
                   "num_trees", "predictor", "sparse_threshold", "updater_seq"))
#: Parameters that are part of a model.
_OF_MODEL = ("objective", "booster", "base_score")
#: The maximum number of nodes whose values are compared one by one.
_MOST_NODES = 2000
#: The relative difference of two values that rounding may cause, such as between processors of different kinds.
_ROUNDING = 1e-5
_CUTS = ("each rank probably has its own quantile cuts: make a QuantileDMatrix, or a DMatrix that other trainings have used, inside `with "
         "warren.xgboost.communicator():`, in the thread that trains, on all ranks")


def keeping_categories(inner: Callable[..., None]) -> Callable[..., None]:
    """Wraps DMatrix.__init__ to keep the categories of a pandas DataFrame's columns, of which a matrix keeps only the codes."""
    def make(self: Any, data: Any, *more: Any, **named: Any) -> None:
        inner(self, data, *more, **named)
        # The categories of a model replace those of the DataFrame.
        if hasattr(data, "iloc") and not hasattr(named.get("feature_types"), "to_arrow"):
            with contextlib.suppress(Exception):
                self.warren_values = {str(name): [str(one) for one in kind.categories] for name, kind in dict(data.dtypes).items()
                                      if hasattr(kind, "categories")}
    return make


def digest(matrix: Any, model: "xgb.Booster") -> int:
    """A hash of what must be the same on all ranks after the first round of a training. Of a continued model, only the first and last of
    the earlier rounds are examined. Makes no collective call."""
    if _has_columns_apart(matrix):
        return 0
    rounds = model.num_boosted_rounds()
    pieces = [_raw_of(model, at) for at in sorted({0, max(rounds - 2, 0), rounds - 1})]
    return _same_rows.digest(rounds, *(None if one is None else np.frombuffer(one, np.uint8) for one in pieces), _features_of(matrix),
                             sorted(_parameters_of(model).items()))


def require(matrix: Any, model: "xgb.Booster", peers: Peers) -> None:
    """Raises ValueError on all ranks if a rank's model differs from that of rank 0, and warns on rank 0 if ranks differ in what does not
    change the trees. Does nothing if the digests differ for a legitimate reason. A collective call."""
    try:
        own = _description(matrix, model)
    except Exception:  # pylint: disable=broad-except
        own = {}  # this rank must still call `allgather`, in which the other ranks wait
    found = peers.allgather(own)
    verdicts = [differences(found[0], one) for one in found]
    errors, doubts = ([rank for rank, verdict in enumerate(verdicts) if verdict[place]] for place in (0, 1))
    if errors:
        raise ValueError(f"{_named(errors)} of {peers.world} {'train' if errors[1:] else 'trains'} another model than rank 0: "
                         f"{verdicts[errors[0]][0].format(rank=errors[0])}")
    if doubts and peers.rank == 0:
        warnings.warn(f"{_named(doubts)} of {peers.world} {'train' if doubts[1:] else 'trains'} with other arguments than rank 0: "
                      f"{verdicts[doubts[0]][1].format(rank=doubts[0])}", stacklevel=_callers.stacklevel())


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _has_columns_apart(matrix: Any) -> bool:
    """Whether the ranks have different columns of the same rows."""
    return bool(matrix.data_split_mode()) if hasattr(matrix, "data_split_mode") else False


def _raw_of(model: "xgb.Booster", at: int, form: str = "ubj") -> Optional[bytes]:
    """Returns round `at` of a model, without names and attributes; None for a model without trees, or if this version of XGBoost cannot
    do this."""
    def raw() -> bytes:
        part = model[at:at + 1]
        part.feature_names = part.feature_types = None
        part.set_attr(**{name: None for name in part.attributes()})
        return bytes(part.save_raw(form))

    try:
        return bytes(alone(raw))  # a part is not configured yet, so that its first query is a collective call
    except Exception:  # pylint: disable=broad-except
        return None


def _features_of(matrix: Any) -> Dict[str, Any]:
    """The names, the columns of categories, and their values, as far as they are known."""
    types = matrix.feature_types
    values = getattr(matrix, "warren_values", None) or {}
    return {"names": matrix.feature_names or None,
            "categorical": None if types is None else [at for at, kind in enumerate(types) if kind == "c"],
            "values": [[name, *values[name]] for name in sorted(values)]}


def _parameters_of(model: "xgb.Booster") -> Dict[str, str]:
    """The parameters of a configured model that must be the same on all ranks."""
    def leaves(config: Any) -> List[Tuple[str, str]]:
        nested = [leaf for value in config.values() if isinstance(value, dict) for leaf in leaves(value)]
        return nested + [(name, value) for name, value in config.items() if isinstance(value, str) and name != "name"]

    learner = _generator.config_of(model)["learner"]
    found = dict(leaves({name: learner[name] for name in ("gradient_booster", "objective")}))
    found.update(booster=learner["gradient_booster"]["name"], objective=learner["objective"]["name"],
                 base_score=learner["learner_model_param"]["base_score"])
    draws_columns = any(float(value) != 1 for name, value in found.items() if name.startswith("colsample_"))
    if found["booster"] != "gbtree" or found.get("rate_drop", "0") != "0" or draws_columns and _generator.is_known():
        # Each rank draws trees to drop, and linear weights, by its own seed. Before 3.3, rank 0 draws the columns for all ranks.
        found["seed"] = learner["generic_param"]["seed"]
    return {name: value for name, value in found.items() if name not in _FREE}


def _description(matrix: Any, model: "xgb.Booster") -> Dict[str, Any]:
    """What `differences` compares, in full, for a message."""
    if _has_columns_apart(matrix):
        return {}
    rounds = model.num_boosted_rounds()
    found = {**_features_of(matrix), "parameters": _parameters_of(model), "rounds": rounds}
    for name, at in [("new", rounds - 1), *([("begun", 0)] if rounds > 1 else [])]:
        raw = _raw_of(model, at, "json")
        if raw is not None:
            found[name] = _trees_in(json.loads(raw))
    return found


def _trees_in(model: Any) -> List[Any]:
    """Returns a hash of the structure of a model's trees, and the feature and value of the first nodes; the feature of a leaf is -1."""
    booster = model["learner"]["gradient_booster"]
    trees = booster.get("gbtree", booster)["model"]["trees"]
    structure = _same_rows.digest(*(tree[name] for tree in trees
                                    for name in ("left_children", "right_children", "split_indices", "categories")))
    nodes = [[-1 if left == -1 else feature, value] for tree in trees
             for left, feature, value in zip(tree["left_children"], tree["split_indices"], tree["split_conditions"])]
    return [structure, nodes[:_MOST_NODES]]


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(np.asarray(one, float), np.asarray(other, float), rtol=_ROUNDING, atol=1e-12, equal_nan=True))


def _same_trees(one: Any, other: Any) -> bool:
    return bool(one[0] == other[0]) and _close([value for _, value in one[1]], [value for _, value in other[1]])


def _same_parameter(one: Optional[str], other: Optional[str]) -> bool:
    """Whether two values are the same, except for the rounding of an estimated base_score."""
    if one is None or other is None or one == other:
        return True
    try:
        return _close([float(part) for part in one.strip("[]").split(",")], [float(part) for part in other.strip("[]").split(",")])
    except ValueError:
        return False


def differences(first: Dict[str, Any], other: Dict[str, Any]) -> Tuple[str, str]:
    """Compares the descriptions of rank 0 and of another rank. Returns why their models differ, or "", and what else differs, or "", as
    texts in which the other rank is "{rank}". What a description lacks is not compared."""
    def both(name: str) -> bool:
        return first.get(name) is not None and other.get(name) is not None

    parameters = [name for name, value in (first["parameters"] if both("parameters") else {}).items()
                  if not _same_parameter(value, other["parameters"].get(name))]
    told = ""
    if parameters:
        # The objective and the booster have parameters of their own, which say less.
        name = next((one for one in (*_OF_MODEL, "tree_method") if one in parameters), parameters[0])
        here, there = (one["parameters"][name] for one in (first, other))
        told = _text(f"rank 0 has {name}={here}, and rank ", f" {name}={there}: all workers must give the same")
    columns = _columns(first, other) if both("names") else ""
    certain = _categories(first, other)
    if not certain and columns and sorted(first["names"]) == sorted(other["names"]):
        certain = columns
    is_begun_alike = not both("begun") or _same_trees(first["begun"], other["begun"])
    if not certain and (not is_begun_alike or both("rounds") and first["rounds"] != other["rounds"]):
        certain = "they continue different models (xgb_model)"
    if not certain and both("new") and not _same_trees(first["new"], other["new"]):
        certain = told or columns or _split(first, other)
    if not certain and any(one in parameters for one in _OF_MODEL):
        certain = told
    return certain, "" if certain else told or columns


def _text(before: str, after: str) -> str:
    """Returns a text for str.format, with the other rank's number between the two parts."""
    return before.replace("{", "{{").replace("}", "}}") + "{rank}" + after.replace("{", "{{").replace("}", "}}")


def _columns(first: Dict[str, Any], other: Dict[str, Any]) -> str:
    """The first difference of feature names."""
    one, two = first["names"], other["names"]
    if one == two:
        return ""
    at = next((at for at, (here, there) in enumerate(zip(one, two)) if here != there), min(len(one), len(two)))
    here, there = (repr(names[at]) if at < len(names) else "missing" for names in (one, two))
    return _text(f"feature {at} is {here} on rank 0, and {there} on rank ", ": give all workers the same columns in the same order")


def _categories(first: Dict[str, Any], other: Dict[str, Any]) -> str:
    """The first column whose codes mean different categories. A rank may lack the last categories."""
    if first.get("categorical") is not None and other.get("categorical") is not None and first["categorical"] != other["categorical"]:
        at = min(set(first["categorical"]) ^ set(other["categorical"]))
        kinds = ["categorical" if at in one["categorical"] else "numeric" for one in (first, other)]
        name = repr(first["names"][at]) if first.get("names") and at < len(first["names"]) else at
        return _text(f"feature {name} is {kinds[0]} on rank 0, and {kinds[1]} on rank ", ": give all workers columns of the same types")
    theirs = {name: values for name, *values in other.get("values") or ()}
    for name, *values in first.get("values") or ():
        others = theirs.get(name)
        if others is not None and any(one != two for one, two in zip(values, others)):
            here, there = (", ".join(some[:5]) + (", ..." if len(some) > 5 else "") for some in (values, others))
            return _text(f"the categories of {name!r} are {here} on rank 0, and {there} on rank ",
                         ": give all workers the same list, as with pandas.Categorical(column, categories=...)")
    return ""


def _split(first: Dict[str, Any], other: Dict[str, Any]) -> str:
    """The first node that differs, and the likely cause."""
    for here, there in zip(first["new"][1], other["new"][1]):
        if here[0] != there[0] or not _close(here[1], there[1]):
            one, two = (f"a leaf of {value:g}" if feature == -1 else f"a split of feature {feature} at {value:g}"
                        for feature, value in (here, there))
            return _text(f"a tree has {one} on rank 0, and {two} on rank ", f"; {_CUTS}")
    return _text("a tree has other nodes on rank 0 than on rank ", f"; {_CUTS}")

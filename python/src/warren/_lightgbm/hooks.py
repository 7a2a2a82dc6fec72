"""Replaces LightGBM functions whose results would otherwise differ between the workers of a job, and reports the rounds of training."""
import contextlib
import re
import sys
import warnings
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Sequence

import lightgbm
import numpy as np

from warren import rabit
from warren._frameworks import same_rows as _same_rows
from warren._frameworks.replacing import alone, replaced, warns_once
from warren._lightgbm import start as _start
from warren._lightgbm.elastic.parameters import value
from warren._lightgbm.metrics import number_of, over_workers, summed
from warren._rounds import training as _rounds
from warren._system import callers as _callers

#: The error message for a validation set whose features are not those of the training rows.
OTHER_FEATURES = ("a validation set has other columns than the training rows, or has them in another order, and LightGBM finds features by "
                  "their positions: give both the same features=[...]")
_ADVICE = ("give each worker its own rows, with warren.lightgbm.load_dataset for files, or with warren.data.scatter for a DataFrame "
           "that one worker has")


def _number_of_machines(given: Dict[str, Any]) -> int:
    return int(given.get("num_machines") or given.get("num_machine") or 0)


def _trains_linear_trees(given: Dict[str, Any]) -> bool:
    return any(given.get(name) not in (None, False, "false", "False", 0) for name in ("linear_tree", "linear_trees"))


def _require_together(given: Dict[str, Any]) -> None:
    """Raises ValueError for parameters with which LightGBM would not communicate over the job, and warns of those with which it trains on this
    worker's rows alone, as may be meant."""
    machines, learner = value(given, "machines"), str(value(given, "tree_learner", "serial"))
    if machines:
        raise ValueError(f"machines={machines!r}: LightGBM would open sockets of its own; the workers communicate over the job, so leave it out")
    number, workers = _number_of_machines(given), rabit.get_world_size()
    if number and (number != workers or learner not in ("data", "data_parallel", "voting", "voting_parallel")):
        raise ValueError(f"num_machines={number} and tree_learner={learner!r}: each of the {workers} workers would train on its rows alone; give "
                         "**warren.lightgbm.parameters() after all other parameters")
    if number == 0:
        warnings.warn("trains on this worker's rows alone, without the others: its parameters lack warren.lightgbm.parameters()",
                      stacklevel=_callers.stacklevel())
    elif _trains_linear_trees(given):
        warnings.warn("LightGBM trains linear trees on this worker's rows alone, without the others", stacklevel=_callers.stacklevel())


def _check_classes(labels: Any) -> None:
    """Raises ValueError unless all workers have the same classes: LGBMClassifier numbers the classes of one worker's rows. A collective
    call."""
    classes = np.unique(np.asarray(labels)).tolist()
    if summed([number_of(classes)]) != [rabit.get_world_size() * number_of(classes)]:
        shown = ", ".join(map(repr, classes[:5])) + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
        raise ValueError(f"rank {rabit.get_rank()} has rows of the classes {shown}, and other workers have different ones: LGBMClassifier "
                         "numbers the classes that a worker has, so all workers need rows of each; or number them yourself, and use "
                         "lightgbm.train")


def _sampling_rows(inner: Callable[..., None]) -> Callable[..., None]:
    """Wraps Dataset.__init__ to keep a few sample rows: LightGBM drops the original values once it has binned them."""
    def make(self: Any, data: Any = None, *more: Any, **named: Any) -> None:  # pylint: disable=redefined-outer-name
        self.warren_sample = _same_rows.sample(data)
        inner(self, data, *more, **named)
    return make


def _compare_rows(rows: "lightgbm.Dataset") -> None:
    def own_digest() -> Optional[int]:
        fields = [rows.get_label(), rows.get_weight(), rows.get_group(), rows.get_init_score()]
        if not getattr(rows, "warren_sample", None) and not _same_rows.labels_suffice(fields[0]):
            return None
        return _same_rows.digest(rows.num_data(), rows.num_feature(), getattr(rows, "warren_sample", None),
                                 *(None if one is None else np.asarray(one) for one in fields))

    _same_rows.check(lambda values: rabit.allreduce(values, rabit.MAX), rabit.get_rank(), rabit.get_world_size(), rows.num_data(),
                     getattr(rows, "warren_is_share", False), own_digest, _ADVICE)


def _compare_trees(model: "lightgbm.Booster", before: int) -> None:
    """Raises LightGBMError on some worker if the trees after the first `before` ones differ between the workers. A collective call."""
    text = model.model_to_string(num_iteration=1, start_iteration=before)
    own = number_of(re.findall(r"^(?:split_feature|threshold|leaf_value)=.*$", text, re.MULTILINE))
    if summed([own]) != [rabit.get_world_size() * own]:
        raise lightgbm.basic.LightGBMError(
            f"rank {rabit.get_rank()}: the workers are training different models: their parameters differ (random choices need the same seed on all "
            "workers), or a Dataset was constructed before communicator() and has the bins of one worker's rows")


def _beginning(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps Booster.update: the first round starts from the score that one process would compute from all rows, if Warren has loaded this
    worker's share and the objective is one of LightGBM's, and the ranks' rows and trees are compared after it. All ranks call `update` for each
    round, and `update` makes collective calls anyway."""
    def beginning(self: Any, train_set: Any = None, fobj: Any = None) -> Any:
        rows = self.train_set if train_set is None else train_set
        if self.current_iteration() > 0 or rows is None or _number_of_machines(self.params or {}) <= 1:
            return inner(self, train_set, fobj)
        if getattr(rows, "warren_is_share", False) and fobj is None:
            result = _start.from_all_rows(self, rows, summed, lambda: inner(self, train_set, fobj))
        else:
            result = inner(self, train_set, fobj)
        _compare_rows(rows)
        if not _trains_linear_trees(self.params):
            _compare_trees(self, max(self.current_iteration() - 1, 0))
        return result
    return beginning


#: This process's rank and the world size.
PLACE = _rounds.Place(rabit.get_rank, rabit.get_world_size)


def _metrics(evaluations: Sequence[Any]) -> Dict[str, float]:
    return {f"{one[0]}-{one[1]}": float(one[2]) for one in evaluations}


class ReportRounds:
    """See warren.lightgbm.report_rounds."""

    order = 25  # after LightGBM's log_evaluation and record_evaluation, and before early_stopping
    before_iteration = False

    def __init__(self, before: Callable[[], List[List[Any]]] = list) -> None:
        """`before` returns the evaluations of the rounds before the first one that this callback reports."""
        self._own: Optional[_rounds.Training] = None
        self._before = before

    def __call__(self, env: Any) -> None:
        number, rounds = env.iteration - env.begin_iteration + 1, env.end_iteration - env.begin_iteration
        training = _rounds.current()
        if training is None:
            if number == 1 or self._own is None:
                self._own = _rounds.begun("lightgbm", {}, rounds, PLACE, number - 1)
            training = self._own
        training.round(number, _metrics(env.evaluation_result_list or ()), lambda: enumerate(map(_metrics, self._before()), 1))
        if training is self._own and number == rounds:
            self._own.end(env.model)


def modules_of_train() -> List[Any]:
    """LightGBM's modules that have the function `train`; the estimators are only imported with scikit-learn."""
    return [one for one in (lightgbm, lightgbm.engine, sys.modules.get("lightgbm.sklearn")) if hasattr(one, "train")]


@contextlib.contextmanager
def same_features() -> Iterator[None]:
    """Within the block, a validation set that load_dataset has read is refused if its features or their categories are not those of the
    training rows: LightGBM finds features by their positions, and categories by their numbers."""
    def adding(inner: Callable[..., Any]) -> Callable[..., Any]:
        def add_valid(self: Any, data: Any, *more: Any, **named: Any) -> Any:
            columns, known = (getattr(self.train_set, name, None) for name in ("warren_columns", "warren_categories"))
            if columns and getattr(data, "warren_columns", None) not in (None, columns):
                raise ValueError(OTHER_FEATURES)
            for name, values in (getattr(data, "warren_categories", None) or {}).items():
                if known is not None and list(values) != list(known.get(name, ())):
                    raise ValueError(f"column {name!r} of a validation set has other categories than in the training rows, so their numbers differ: "
                                     "give load_dataset categories=train.warren_categories, or use warren.lightgbm.train with Data")
            return inner(self, data, *more, **named)
        return add_valid

    with replaced("add_valid", adding, lightgbm.Booster):
        yield


def reporting_rounds() -> ContextManager[None]:
    """Within the block, training in this thread reports its rounds, except by a lightgbm.train that the program imported by name earlier."""
    return _rounds.reporting("lightgbm", PLACE, modules_of_train(), ReportRounds, lambda _: ReportRounds())


@contextlib.contextmanager
def for_all_workers() -> Iterator[None]:
    """Within the block, all workers get the same metrics: LightGBM computes them over a worker's own rows, so early stopping could end the
    training of one worker while the others wait for it. Also warns about, or refuses, features that would train on one worker's rows only,
    and refuses classifiers if the workers have different classes."""
    def evaluation(inner: Callable[..., List[Any]]) -> Callable[..., List[Any]]:
        def of_all(self: Any, data_name: str, data_idx: int, feval: Any = None) -> List[Any]:
            found = inner(self, data_name=data_name, data_idx=data_idx, feval=feval)
            return over_workers(self, data_name, data_idx, found) if found else found
        return of_all

    def making(inner: Callable[..., None]) -> Callable[..., None]:
        def make(self: Any, params: Any = None, train_set: Any = None, *more: Any, **named: Any) -> None:
            if train_set is not None:
                _require_together(params or {})
            try:
                inner(self, params, train_set, *more, **named)
            except lightgbm.basic.LightGBMError as error:
                if re.search("sum of (labels|weights) is zero", str(error)):
                    raise lightgbm.basic.LightGBMError(
                        f"rank {rabit.get_rank()}: {error}: LightGBM demands of each worker's rows what one process demands of all; divide them in "
                        "another order (load_dataset's shuffle=SEED, or permuted rows), or use fewer workers") from error
                raise
        return make

    def taking_part(inner: Callable[..., Any]) -> Callable[..., Any]:
        def subset(self: Any, *more: Any, **named: Any) -> Any:
            part = inner(self, *more, **named)
            part.warren_is_share = getattr(self, "warren_is_share", False)
            return part
        return subset

    def fitting(inner: Callable[..., Any]) -> Callable[..., Any]:
        def fit(self: Any, X: Any, y: Any, *more: Any, **named: Any) -> Any:  # pylint: disable=invalid-name
            if self.get_params().get("num_machines", 1) > 1:
                _check_classes(y)
            return inner(self, X, y, *more, **named)
        return fit

    def refitting(_: Callable[..., Any]) -> Callable[..., Any]:
        def refit(*_: Any, **__: Any) -> None:
            raise lightgbm.basic.LightGBMError(
                f"rank {rabit.get_rank()}: Booster.refit fits the leaves to this worker's rows alone, and each of the "
                f"{rabit.get_world_size()} workers would get another model: call it outside of communicator(), in one process that has all "
                "rows")
        return refit

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced("__init__", making, lightgbm.Booster))
        stack.enter_context(replaced("__init__", _sampling_rows, lightgbm.Dataset))
        stack.enter_context(replaced("subset", taking_part, lightgbm.Dataset))
        workers = rabit.get_world_size()
        elsewhere = warns_once(lambda booster, *more, **named: _number_of_machines(booster.params or {}) > 1, lambda: alone("LightGBM", workers))
        stack.enter_context(replaced("update", _beginning, lightgbm.Booster, elsewhere=elsewhere))
        stack.enter_context(replaced("refit", refitting, lightgbm.Booster))
        if hasattr(lightgbm, "LGBMClassifier"):
            stack.enter_context(replaced("fit", fitting, lightgbm.LGBMClassifier))
        name = "_Booster__inner_eval"
        if hasattr(lightgbm.Booster, name):
            stack.enter_context(replaced(name, evaluation, lightgbm.Booster))
        else:
            warnings.warn(f"LightGBM {lightgbm.__version__} evaluates in an unknown way: metrics are those of this "
                          "worker's rows, and early stopping may differ between workers", stacklevel=_callers.stacklevel())
        yield

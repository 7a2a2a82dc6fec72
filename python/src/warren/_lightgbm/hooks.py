"""Replaces LightGBM functions whose results would otherwise differ between the workers of a job, and reports the rounds of training."""
import contextlib
import hashlib
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
from warren._rounds import training as _rounds
from warren._system import callers as _callers

_ADVICE = ("give each worker its own rows, with warren.lightgbm.load_dataset for files, or with warren.data.scatter for a DataFrame "
           "that one worker has")


def _with_value(evaluation: Any, value: float) -> Any:
    """Returns LightGBM's tuple for a metric (data name, metric name, value, whether higher is better, perhaps more) with another value.
    From LightGBM 4.7 on, it is a named tuple."""
    changed = (*evaluation[:2], value, *evaluation[3:])
    return type(evaluation)(*changed) if hasattr(evaluation, "_fields") else changed


def _weight(measured: "lightgbm.Dataset") -> float:
    """The sum of the weights of a Dataset's rows, or the number of rows if they have no weights."""
    weights = measured.get_weight()
    return float(measured.num_data() if weights is None else np.sum(weights, dtype=float))


def _summed(values: List[float]) -> List[float]:
    try:
        return list(rabit.allreduce(np.array(values), rabit.SUM))
    except RuntimeError as error:
        raise lightgbm.basic.LightGBMError(str(error)) from error


def _number_of(what: Any) -> float:
    """A 32-bit hash of a value, as a float, so that the sum over all workers is exact."""
    return float(int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:4], "big"))


def _mean_over_workers(data_name: str, found: List[Any], weight: float) -> List[Any]:
    """Returns the mean of each metric over the workers. `weight` is the total weight of this worker's rows: for a metric that is a mean
    over rows, the result is its value over the rows of all workers. All workers get the same bits. Raises LightGBMError if the workers
    evaluate different metrics."""
    names = [data_name, *(one[1] for one in found)]
    *values, total, number = _summed([one[2] * weight if weight else 0.0 for one in found] + [weight, _number_of(names)])
    if number != rabit.get_world_size() * _number_of(names):
        raise lightgbm.basic.LightGBMError(f"rank {rabit.get_rank()} evaluates {', '.join(names[1:])} of {data_name}, and other workers "
                                           "evaluate different ones: all need the same validation sets, names and metrics, in the same "
                                           "order")
    return [_with_value(one, float(value / total)) for one, value in zip(found, values)]


def _number_of_machines(given: Dict[str, Any]) -> int:
    return int(given.get("num_machines") or given.get("num_machine") or 0)


def _warn_of_what_trains_alone(given: Dict[str, Any]) -> None:
    if _number_of_machines(given) == 0:
        warnings.warn("trains on this worker's rows alone, without the others: its parameters lack warren.lightgbm.parameters()",
                      stacklevel=_callers.stacklevel())
    elif any(given.get(name) not in (None, False, "false", "False", 0) for name in ("linear_tree", "linear_trees")):
        warnings.warn("LightGBM trains linear trees on this worker's rows alone, without the others", stacklevel=_callers.stacklevel())


def _check_classes(labels: Any) -> None:
    """Raises ValueError unless all workers have the same classes: LGBMClassifier numbers the classes of one worker's rows. A collective
    call."""
    classes = np.unique(np.asarray(labels)).tolist()
    if _summed([_number_of(classes)]) != [rabit.get_world_size() * _number_of(classes)]:
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


def _beginning(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps Booster.update: the first round starts from the score that one process would compute from all rows, if Warren has loaded this
    worker's share and the objective is one of LightGBM's, and the ranks' rows are compared after it. All ranks call `update` for each
    round, and `update` makes collective calls anyway."""
    def beginning(self: Any, train_set: Any = None, fobj: Any = None) -> Any:
        rows = self.train_set if train_set is None else train_set
        if self.current_iteration() > 0 or rows is None or _number_of_machines(self.params or {}) <= 1:
            return inner(self, train_set, fobj)
        if getattr(rows, "warren_is_share", False) and fobj is None:
            result = _start.from_all_rows(self, rows, _summed, lambda: inner(self, train_set, fobj))
        else:
            result = inner(self, train_set, fobj)
        _compare_rows(rows)
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
            measured = self.train_set if data_idx == 0 else self.valid_sets[data_idx - 1]
            return _mean_over_workers(data_name, found, _weight(measured)) if found else found
        return of_all

    def making(inner: Callable[..., None]) -> Callable[..., None]:
        def make(self: Any, params: Any = None, train_set: Any = None, *more: Any, **named: Any) -> None:
            if train_set is not None:
                _warn_of_what_trains_alone(params or {})
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

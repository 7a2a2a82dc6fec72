"""XGBoost's training, prediction and scikit-learn interface with the arguments of 0.7 to 1.x, for `warren.compat`, which installs it. Needs
XGBoost 1.6 or later."""
import contextlib
import contextvars
import functools
import inspect
import json
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import xgboost as xgb

# The order of arguments in 1.2. Current versions require names for most arguments, and have removed some, which moved later ones up.
_TRAIN = ("params", "dtrain", "num_boost_round", "evals", "obj", "feval", "maximize", "early_stopping_rounds",
          "evals_result", "verbose_eval", "xgb_model", "callbacks", "learning_rates")
_CV = ("params", "dtrain", "num_boost_round", "nfold", "stratified", "folds", "metrics", "obj", "feval", "maximize",
       "early_stopping_rounds", "fpreproc", "as_pandas", "verbose_eval", "show_stdv", "seed", "callbacks", "shuffle")
_PREDICT = ("data", "output_margin", "ntree_limit", "pred_leaf", "pred_contribs", "approx_contribs",
            "pred_interactions", "validate_features", "training")
#: The order of arguments of a scikit-learn model's methods, after the rows.
_OF_A_MODEL = {"predict": ("output_margin", "ntree_limit", "validate_features", "base_margin"),
               "predict_proba": ("ntree_limit", "validate_features", "base_margin"),
               "apply": ("ntree_limit",)}


class CallbackEnv(NamedTuple):
    """The argument of a callback in 1.2, where callbacks are functions."""

    model: Any
    cvfolds: Any
    iteration: int
    begin_iteration: int
    end_iteration: int
    rank: int
    evaluation_result_list: Optional[List[Tuple[Any, ...]]]


class EarlyStopException(Exception):
    """Raised by a callback to end the training."""

    def __init__(self, best_iteration: int) -> None:
        super().__init__()
        self.best_iteration = best_iteration


def _named(order: Sequence[str], args: Sequence[Any], options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns all arguments by name. Raises TypeError if there are too many, or if one is given twice."""
    if len(args) > len(order):
        raise TypeError(f"expected at most {len(order)} arguments, found {len(args)}")
    twice = [name for name in order[:len(args)] if name in options]
    if twice:
        raise TypeError(f"got multiple values for argument '{twice[0]}'")
    return {**dict(zip(order, args)), **options}


def _takes(function: Callable[..., Any], name: str) -> bool:
    return name in inspect.signature(function).parameters


class _Feval:
    """A metric that is called with margins, as `feval` was from 1.2 to 2.1."""

    def __init__(self, feval: Callable[..., Any]) -> None:
        self._feval = feval

    def __call__(self, predictions: Any, matrix: Any) -> Any:
        return self._feval(predictions, matrix)


class _Function(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """A callback that is a function of CallbackEnv. It is called before each round if it has a true attribute `before_iteration`, else
    after each round."""

    def __init__(self, function: Callable[[CallbackEnv], None], rounds: int) -> None:
        super().__init__()
        self._function, self._rounds = function, rounds
        self._before = bool(getattr(function, "before_iteration", False))

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Returns whether training should stop."""
        del evals_log
        return self._before and self._call(model, epoch, None)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Returns whether training should stop."""
        results: List[Tuple[Any, ...]] = []
        for data, metrics in evals_log.items():
            for metric, values in metrics.items():
                last = values[-1]
                results.append((f"{data}-{metric}", *(last if isinstance(last, tuple) else (last,))))
        return not self._before and self._call(model, epoch, results)

    def _call(self, model: Any, epoch: int, results: Optional[List[Tuple[Any, ...]]]) -> bool:
        folds = getattr(model, "cvfolds", None)
        env = CallbackEnv(model if folds is None else None, folds, epoch, 0, self._rounds,
                          int(xgb.collective.get_rank()), results)
        try:
            self._function(env)
        except EarlyStopException as stop:
            model.set_attr(best_iteration=str(stop.best_iteration))
            return True
        return False


class _Record(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Copies the evaluation results into the caller's dictionary after each round."""

    def __init__(self, eval_result: Dict[str, Any]) -> None:
        super().__init__()
        if not isinstance(eval_result, dict):
            raise TypeError("eval_result must be a dictionary")
        eval_result.clear()
        self._eval_result = eval_result

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Never stops the training."""
        del model, epoch
        self._eval_result.update(evals_log)
        return False


class _LearningRates(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """Sets the learning rate of each round: from a list, or from a function of the round and, if it takes two arguments, the number of
    rounds."""

    def __init__(self, rates: Any) -> None:
        super().__init__()
        self._rates, self.rounds = rates, 0

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Never stops the training."""
        del evals_log
        if not callable(self._rates):
            if len(self._rates) != self.rounds:
                raise ValueError(f"learning_rates has {len(self._rates)} rates for {self.rounds} rounds")
            rate = self._rates[epoch]
        else:
            both = len(inspect.signature(self._rates).parameters) > 1
            rate = self._rates(epoch, self.rounds) if both else self._rates(epoch)
        model.set_param("learning_rate", str(rate))
        return False


def _callbacks(given: Optional[Sequence[Any]], rounds: int) -> List[Any]:
    """Returns the callbacks in the form of current versions: functions are wrapped in callback objects."""
    found = []
    for callback in given or []:
        if isinstance(callback, _LearningRates):
            callback.rounds = rounds
        today = isinstance(callback, xgb.callback.TrainingCallback)
        found.append(callback if today else _Function(callback, rounds))
    return found


def _objective(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps an objective function that may return gradients and Hessians as lists."""
    @functools.wraps(function)
    def arrays(*args: Any) -> Any:
        return tuple(np.asarray(values, np.float32) if isinstance(values, (list, tuple)) else values
                     for values in function(*args))
    return arrays


def _adapt(original: Callable[..., Any], options: Dict[str, Any]) -> Dict[str, Any]:
    """Converts the arguments that `train` and `cv` have in common."""
    if not isinstance(options.get("params", {}), dict):
        options["params"] = list(options["params"])  # callers may pass param.items()
    if callable(options.get("obj")):
        options["obj"] = _objective(options["obj"])
    if "feval" in options and not _takes(original, "feval"):
        feval = options.pop("feval")
        if feval is not None:
            options["custom_metric"] = _Feval(feval)
    # False was the default, which stood for the metric's known direction; now None stands for it.
    options["maximize"] = options.get("maximize") or None
    rounds = options.get("num_boost_round", 10)
    rates = options.pop("learning_rates", None)
    scheduled = [] if rates is None else [_LearningRates(rates)]
    options["callbacks"] = _callbacks([*(options.get("callbacks") or []), *scheduled], rounds)
    return options


def _train_and_cv() -> None:
    train, cv, eval_set = xgb.train, xgb.cv, xgb.Booster.eval_set

    @functools.wraps(train)
    def train_1x(*args: Any, **options: Any) -> Any:
        return train(**_adapt(train, _named(_TRAIN, args, options)))

    @functools.wraps(cv)
    def cv_1x(*args: Any, **options: Any) -> Any:
        return cv(**_adapt(cv, _named(_CV, args, options)))

    @functools.wraps(eval_set)
    def eval_set_1x(self: Any, evals: Any, iteration: int = 0, feval: Any = None, output_margin: bool = True) -> Any:
        return eval_set(self, evals, iteration, feval, output_margin or isinstance(feval, _Feval))

    xgb.Booster.eval_set = eval_set_1x
    xgb.train = xgb.training.train = train_1x
    xgb.cv = xgb.training.cv = cv_1x


def _functional_callbacks() -> None:
    module = xgb.callback
    if hasattr(module, "print_evaluation"):
        return
    module.print_evaluation = lambda period=1, show_stdv=True: module.EvaluationMonitor(
        period=period, show_stdv=show_stdv)
    module.record_evaluation = _Record
    module.reset_learning_rate = _LearningRates
    module.early_stop = lambda stopping_rounds, maximize=False, verbose=True: module.EarlyStopping(
        rounds=stopping_rounds, maximize=maximize or None)
    module.CallbackEnv = xgb.core.CallbackEnv = CallbackEnv
    module.EarlyStopException = xgb.core.EarlyStopException = EarlyStopException


def _trees_of_a_round(booster: Any) -> int:
    """Returns the number of trees that a round adds for each class (num_parallel_tree)."""
    def find(config: Any) -> Optional[int]:
        if not isinstance(config, dict):
            return None
        if "num_parallel_tree" in config:
            return int(config["num_parallel_tree"])
        return next((found for found in map(find, config.values()) if found is not None), None)
    return find(json.loads(booster.save_config())) or 1


def _rounds_of(booster: Any, ntree_limit: int) -> Tuple[int, int]:
    """Returns the iteration_range of the first `ntree_limit` trees of each class; the range of all trees if `ntree_limit` is 0 or too
    large."""
    rounds = int(booster.num_boosted_rounds())
    limit = max(ntree_limit // _trees_of_a_round(booster), 1) if ntree_limit > 0 else rounds
    return 0, min(limit, rounds)


@contextlib.contextmanager
def _whole_map(booster: Any, fmap: Any) -> Iterator[str]:
    """Yields the path of the feature map, completed if necessary: a map may lack the last features, as does the one for the mushroom data
    in XGBoost's own tutorial."""
    path = os.fspath(fmap)
    lines = []
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file if line.strip()]
    features = int(booster.num_features())
    if not lines or len(lines) >= features:
        yield path
        return
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as whole:
        whole.writelines(f"{line}\n" for line in lines)
        whole.writelines(f"{feature}\tf{feature}\tq\n" for feature in range(len(lines), features))
        whole.flush()
        yield whole.name


def _feature_maps(name: str) -> None:
    method = getattr(xgb.Booster, name)

    @functools.wraps(method)
    def method_1x(self: Any, fmap: Any = "", *args: Any, **options: Any) -> Any:
        with _whole_map(self, fmap) as whole:
            return method(self, whole, *args, **options)

    setattr(xgb.Booster, name, method_1x)


def _booster() -> None:
    booster = xgb.Booster
    if not hasattr(booster, "save_rabit_checkpoint"):
        booster.save_rabit_checkpoint = lambda self: None
        booster.load_rabit_checkpoint = lambda self: 0  # the version; 0 means that nothing was saved
    boost = booster.boost
    if _takes(boost, "iteration"):
        @functools.wraps(boost)
        def boost_1x(self: Any, dtrain: Any, *args: Any, **options: Any) -> Any:
            if "iteration" not in options and (len(args) + len(options) == 2):
                given = _named(("grad", "hess"), args, options)
                as_floats = {name: np.asarray(values, dtype=np.float32) for name, values in given.items()}
                return boost(self, dtrain, self.num_boosted_rounds(), **as_floats)
            return boost(self, dtrain, *args, **options)

        booster.boost = boost_1x
    predict = booster.predict

    @functools.wraps(predict)
    def predict_1x(self: Any, *args: Any, **options: Any) -> Any:
        given = _named(_PREDICT, args, options)
        limit = given.pop("ntree_limit", None)
        if limit:
            given["iteration_range"] = _rounds_of(self, int(limit))
        return predict(self, **given)

    booster.predict = predict_1x
    best: Any = getattr(booster, "best_iteration", None)
    if best is None:  # in this version, training sets it on the booster, and the class lacks it
        return

    def best_iteration(self: Any) -> int:
        """Without early stopping, the last round is the best."""
        try:
            return int(best.fget(self))
        except AttributeError:
            return int(self.num_boosted_rounds()) - 1

    booster.best_iteration = property(best_iteration, best.fset)
    booster.best_ntree_limit = property(lambda self: (self.best_iteration + 1) * _trees_of_a_round(self))


#: A metric function passed to `fit`, set while `fit` runs.
_metric_of_fit: "contextvars.ContextVar[Any]" = contextvars.ContextVar("metric of fit", default=None)


@contextlib.contextmanager
def _parameters(model: Any, given: Dict[str, Any]) -> Iterator[None]:
    """Sets, for this call only, the arguments of `fit` that have become parameters of the model."""
    before = {name: getattr(model, name, None) for name in given}
    token = _metric_of_fit.set(None)
    if callable(given.get("eval_metric")):
        _metric_of_fit.set(given["eval_metric"])
        given = {**given, "eval_metric": before["eval_metric"]}
    model.set_params(**given)
    try:
        yield
    finally:
        model.set_params(**before)
        _metric_of_fit.reset(token)


def _fit(kind: Any) -> None:
    fit = kind.__dict__.get("fit")
    if fit is None or _takes(fit, "eval_metric"):
        return

    @functools.wraps(fit)
    def fit_1x(self: Any, *args: Any, **options: Any) -> Any:
        moved = ("eval_metric", "early_stopping_rounds", "callbacks")
        given = {name: options.pop(name) for name in moved if name in options}
        with _parameters(self, {name: value for name, value in given.items() if value is not None}):
            return fit(self, *args, **options)

    kind.fit = fit_1x


def _predictions(kind: Any, name: str) -> None:
    method = kind.__dict__.get(name)
    if method is None:
        return
    order = ("X", *_OF_A_MODEL[name])

    @functools.wraps(method)
    def method_1x(self: Any, *args: Any, **options: Any) -> Any:
        if "data" in options:
            options["X"] = options.pop("data")
        given = _named(order, args, options)
        limit = given.pop("ntree_limit", None)
        if limit is not None:
            given["iteration_range"] = _rounds_of(self.get_booster(), int(limit))
        return method(self, **given)

    setattr(kind, name, method_1x)


def _scikit_learn() -> None:
    if not hasattr(xgb, "XGBModel"):
        return
    train = xgb.train

    @functools.wraps(train)
    def train_of_fit(*args: Any, **options: Any) -> Any:
        metric = _metric_of_fit.get()
        return train(*args, **(options if metric is None else {**options, "custom_metric": metric}))

    xgb.sklearn.train = train_of_fit
    for kind in (xgb.XGBModel, xgb.XGBClassifier, xgb.XGBRanker):
        _fit(kind)
        for name in _OF_A_MODEL:
            _predictions(kind, name)
    if not hasattr(xgb.XGBModel, "best_ntree_limit"):
        xgb.XGBModel.best_ntree_limit = property(lambda self: self.get_booster().best_ntree_limit)


def install() -> None:
    """Installs all of these functions and methods in XGBoost. Called once per process."""
    _functional_callbacks()
    _train_and_cv()
    _booster()
    _feature_maps("get_dump")
    _feature_maps("get_score")
    _scikit_learn()

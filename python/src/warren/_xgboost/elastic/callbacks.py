"""The callbacks of an elastic training, and the states that they have."""
import copy
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np
import xgboost as xgb


class ElasticCallback(xgb.callback.TrainingCallback):  # type: ignore[misc]
    """See warren.xgboost.ElasticCallback."""

    def save(self) -> Any:
        """Returns the state."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Sets the state."""
        raise NotImplementedError


#: The names and states of the callbacks that have states, in their order, and the parameters that callbacks have set.
State = Tuple[List[Tuple[str, Any]], Dict[str, Any]]


class Callbacks:
    """The caller's callbacks, and those that xgboost.train adds."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.all: List[Any] = list(options.get("callbacks") or ())
        #: Whether there are callbacks of the caller, which may make collective calls, and may decide on some workers only.
        self.any_of_caller = any(not type(one).__module__.startswith("xgboost.") for one in self.all)
        verbose = options.get("verbose_eval", True)
        if verbose:
            self.all.append(xgb.callback.EvaluationMonitor(period=1 if verbose is True else verbose))
        if options.get("early_stopping_rounds"):
            self.all.append(xgb.callback.EarlyStopping(rounds=options["early_stopping_rounds"], maximize=options.get("maximize")))
        self._parameters: Dict[str, Any] = {}

    def state(self) -> State:
        """The state now."""
        return [(_name(one), _state(one)) for one in self.all if _has_state(one)], dict(self._parameters)

    def names(self) -> List[str]:
        """The names of the callbacks whose states matter for the model."""
        return [_name(one) for one in self.all if _has_state(one) and not isinstance(one, xgb.callback.EvaluationMonitor)]

    def restore(self, state: State) -> None:
        """Sets the state. A checkpoint may be of a training with another `verbose_eval`: an EvaluationMonitor without a state keeps its own,
        and a state without one is left out."""
        states, self._parameters = [tuple(one) for one in state[0]], dict(state[1])
        for one in filter(_has_state, self.all):
            place = next((number for number, (name, _) in enumerate(states) if name == _name(one)), None)
            if place is None:
                continue
            _, of_one = states.pop(place)
            if isinstance(one, ElasticCallback):
                one.restore(copy.deepcopy(of_one))
            else:
                vars(one).update(copy.deepcopy(of_one))

    def apply_to(self, model: "xgb.Booster") -> None:
        """Sets the parameters that callbacks have set: a saved model does not have them."""
        if self._parameters:
            model.set_param(dict(self._parameters))

    def recording(self, model: "xgb.Booster") -> Callable[..., Any]:
        """For replaced("set_param", ...): notes the parameters that are set for this model."""
        def wrap(inner: Callable[..., None]) -> Callable[..., None]:
            def set_param(booster: Any, params: Any, value: Any = None) -> None:
                if booster is model:
                    self._parameters.update({params: value} if isinstance(params, str) else dict(params))
                inner(booster, params, value)
            return set_param
        return wrap


def _name(callback: Any) -> str:
    return f"{type(callback).__module__}.{type(callback).__qualname__}"


def _has_state(callback: Any) -> bool:
    return isinstance(callback, (ElasticCallback, xgb.callback.EarlyStopping, xgb.callback.EvaluationMonitor))


def _state(callback: Any) -> Any:
    """What the callback has saved, or the fields of one of XGBoost's callbacks, without functions."""
    if isinstance(callback, ElasticCallback):
        return copy.deepcopy(callback.save())
    return {name: copy.deepcopy(value) for name, value in vars(callback).items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(one) for of_one in value.items() for one in of_one)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic))


def shorten(history: Any, lengths: Mapping[str, Mapping[str, int]]) -> None:
    """Removes the values that a failed evaluation has added. `lengths`: as before the evaluation."""
    for name, of_one in history.items():
        for metric, values in of_one.items():
            del values[lengths.get(name, {}).get(metric, 0):]


def lengths_of(history: Mapping[str, Mapping[str, Sequence[Any]]]) -> Dict[str, Dict[str, int]]:
    """The number of values of each evaluation set and metric."""
    return {name: {metric: len(values) for metric, values in of_one.items()} for name, of_one in history.items()}

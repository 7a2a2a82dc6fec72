"""XGBoost's callbacks in elastic training."""
from typing import Any, Dict, List, Mapping, Sequence

import xgboost as xgb

from warren._elastic import callbacks as _callbacks
from warren._elastic.callbacks import name_of

#: XGBoost's callbacks whose states do not matter for the model.
_WITHOUT_EFFECT = xgb.callback.EvaluationMonitor, xgb.callback.TrainingCheckPoint


class ElasticCallback(_callbacks.Stateful, xgb.callback.TrainingCallback):  # type: ignore[misc]
    """See warren.xgboost.ElasticCallback."""


class Callbacks(_callbacks.Callbacks):
    """The caller's callbacks, and those that xgboost.train adds."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        # TrainingCheckPoint counts rounds; its folder and its interval may differ between the processes.
        super().__init__(options.get("callbacks") or (), {xgb.callback.EarlyStopping: (), xgb.callback.EvaluationMonitor: (),
                                                          xgb.callback.TrainingCheckPoint: ("_start", "_epoch")})
        #: Whether the caller passed callbacks that are not XGBoost's own. They may make collective calls, and may act on some workers only.
        self.any_of_caller = any(not type(one).__module__.startswith("xgboost.") for one in self.all)
        verbose = options.get("verbose_eval", True)
        if verbose:
            self.all.append(xgb.callback.EvaluationMonitor(period=1 if verbose is True else verbose))
        if options.get("early_stopping_rounds"):
            self.all.append(xgb.callback.EarlyStopping(rounds=options["early_stopping_rounds"], maximize=options.get("maximize")))

    def names(self) -> List[str]:
        """The names of the callbacks whose states matter for the model."""
        return [name_of(one) for one in self.with_states() if not isinstance(one, _WITHOUT_EFFECT)]

    def apply_to(self, model: "xgb.Booster") -> None:
        """Sets the recorded parameters of callbacks on `model`."""
        if self.parameters:
            model.set_param(dict(self.parameters))


def shorten(history: Any, lengths: Mapping[str, Mapping[str, int]]) -> None:
    """Removes the values that a failed evaluation has added. `lengths`: the result of lengths_of before the evaluation."""
    for name, of_one in history.items():
        for metric, values in of_one.items():
            del values[lengths.get(name, {}).get(metric, 0):]


def lengths_of(history: Mapping[str, Mapping[str, Sequence[Any]]]) -> Dict[str, Dict[str, int]]:
    """The number of values of each evaluation set and metric."""
    return {name: {metric: len(values) for metric, values in of_one.items()} for name, of_one in history.items()}

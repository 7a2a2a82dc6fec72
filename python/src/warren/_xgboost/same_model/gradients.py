"""Gradients and Hessians of XGBoost's objectives, for exact sums of them (exact.py). Sources: Friedman, "Greedy function approximation",
2001, for the losses; XGBoost's documentation for the parameters."""
from typing import Any, Callable, Dict, Mapping, Tuple

import numpy as np

#: The smallest Hessian that XGBoost uses for probabilities.
_LEAST = 1e-16
#: A function from margins, labels and parameters to gradients and Hessians: float64 arrays in the shape of the margins.
Function = Callable[[Any, Any, Mapping[str, Any]], Tuple[Any, Any]]


def _weights_of_ones(labels: Any, params: Mapping[str, Any]) -> Any:
    """The weights of rows by `scale_pos_weight`, which XGBoost applies to labels of 1, also for squared error."""
    given = params.get("scale_pos_weight")
    return np.where(labels == 1, float(1 if given is None else given), 1)


def _squared_error(margins: Any, labels: Any, params: Mapping[str, Any]) -> Tuple[Any, Any]:
    weights = _weights_of_ones(labels, params)
    return weights * (margins - labels), weights * np.ones_like(margins)


def _logistic(margins: Any, labels: Any, params: Mapping[str, Any]) -> Tuple[Any, Any]:
    chances = 1 / (1 + np.exp(-margins))
    weights = _weights_of_ones(labels, params)
    return weights * (chances - labels), weights * np.maximum(chances * (1 - chances), _LEAST)


def _softmax(margins: Any, labels: Any, _: Mapping[str, Any]) -> Tuple[Any, Any]:
    powers = np.exp(margins - margins.max(axis=1, keepdims=True, initial=-np.inf))
    chances = powers / powers.sum(axis=1, keepdims=True)
    gradients = chances.copy()
    gradients[np.arange(len(labels)), labels.reshape(-1).astype(np.int64)] -= 1
    return gradients, np.maximum(2 * chances * (1 - chances), _LEAST)


def _poisson(margins: Any, labels: Any, params: Mapping[str, Any]) -> Tuple[Any, Any]:
    given = params.get("max_delta_step")
    return np.exp(margins) - labels, np.exp(margins + float(0.7 if given is None else given))


def _gamma(margins: Any, labels: Any, _: Mapping[str, Any]) -> Tuple[Any, Any]:
    ratios = labels * np.exp(-margins)
    return 1 - ratios, ratios


def _tweedie(margins: Any, labels: Any, params: Mapping[str, Any]) -> Tuple[Any, Any]:
    power = float(params.get("tweedie_variance_power") or 1.5)
    first, second = labels * np.exp((1 - power) * margins), np.exp((2 - power) * margins)
    return second - first, (2 - power) * second - (1 - power) * first


def _pseudo_huber(margins: Any, labels: Any, params: Mapping[str, Any]) -> Tuple[Any, Any]:
    slope = float(params.get("huber_slope") or 1) ** 2
    errors = margins - labels
    scale = np.sqrt(1 + errors ** 2 / slope)
    return errors / scale, slope / ((slope + errors ** 2) * scale)


#: The functions of XGBoost's objectives.
OF_OBJECTIVES: Dict[str, Function] = {
    "reg:squarederror": _squared_error, "binary:logistic": _logistic, "binary:logitraw": _logistic, "reg:logistic": _logistic,
    "multi:softprob": _softmax, "multi:softmax": _softmax, "count:poisson": _poisson, "reg:gamma": _gamma, "reg:tweedie": _tweedie,
    "reg:pseudohubererror": _pseudo_huber}

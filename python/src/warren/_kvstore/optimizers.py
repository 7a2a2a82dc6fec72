"""Optimizers on the servers of a key-value store: their interface, a wrapper for MXNet's, and an updater that applies one to all keys."""
import sys
from typing import Any, Callable, Dict, Protocol, Tuple

from warren._kvstore.values import Key
from warren._parameter_server.shards import Array


class Optimizer(Protocol):
    """MXNet's optimizer interface. Arrays are NumPy arrays: the whole value of a key or, if the value is spread over several servers, one
    server's flat part."""

    def create_state(self, index: Any, weight: Any) -> Any:
        ...

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Changes the weight in place."""


class _MxnetOptimizer:
    """Wraps an MXNet optimizer. Since the optimizer takes MXNet arrays, each key's state includes the weight as an MXNet array."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def create_state(self, index: Any, weight: Array) -> Tuple[Any, Any]:
        own = sys.modules["mxnet"].nd.array(weight, dtype=weight.dtype)
        return own, self._optimizer.create_state_multi_precision(index, own)

    def update(self, index: Any, weight: Array, grad: Array, state: Tuple[Any, Any]) -> None:
        own, of_optimizer = state
        self._optimizer.update_multi_precision(index, own, sys.modules["mxnet"].nd.array(grad, dtype=grad.dtype), of_optimizer)
        weight[...] = own.asnumpy()


def numpy_optimizer(optimizer: Any) -> Optimizer:
    """Returns the optimizer itself or, for an MXNet optimizer, a wrapper that takes NumPy arrays. Raises TypeError for an object with
    another interface."""
    mxnet = sys.modules.get("mxnet")
    if mxnet is not None and isinstance(optimizer, mxnet.optimizer.Optimizer):
        return _MxnetOptimizer(optimizer)
    if not callable(getattr(optimizer, "create_state", None)) or not callable(getattr(optimizer, "update", None)):
        raise TypeError("set_optimizer takes an object with create_state(index, weight) and update(index, weight, grad, state), such "
                        f"as kvstore.SGD or kvstore.TorchOptimizer(torch.optim.Adam), not {type(optimizer).__name__}")
    found: Optimizer = optimizer
    return found


#: A function (key, pushed, stored) that updates the stored value in place from the pushed one.
Updater = Callable[[Key, Array, Array], None]


class OptimizerUpdater:
    """Applies one optimizer to all keys, with a state for each key."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer, self._states = optimizer, {}  # type: Optimizer, Dict[Key, Any]

    def __call__(self, key: Key, pushed: Array, stored: Array) -> None:
        if key not in self._states:
            self._states[key] = self._optimizer.create_state(key, stored)
        self._optimizer.update(key, stored, pushed, self._states[key])

"""The callbacks of an elastic training, and the states that they have."""
import copy
from typing import Any, Callable, Dict, List, Sequence, Tuple, Type

import numpy as np


class Stateful:
    """A callback with a state that other workers must get: ElasticCallback of warren.xgboost and of warren.lightgbm."""

    def save(self) -> Any:
        """Returns the state."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Sets the state."""
        raise NotImplementedError


#: The names and states of the callbacks that have states, in their order, and the parameters that callbacks have set.
State = Tuple[List[Tuple[str, Any]], Dict[str, Any]]


class Callbacks:
    """Callbacks with their states: those of the kind Stateful save them; those of the library's `own_kinds` have them in their fields."""

    def __init__(self, callbacks: Sequence[Any], own_kinds: Tuple[Type[Any], ...] = ()) -> None:
        self.all: List[Any] = list(callbacks)
        self._own_kinds = own_kinds
        #: The parameters that callbacks have set: a saved model does not have them.
        self.parameters: Dict[str, Any] = {}

    def state(self) -> State:
        """The state now."""
        return [(name_of(one), _state(one)) for one in self.with_states()], dict(self.parameters)

    def restore(self, state: State) -> None:
        """Sets the state. A checkpoint may be of a training with other callbacks that only show something: a callback without a state keeps
        its own, and a state without a callback is left out."""
        states, self.parameters = [tuple(one) for one in state[0]], dict(state[1])
        for one in self.with_states():
            place = next((number for number, (name, _) in enumerate(states) if name == name_of(one)), None)
            if place is None:
                continue
            _, of_one = states.pop(place)
            if isinstance(one, Stateful):
                one.restore(copy.deepcopy(of_one))
            else:
                vars(one).update(copy.deepcopy(of_one))

    def with_states(self) -> List[Any]:
        """The callbacks that have states."""
        return [one for one in self.all if isinstance(one, (Stateful, *self._own_kinds))]

    def recording(self, model: Any) -> Callable[..., Any]:
        """For replaced(NAME, ...), where NAME is the model's method that sets parameters: notes those that are set for this model."""
        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            def setting(one: Any, params: Any, *value: Any) -> Any:
                if one is model:
                    self.parameters.update({params: value[0] if value else None} if isinstance(params, str) else dict(params))
                return inner(one, params, *value)
            return setting
        return wrap


def name_of(callback: Any) -> str:
    """The name of its class."""
    return f"{type(callback).__module__}.{type(callback).__qualname__}"


def _state(callback: Any) -> Any:
    """What the callback has saved, or the fields of one of the library's callbacks, without functions."""
    if isinstance(callback, Stateful):
        return copy.deepcopy(callback.save())
    return {name: copy.deepcopy(value) for name, value in vars(callback).items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(one) for of_one in value.items() for one in of_one)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic))

"""The callbacks of elastic training, and their states."""
import copy
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type

import numpy as np


class Stateful:
    """A callback whose state is passed on to other workers. It is warren.lightgbm.ElasticCallback, and a base of
    warren.xgboost.ElasticCallback."""

    def save(self) -> Any:
        """Returns the state."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Sets the state."""
        raise NotImplementedError


#: The names and states of the callbacks that have states, in the order of the callbacks, and the parameters that callbacks have set.
State = Tuple[List[Tuple[str, Any]], Dict[str, Any]]


class Callbacks:
    """Callbacks with their states. A Stateful callback saves its state itself; the state of one of the library's `own_kinds` consists of its
    attributes with these names or, without names, of all that are plain data."""

    def __init__(self, callbacks: Sequence[Any], own_kinds: Optional[Mapping[Type[Any], Sequence[str]]] = None) -> None:
        self.all: List[Any] = list(callbacks)
        self._own_kinds = dict(own_kinds or {})
        #: The parameters that callbacks have set, which a saved model does not contain.
        self.parameters: Dict[str, Any] = {}

    def state(self) -> State:
        """Returns the current states of the callbacks."""
        return [(name_of(one), self._state(one)) for one in self.with_states()], dict(self.parameters)

    def restore(self, state: State) -> None:
        """Sets the states of the callbacks. A checkpoint may come from a run with different callbacks, if these only display something: a
        callback without a saved state keeps its own, and a saved state without a callback is ignored."""
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

    def _state(self, callback: Any) -> Any:
        if isinstance(callback, Stateful):
            return copy.deepcopy(callback.save())
        names = next(names for kind, names in self._own_kinds.items() if isinstance(callback, kind))
        return {name: copy.deepcopy(value) for name, value in vars(callback).items() if (name in names if names else _is_plain(value))}

    def recording(self, model: Any) -> Callable[..., Any]:
        """For replaced(NAME, ...), where NAME is the model's method that sets parameters: records the parameters that are set for this
        model."""
        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            def setting(one: Any, params: Any, *value: Any) -> Any:
                if one is model:
                    self.parameters.update({params: value[0] if value else None} if isinstance(params, str) else dict(params))
                return inner(one, params, *value)
            return setting
        return wrap


def name_of(callback: Any) -> str:
    """The qualified name of the callback's class."""
    return f"{type(callback).__module__}.{type(callback).__qualname__}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(one) for of_one in value.items() for one in of_one)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.generic))

"""Copies a model's parameters and an optimizer's state from one rank to all ranks."""
from typing import Any, Dict, Iterable, List, Tuple, Union

import torch
from torch import Tensor

from warren.horovod._job import rank
from warren.horovod._objects import broadcast_object
from warren.horovod.torch._ops import broadcast_async_, synchronize


def broadcast_parameters(params: Union[Dict[str, Any], Iterable[Any]], root_rank: int) -> None:
    """Overwrites the tensors of a `state_dict()`, `named_parameters()` or list with the root's."""
    if isinstance(params, dict):
        pairs: List[Tuple[Any, ...]] = sorted(params.items())
    elif isinstance(params, Iterable) and not isinstance(params, (str, Tensor)):
        pairs = [one if isinstance(one, tuple) else (None, one) for one in params]
    else:
        raise ValueError(f"broadcast_parameters takes a dictionary or a list of parameters, not {type(params).__name__}")
    handles = [broadcast_async_(parameter, root_rank, name) for name, parameter in pairs if isinstance(parameter, Tensor)]
    for handle in handles:
        synchronize(handle)


class _Place:
    """A placeholder for a tensor in a state that is sent without its tensors."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype


def _map(state: Any, kind: type, function: Any) -> Any:
    """Returns the state with every object of the class `kind`, at any depth, replaced by the function's result."""
    if isinstance(state, kind):
        return function(state)
    if isinstance(state, dict):
        return {key: _map(value, kind, function) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        parts = [_map(value, kind, function) for value in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return state


def broadcast_optimizer_state(optimizer: Any, root_rank: int, model: Any = None) -> None:  # pylint: disable=unused-argument
    """Copies the root's optimizer state and options (learning rates and so on) to all ranks. Optimizers without state receive it, too."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("broadcast_optimizer_state: the state of LBFGS does not consist of tensors; use broadcast_object")
    tensors: List[Tensor] = []
    is_root = rank() == root_rank

    def leave_place(tensor: Tensor) -> _Place:
        tensors.append(tensor)
        return _Place(tensor)

    def fill_place(place: _Place) -> Tensor:
        tensors.append(torch.empty(place.shape, dtype=place.dtype))
        return tensors[-1]

    state = _map(optimizer.state_dict(), Tensor, leave_place) if is_root else None
    state = broadcast_object(state, root_rank, "optimizer_state")
    if not is_root:
        state = _map(state, _Place, fill_place)
    broadcast_parameters([(f"optimizer_state.{index}", tensor) for index, tensor in enumerate(tensors)], root_rank)
    if not is_root:
        optimizer.load_state_dict(state)

"""Makes the parameters or gradients of modules the same on all ranks: all at once, or each gradient as soon as it is ready."""
import functools
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import Module

from warren._frameworks.gradient_hooks import when_accumulated
from warren._frameworks.world import communicator_or_world
from warren.collectives import Communicator, Handle, Op
from warren.torch._packing import allreduce_call, broadcast, by_type, pack, parts_of, unpack
from warren.torch._tensors import Staging, check_on_host


def synchronize_parameters(module: Module, root: int = 0, average: bool = False,
                           communicator: Optional[Communicator] = None) -> None:
    """Copies rank `root`'s parameters and buffers to all ranks or, with `average`, averages the parameters over all ranks, but not the buffers.
    A collective call, for modules of the same structure. `communicator` defaults to the world, which is joined if necessary."""
    comm = communicator_or_world(communicator, "synchronize_parameters")
    tensors = list(module.parameters()) + ([] if average else list(module.buffers()))
    for group in by_type(tensors):
        row = pack(group)
        if average:
            allreduce_call(comm, row, Op.AVG, "synchronize_parameters").run()
        else:
            broadcast(comm, row, root, "synchronize_parameters")
        unpack(row, group)


def synchronize_gradients(module: Module, average: bool = True, communicator: Optional[Communicator] = None) -> None:
    """Replaces the gradients with their averages (or sums) over all ranks, with one allreduce for each type. A gradient missing on a rank
    counts as zeros; one missing on all ranks stays None. A collective call, for modules of the same structure."""
    comm = communicator_or_world(communicator, "synchronize_gradients")
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for group in by_type(parameters):
        gradients = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in group]
        # The number of ranks that have each gradient is part of the row, which saves another allreduce.
        row = pack([*gradients, _presence(group)])
        allreduce_call(comm, row, Op.AVG if average else Op.SUM, "synchronize_gradients").run()
        *reduced, presence = parts_of(row, [*gradients, _presence(group)])
        for parameter, gradient, total, present in zip(group, gradients, reduced, presence.tolist()):
            gradient.copy_(total)
            parameter.grad = gradient if present else None


def _presence(parameters: List[Tensor]) -> Tensor:
    return torch.tensor([parameter.grad is not None for parameter in parameters], dtype=parameters[0].dtype)


class GradientsInFlight:
    """Starts the allreduce of each gradient as soon as the backward pass has computed it. All ranks create and close it together, for modules of
    the same structure. One backward pass runs between `begin` and `finish`. The gradients may become ready in a different order on each rank."""

    def __init__(self, module: Module, average: bool, communicator: Communicator) -> None:
        self._module = module
        self._parameters: Dict[str, Tensor] = {}
        self._hooks: List[Any] = []
        self._op = Op.AVG if average else Op.SUM
        self._communicator = communicator
        self._coordinator = communicator.coordinator()
        self._under_way: Dict[str, Tuple[Handle[Any], Staging]] = {}
        self._is_begun = False

    def begin(self) -> None:
        for name, parameter in self._module.named_parameters():
            if parameter.requires_grad and name not in self._parameters:  # at first all; later those that were frozen until now
                self._parameters[name] = parameter
                self._hooks.append(when_accumulated(parameter, functools.partial(self._ready, name)))
        self._is_begun = True

    def finish(self) -> None:
        """Returns when all gradients are averaged or summed. A gradient missing on a rank counts as zeros; one missing on all ranks stays None."""
        self._is_begun = False
        presence = torch.tensor([name in self._under_way for name in self._parameters], dtype=torch.int32)
        anywhere = self._enqueue(" presence", presence, Op.SUM)
        for name, parameter in self._parameters.items():
            if name not in self._under_way:
                parameter.grad = torch.zeros_like(parameter)
                self._start(name)
        for handle, staging in self._under_way.values():
            handle.wait()
            staging.copy_back()
        self._under_way.clear()
        anywhere.wait()
        for parameter, ranks in zip(self._parameters.values(), presence.tolist()):
            if ranks == 0:
                parameter.grad = None

    def close(self) -> None:
        self.detach()
        self._coordinator.close()

    def detach(self) -> None:
        """Removes the hooks from the module. The other ranks need not do the same; if they still wait for this rank's gradients, they get
        an error once this object is freed."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _ready(self, name: str) -> None:
        if self._is_begun:
            if name in self._under_way:
                raise RuntimeError(f"the gradient of {name} was computed twice before it was waited for: run one backward per step")
            self._start(name)

    def _start(self, name: str) -> None:
        gradient = self._parameters[name].grad
        assert gradient is not None
        staging = Staging()
        data = staging.target(check_on_host(gradient.detach(), f"the gradient of {name}"), keeps=True)
        self._under_way[name] = (self._enqueue(name, data, self._op), staging)

    def _enqueue(self, name: str, tensor: Tensor, op: int) -> Handle[Any]:
        call = allreduce_call(self._communicator, tensor, op, f"the gradient of {name}")
        return self._coordinator._begin(call, name, 0, None)  # pylint: disable=protected-access

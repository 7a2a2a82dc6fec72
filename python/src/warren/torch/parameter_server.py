"""Parameter servers for tensors, and TorchMPI's algorithms on top of them: Downpour SGD and elastic averaging (EASGD).

With both, each rank trains independently, at its own pace, and exchanges parameters with the servers at intervals:

    easgd = warren.torch.EASGD(network, beta=0.9, update_frequency=10, init_delay=20)
    for step, (inputs, targets) in enumerate(batches):
        optimizer.zero_grad()
        criterion(network(inputs), targets).backward()
        easgd.update(step)
        optimizer.step()
    easgd.close()

Ranks need not take the same number of steps, but all must reach step `init_delay`, where the servers are created, and `close`.

Downpour: J. Dean et al., Large Scale Distributed Deep Networks, 2012, section 4.1. EASGD: S. Zhang, A. Choromanska, Y. LeCun, Deep learning
with Elastic Averaging SGD, 2015, algorithm 1 (asynchronous)."""
from typing import Any, Callable, List, Optional, Union

import torch
from torch import Tensor
from torch.nn import Module

from warren import parameter_server
from warren._frameworks.world import communicator_or_world
from warren.collectives import Communicator
from warren.parameter_server import Handle
from warren.torch._packing import by_type, pack, unpack
from warren.torch._tensors import check_on_host


def _array(tensor: Tensor, what: str) -> Any:
    check_on_host(tensor, what)
    if tensor.dtype == torch.bfloat16:
        raise TypeError(f"{what}: parameter servers do not support torch.bfloat16; give it tensor.float()")
    return tensor.detach().numpy()


class ParameterServer:
    """warren.parameter_server.ParameterServer for tensors in host memory. Uses the tensors' memory without copying it."""

    def __init__(self, tensor: Tensor, communicator: Optional[Communicator] = None, servers: Optional[int] = None,
                 root: Optional[int] = None) -> None:
        self._server = parameter_server.ParameterServer(_array(tensor, "ParameterServer"), communicator, servers, root)
        self._like = torch.empty(0, dtype=tensor.dtype)

    def send(self, tensor: Optional[Tensor], rule: str = "add", scale: Union[int, float] = 1) -> Handle[None]:
        return self._server.send(None if tensor is None else _array(tensor, "send"), rule, scale)

    def receive(self, out: Optional[Tensor] = None) -> Handle[Tensor]:
        """Like `receive` of warren.parameter_server, but `wait` returns a tensor."""
        if out is None:
            out = torch.empty(self._server.shape, dtype=self._like.dtype)
        return self._server.receive(_array(out, "receive")).with_result(out)

    def free(self) -> None:
        self._server.free()

    def __enter__(self) -> "ParameterServer":
        return self

    def __exit__(self, kind: Any, *rest: Any) -> None:
        self._server.__exit__(kind, *rest)


class _Row:
    """All parameters of one type, in one row, and their parameter server."""

    def __init__(self, parameters: List[Tensor], communicator: Communicator, servers: Optional[int]) -> None:
        self.parameters = parameters
        self.values = pack(parameters)
        self.server = ParameterServer(self.values, communicator, servers)
        self.fetched: Optional[Handle[Tensor]] = None
        self.sent: Optional[Handle[None]] = None

    def fetch(self) -> None:
        """Waits until the servers have applied the last send, and requests their values."""
        self.settle()
        self.fetched = self.server.receive(self.values)

    def take(self) -> Tensor:
        """Returns the requested values; requests them now if `fetch` has not been called."""
        if self.fetched is None:
            self.fetch()
        assert self.fetched is not None
        fetched, self.fetched = self.fetched, None
        return fetched.wait()

    def send(self, row: Tensor, scale: float) -> None:
        self.sent = self.server.send(row, "add", scale)

    def settle(self) -> None:
        """Waits until the servers have applied the last send."""
        sent, self.sent = self.sent, None
        if sent is not None:
            sent.wait()


class Update:
    """The common part of Downpour and EASGD: decides when the servers are created, and when their parameters are requested and used."""

    def __init__(self, module: Module, update_frequency: int = 10, init_delay: int = 100, prefetch: int = 0,
                 servers: Optional[int] = None, communicator: Optional[Communicator] = None) -> None:
        """`init_delay`: the step at which the servers are created, from the current parameters of the ranks: each rank serves a part of its
        own parameters. From then on, the servers' parameters are used every `update_frequency` steps, and requested `prefetch` steps before
        that. Raises ValueError for values out of range."""
        if update_frequency < 1 or init_delay < 0 or not 0 <= prefetch <= update_frequency:
            raise ValueError(f"update_frequency {update_frequency}, init_delay {init_delay}, prefetch {prefetch}; expected one "
                             "from 1 on, one from 0 on, and one from 0 to update_frequency")
        self._communicator = communicator_or_world(communicator, type(self).__name__)
        self._parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self._frequency, self._init_delay, self._prefetch = update_frequency, init_delay, prefetch
        self._servers = servers
        self._rows: List[_Row] = []
        self._has_begun = False

    def update(self, step: int) -> None:
        """To be called after backward and before the optimizer's step; `step` counts up from 0. Raises ValueError if the first call comes
        after step `init_delay`, since there would be no servers."""
        if step < self._init_delay:
            return
        if not self._has_begun and step > self._init_delay:
            raise ValueError(f"{type(self).__name__}.update: step {step} is the first one, but the servers are created at step "
                             f"{self._init_delay} (init_delay): count the steps of each run from 0, or give init_delay={step}")
        if step == self._init_delay:
            self._has_begun = True
            self._rows = [_Row(group, self._communicator, self._servers) for group in by_type(self._parameters)]
        since = step - self._init_delay
        for row in self._rows:
            if self._is_due(since):
                self._integrate(row)
            if self._prefetch > 0 and self._is_due(since + self._prefetch):
                row.fetch()
        self._send(since)

    def _is_due(self, since: int) -> bool:
        return since > 0 and since % self._frequency == 0

    def settle(self) -> None:
        """Returns when the servers have applied everything that this rank has sent."""
        for row in self._rows:
            row.settle()

    def pull(self) -> None:
        """Replaces the module's parameters with the servers'."""
        self.settle()
        for row in self._rows:
            row.fetched = None
            unpack(row.server.receive().wait(), row.parameters)

    def close(self) -> None:
        """A collective call. Ends the servers once they have applied everything that was sent."""
        self.settle()
        for row in self._rows:
            row.server.free()
        self._rows = []

    def _integrate(self, row: _Row) -> None:
        """Combines the values received from the servers with the module's parameters."""
        raise NotImplementedError

    def _send(self, since: int) -> None:
        """`since`: the number of steps since the servers were created."""


class Downpour(Update):
    """Adds up gradients and sends them every `send_frequency` steps. The module's parameters are replaced with the servers' every
    `update_frequency` steps; in between, the program's own optimizer updates them."""

    def __init__(self, module: Module, lr: Optional[float] = None, local_update: Optional[Callable[[Tensor], Tensor]] = None,
                 send_frequency: int = 1, **how: Any) -> None:
        """Sends -lr times the gradients, or the result of `local_update` on the row of gradients. `how`: the arguments of `Update`."""
        super().__init__(module, **how)
        if (lr is None) == (local_update is None) or send_frequency < 1:
            raise ValueError("Downpour takes either a learning rate `lr` or a `local_update`, and a send_frequency from 1 on")
        self._lr, self._local_update, self._send_frequency = lr, local_update, send_frequency
        self._gradients: List[Tensor] = []

    def _integrate(self, row: _Row) -> None:
        unpack(row.take(), row.parameters)

    def _send(self, since: int) -> None:
        fresh = [pack([torch.zeros_like(one) if one.grad is None else one.grad for one in row.parameters]) for row in self._rows]
        self._gradients = [sum_ + one for sum_, one in zip(self._gradients, fresh)] if self._gradients else fresh
        if (since + 1) % self._send_frequency != 0:
            return
        for row, gradients in zip(self._rows, self._gradients):
            row.settle()
            if self._local_update is not None:
                row.send(self._local_update(gradients), 1)
            elif self._lr is not None:
                row.send(gradients, -self._lr)
        self._gradients = []


class EASGD(Update):
    """Every `update_frequency` steps (tau), the module's parameters and the servers' parameters (the center) move towards each other by
    alpha times their difference, where alpha is beta / world size."""

    def __init__(self, module: Module, beta: float = 0.9, **how: Any) -> None:
        """`how`: the arguments of `Update`."""
        super().__init__(module, **how)
        self._alpha = beta / self._communicator.size

    def _integrate(self, row: _Row) -> None:
        center, own = row.take(), pack(row.parameters)
        difference = center - own
        unpack(own + self._alpha * difference, row.parameters)
        row.send(difference, -self._alpha)

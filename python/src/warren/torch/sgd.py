"""Training with hooks: in one process, or on all ranks with averaged gradients. The interface is torchnet's, as extended by TorchMPI.

    engine = warren.torch.AllReduceSGDEngine(asynchronous=True)
    engine.hooks.on_forward_criterion = lambda state: print(state.t, state.loss.item())
    engine.train(network, torch.nn.CrossEntropyLoss(), batches, lr=0.1, max_epochs=5)

Each rank trains on its own batches; all ranks have the same number of batches. By default, the minimized loss is the mean over all
ranks."""
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, List, Optional, Union

import torch
from torch import Tensor
from torch.nn import Module

from warren._frameworks.world import communicator_or_world
from warren.collectives import Communicator
from warren.torch._synchronize import GradientsInFlight, synchronize_gradients, synchronize_parameters

#: Batches of (inputs, targets) that can be iterated repeatedly, or a function that returns the batches of an epoch.
Batches = Union[Iterable[Any], Callable[[], Iterable[Any]]]


@dataclass
class State:
    """The state passed to hooks, which may change it."""

    network: Module
    criterion: Any
    batches: Batches
    training: bool
    optimizer: Any = None
    max_epochs: int = 1
    epoch: int = 0
    t: int = 0  #: number of steps done
    sample: Any = None
    output: Optional[Tensor] = None
    loss: Optional[Tensor] = None


Hook = Callable[[State], None]


class Hooks:
    """A function, or None, for each event of training and testing. `on_backward` is called once the gradients have been combined over all
    ranks, before the update. Training calls all hooks; testing calls on_start, on_sample, on_forward, on_forward_criterion and on_end."""

    NAMES = ("on_start", "on_start_epoch", "on_sample", "on_forward", "on_forward_criterion", "on_backward_criterion",
             "on_backward", "on_update", "on_end_epoch", "on_end")
    __slots__ = NAMES

    def __init__(self) -> None:
        for name in self.NAMES:
            setattr(self, name, None)

    def call(self, name: str, state: State) -> None:
        hook: Optional[Hook] = getattr(self, name)
        if hook is not None:
            hook(state)


def prefetched(batches: Iterable[Any]) -> Iterator[Any]:
    """Yields the batches unchanged. A thread loads the next batch while the current one is used."""
    end = object()
    iterator = iter(batches)
    with ThreadPoolExecutor(1, "warren prefetch") as pool:
        upcoming = pool.submit(lambda: next(iterator, end))
        while True:
            batch = upcoming.result()
            if batch is end:
                return
            upcoming = pool.submit(lambda: next(iterator, end))
            yield batch


class SGDEngine:
    """Trains and tests in this process only."""

    def __init__(self, prefetch: bool = False) -> None:
        """`prefetch`: a thread loads the next batch while the network trains on the current one."""
        self.hooks = Hooks()
        self._prefetch = prefetch

    def train(self, network: Module, criterion: Any, batches: Batches, lr: Optional[float] = None, max_epochs: int = 1,
              optimizer: Any = None) -> State:
        """Trains by plain SGD with learning rate `lr`, or with a torch.optim optimizer. `criterion(output, target)` is the loss. Returns
        the final state. Raises ValueError unless exactly one of `lr` and `optimizer` is given."""
        if (lr is None) == (optimizer is None):
            raise ValueError("train takes either a learning rate `lr` or an `optimizer`")
        if optimizer is None:
            optimizer = torch.optim.SGD(network.parameters(), lr=lr)
        state = State(network, criterion, batches, True, optimizer, max_epochs)
        network.train()
        self.hooks.call("on_start", state)
        while state.epoch < state.max_epochs:
            self.hooks.call("on_start_epoch", state)
            for state.sample in self._of_epoch(state):
                self._step(state)
            state.epoch += 1
            self.hooks.call("on_end_epoch", state)
        self.hooks.call("on_end", state)
        return state

    def test(self, network: Module, criterion: Any, batches: Batches) -> State:
        """Computes the network's outputs and losses, for the hooks. Returns the final state."""
        state = State(network, criterion, batches, False)
        was_training = network.training
        network.eval()
        try:
            with torch.no_grad():
                self.hooks.call("on_start", state)
                for state.sample in self._of_epoch(state):
                    self._forward(state)
                    state.t += 1
                self.hooks.call("on_end", state)
        finally:
            network.train(was_training)
        return state

    def _of_epoch(self, state: State) -> Iterator[Any]:
        batches = state.batches() if callable(state.batches) else state.batches
        return prefetched(batches) if self._prefetch else iter(batches)

    def _step(self, state: State) -> None:
        self._forward(state)
        state.optimizer.zero_grad()
        self.hooks.call("on_backward_criterion", state)
        self._backward(state)
        self.hooks.call("on_backward", state)
        state.optimizer.step()
        state.t += 1
        self.hooks.call("on_update", state)

    def _forward(self, state: State) -> None:
        self.hooks.call("on_sample", state)
        inputs, targets = state.sample
        state.output = state.network(inputs)
        self.hooks.call("on_forward", state)
        state.loss = state.criterion(state.output, targets)
        self.hooks.call("on_forward_criterion", state)

    def _backward(self, state: State) -> None:
        assert state.loss is not None
        state.loss.backward()


class AllReduceSGDEngine(SGDEngine):
    """Trains on all ranks: the parameters start as rank 0's, and each step uses the gradients averaged or summed over all ranks. The parameters
    are thus the same on all ranks, bit for bit, after each step, whether or not the gradients are reduced asynchronously."""

    def __init__(self, asynchronous: bool = False, average: bool = True, prefetch: bool = False,
                 communicator: Optional[Communicator] = None) -> None:
        """`asynchronous`: the allreduce of each gradient starts as soon as the backward pass has computed it, while that pass continues.
        `average`: false for sums, as in TorchMPI. `communicator` defaults to the world, which is joined if necessary."""
        super().__init__(prefetch)
        self._communicator = communicator_or_world(communicator, "AllReduceSGDEngine")
        self._asynchronous, self._average = asynchronous, average
        self._in_flight: List[GradientsInFlight] = []

    def train(self, network: Module, criterion: Any, batches: Batches, lr: Optional[float] = None, max_epochs: int = 1,
              optimizer: Any = None) -> State:
        modules = _trained(network, criterion)
        for module in modules:
            synchronize_parameters(module, communicator=self._communicator)
        if self._asynchronous:
            self._in_flight = [GradientsInFlight(module, self._average, self._communicator) for module in modules]
        try:
            state = super().train(network, criterion, batches, lr, max_epochs, optimizer)
            for gradients in self._in_flight:
                gradients.close()
        finally:
            for gradients in self._in_flight:
                gradients.detach()
            self._in_flight = []
        return state

    def _backward(self, state: State) -> None:
        for gradients in self._in_flight:
            gradients.begin()
        super()._backward(state)
        if self._asynchronous:
            for gradients in self._in_flight:
                gradients.finish()
            return
        for module in _trained(state.network, state.criterion):
            synchronize_gradients(module, self._average, self._communicator)


def _trained(network: Module, criterion: Any) -> List[Module]:
    """The network and, if it has parameters, the criterion."""
    return [network, criterion] if isinstance(criterion, Module) and any(True for _ in criterion.parameters()) else [network]

"""DistributedOptimizer: an optimizer whose gradients are reduced over all ranks while they are computed."""
import collections
import contextlib
import re
import warnings
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from warren._frameworks.gradient_hooks import when_accumulated
from warren.horovod._adasum import check as check_adasum
from warren.horovod._job import ProcessSet, global_process_set
from warren.horovod._named import ReduceOp
from warren.horovod.common.util import split_list
from warren.horovod.torch._compression import Compression
from warren.horovod.torch._ops import allreduce_async_, grouped_allreduce_async_, sparse_allreduce_async, synchronize

#: Lists of parameters, or the number of groups; None for no groups.
Groups = Union[None, int, List[List[Tensor]]]


def _names_of(optimizer: Any, named_parameters: Optional[Iterable[Tuple[str, Tensor]]]) -> Dict[Tensor, str]:
    """Returns the names of all parameters of the optimizer. Raises ValueError if `named_parameters` lacks some of them, uses a name twice, or
    does not consist of pairs."""
    if named_parameters is None:
        return _places_of(optimizer)
    pairs = list(named_parameters)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError("named_parameters must be pairs of a name and a parameter, as from model.named_parameters()")
    names = [name for name, _ in pairs]
    twice = sorted(name for name, count in collections.Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"named_parameters has the same name for several parameters: {', '.join(twice)}")
    found = {parameter: name for name, parameter in pairs}
    num_unnamed = sum(parameter not in found for parameter in _parameters_of(optimizer))
    if num_unnamed:
        raise ValueError(f"named_parameters lacks {num_unnamed} of the optimizer's parameters")
    return found


def _places_of(optimizer: Any) -> Dict[Tensor, str]:
    """The names of parameters that the program has not named. They are the same on all ranks."""
    return {parameter: f"noname.{group}.{index}" for group, options in enumerate(optimizer.param_groups)
            for index, parameter in enumerate(options["params"])}


def _parameters_of(optimizer: Any) -> List[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


class _Reducer:
    """Reduces the gradients of some parameters, each as soon as it has been computed, or together with its group."""

    def __init__(self, names: Dict[Tensor, str], parameters: Sequence[Tensor], compression: Any, passes: int, op: ReduceOp,
                 predivide: float, sparse_as_dense: bool, process_set: ProcessSet) -> None:
        self._names, self._parameters = names, list(parameters)
        self._compression, self._op, self._sparse_as_dense, self._process_set = compression, op, sparse_as_dense, process_set
        self._factors = (1.0 / predivide, predivide)
        self._passes = passes
        self._left: Dict[Tensor, int] = {}  # the number of backward passes until the gradient is reduced
        self._group_of: Dict[Tensor, Tuple[Tensor, ...]] = {}
        self._num_ready: Dict[Tuple[Tensor, ...], int] = {}
        self._under_way: Dict[Tuple[Tensor, ...], Callable[[], None]] = {}
        self._is_reduced: Dict[Tensor, bool] = {}
        self.reset()
        self._hooks = {parameter: when_accumulated(parameter, self._hook_of(parameter)) for parameter in parameters}

    def __del__(self) -> None:
        for hook in getattr(self, "_hooks", {}).values():
            hook.remove()

    def include_late(self, optimizer: Any) -> None:
        """Includes parameters that were frozen, or not yet in the optimizer, when this was created."""
        late = [parameter for parameter in _parameters_of(optimizer) if parameter.requires_grad and parameter not in self._hooks]
        for parameter in late:
            self._names.setdefault(parameter, _places_of(optimizer)[parameter])
            self._parameters.append(parameter)
            self._left[parameter] = self._passes
            self._hooks[parameter] = when_accumulated(parameter, self._hook_of(parameter))

    def form_groups(self, groups: Sequence[Sequence[Tensor]]) -> None:
        known = set(self._parameters)
        for group in groups:
            members = tuple(parameter for parameter in group if parameter in known)
            self._group_of.update({parameter: members for parameter in members})
        self.reset()

    def reset(self) -> None:
        """Discards all pending reductions."""
        self._under_way.clear()
        self._is_reduced.clear()
        self._left = {parameter: self._passes for parameter in self._parameters}
        self._num_ready = {group: 0 for group in self._group_of.values()}

    def set_passes(self, passes: int) -> None:
        self._passes = passes
        self._left = {parameter: passes for parameter in self._parameters}

    def is_under_way(self) -> bool:
        return bool(self._under_way)

    def _hook_of(self, parameter: Tensor) -> Callable[[], None]:
        # The parameters, which hold the hooks, may outlive the optimizer.
        weak = weakref.ref(self)

        def has_gradient() -> None:
            reducer = weak()
            if reducer is not None:
                reducer._has_gradient(parameter)

        return has_gradient

    def _has_gradient(self, parameter: Tensor) -> None:
        if self._left[parameter] <= 0:
            raise AssertionError(
                f"the gradient of '{self._names[parameter]}' was computed more than backward_passes_per_step times "
                f"({self._passes}) before step(); raise backward_passes_per_step to add up gradients of several passes")
        self._left[parameter] -= 1
        if self._left[parameter] == 0:
            self._is_ready(parameter)

    def _is_ready(self, parameter: Tensor) -> None:
        group = self._group_of.get(parameter)
        if group is None:
            self._begin((parameter,))
            return
        self._num_ready[group] += 1
        if self._num_ready[group] == len(group):
            self._begin(group)

    def _begin(self, parameters: Tuple[Tensor, ...]) -> None:
        for parameter in parameters:
            self._left[parameter] = 0
            self._is_reduced[parameter] = True
            if parameter.grad is None:  # another rank may have a gradient
                parameter.grad = torch.zeros_like(parameter)
        if len(parameters) == 1:
            self._under_way[parameters] = self._reduce(parameters[0])
        else:
            self._under_way[parameters] = self._reduce_group(parameters)

    def _reduce(self, parameter: Tensor) -> Callable[[], None]:
        gradient, name = parameter.grad, self._names[parameter]
        if gradient.is_sparse and not self._sparse_as_dense:
            gathering = sparse_allreduce_async(gradient, name, self._op, self._process_set)
            return lambda: _set(parameter, gathering())
        dense = gradient.to_dense() if gradient.is_sparse else gradient
        compressed, context = self._compression.compress(dense)
        handle = allreduce_async_(compressed, None, name, self._op, *self._factors, self._process_set)

        def finish() -> None:
            reduced = self._compression.decompress(synchronize(handle), context)
            _set(parameter, reduced.to_sparse() if gradient.is_sparse else reduced)

        return finish

    def _reduce_group(self, parameters: Tuple[Tensor, ...]) -> Callable[[], None]:
        if any(parameter.grad.is_sparse for parameter in parameters):
            raise ValueError("DistributedOptimizer: groups must be of dense gradients")
        compressed, contexts = zip(*(self._compression.compress(parameter.grad) for parameter in parameters))
        handle = grouped_allreduce_async_(compressed, None, self._names[parameters[0]], self._op, *self._factors,
                                          self._process_set)

        def finish() -> None:
            for parameter, reduced, context in zip(parameters, synchronize(handle), contexts):
                _set(parameter, self._compression.decompress(reduced, context))

        return finish

    def synchronize(self) -> None:
        """Waits until all gradients have been reduced, including those that were computed less often than expected, or not at all."""
        for parameter in self._parameters:
            if parameter not in self._is_reduced:
                self._begin(self._group_of.get(parameter, (parameter,)))
        finishes = list(self._under_way.values())
        try:
            for finish in finishes:
                finish()
        finally:
            self.reset()


def _set(parameter: Tensor, gradient: Tensor) -> None:
    if parameter.grad is gradient:
        return
    if gradient.is_sparse:
        parameter.grad = gradient
    else:
        with torch.no_grad():
            parameter.grad.copy_(gradient)


class AdasumMixin:
    """The methods that DistributedOptimizer(op=hvd.Adasum) adds to an optimizer's class: each rank takes a step with its own gradients, and
    then all ranks apply the Adasum of the steps to the previous parameters."""

    _hvd_names: Dict[Tensor, str]
    _hvd_compression: Any
    _hvd_process_set: ProcessSet

    def step(self, closure: Any = None) -> Any:
        parameters = [parameter for parameter in _parameters_of(self) if parameter.requires_grad]
        with torch.no_grad():
            before = [parameter.detach().clone() for parameter in parameters]
        loss = super().step(closure)  # type: ignore[misc]
        names = {**_places_of(self), **self._hvd_names}  # parameters may have been added
        with torch.no_grad():
            handles = []
            for parameter, start in zip(parameters, before):
                compressed, context = self._hvd_compression.compress(parameter - start)
                name = f"adasum.{names[parameter]}"
                handles.append((allreduce_async_(compressed, None, name, ReduceOp.Adasum, 1.0, 1.0, self._hvd_process_set), context))
            for parameter, start, (handle, context) in zip(parameters, before, handles):
                parameter.copy_(start + self._hvd_compression.decompress(synchronize(handle), context))
        return loss

    def synchronize(self) -> None:
        """Does nothing, because no reduction starts before `step`."""

    def skip_synchronize(self) -> Any:
        """Raises AssertionError, since `step` itself does the reduction."""
        raise AssertionError("skip_synchronize: op=hvd.Adasum reduces the steps, not the gradients before them")

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Does nothing: gradients accumulate until `step`."""


class DistributedMixin:
    """The methods that DistributedOptimizer adds to an optimizer's class."""

    _hvd_reducer: Optional[_Reducer]
    _hvd_is_synchronized: bool
    _hvd_synchronizes: bool

    def synchronize(self) -> None:
        """Waits until all gradients have been reduced, for example to clip them before a `step` in `skip_synchronize`."""
        if self._hvd_reducer is not None:
            self._hvd_reducer.include_late(self)
            self._hvd_reducer.synchronize()
        self._hvd_is_synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within the block, `step` does not call `synchronize`, and uses the current gradients."""
        self._hvd_synchronizes = False
        try:
            yield
        finally:
            self._hvd_synchronizes = True

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Sets the number of backward passes whose gradients are summed before they are reduced."""
        if self._hvd_reducer is not None:
            self._hvd_reducer.set_passes(passes)

    def step(self, closure: Any = None) -> Any:
        if self._hvd_synchronizes:
            if self._hvd_is_synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after optimizer.synchronize(): "
                    "gradients are reduced twice")
            if closure is None:
                self.synchronize()
            else:
                closure = self._with_reduction(closure)
        self._hvd_is_synchronized = False
        return super().step(closure)  # type: ignore[misc]

    def _with_reduction(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """Returns a closure that also reduces the gradients, which the optimizer reads when the closure returns."""
        def call() -> Any:
            loss = closure()
            self.synchronize()
            self._hvd_is_synchronized = False
            return loss

        return call

    def zero_grad(self, *args: Any, **options: Any) -> None:
        if self._hvd_reducer is not None and self._hvd_reducer.is_under_way():
            raise AssertionError("optimizer.zero_grad() was called after loss.backward(), and before optimizer.step() or "
                                 "optimizer.synchronize(): gradients are being reduced")
        super().zero_grad(*args, **options)  # type: ignore[misc]

    def load_state_dict(self, *args: Any, **options: Any) -> None:
        if self._hvd_reducer is not None:
            self._hvd_reducer.reset()
        self._hvd_is_synchronized, self._hvd_synchronizes = False, True
        super().load_state_dict(*args, **options)  # type: ignore[misc]


def _check_groups(groups: Groups) -> None:
    if isinstance(groups, list):
        members = [parameter for group in groups for parameter in group]
        if not all(isinstance(parameter, Tensor) for parameter in members):
            raise ValueError("groups: lists of torch.Tensors, or a number of groups")
        if len(set(members)) != len(members):
            raise ValueError("groups: a parameter can be in only one of them")
    elif groups is not None and groups <= 0:
        raise ValueError(f"groups must be at least 1, not {groups}")


def _groups_of(groups: Groups, parameters: Sequence[Tensor], names: Dict[Tensor, str]) -> Sequence[Sequence[Tensor]]:
    """Returns `groups` if they are lists. For a number of groups, divides the parameters among them in the order of their names, so that
    the groups are the same on all ranks. This is not a collective call: in an elastic job, a rank may create its optimizer alone."""
    if groups is None:
        return []
    if isinstance(groups, list):
        return groups
    return split_list(sorted(parameters, key=lambda parameter: _order_of(names[parameter])), groups)


def _order_of(name: str) -> Tuple[List[Tuple[str, int]], str]:
    """A sort key for names. "layer.10" comes after "layer.9"."""
    return [(text, int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", name)], name


def DistributedOptimizer(optimizer: Any, named_parameters: Optional[Iterable[Tuple[str, Tensor]]] = None,
                         compression: Any = Compression.none, backward_passes_per_step: int = 1, op: int = ReduceOp.Average,
                         gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Groups = None,
                         sparse_as_dense: bool = False, process_set: ProcessSet = global_process_set) -> Any:
    """Returns the optimizer, as an instance of a class of the same name, whose `step` uses the gradients of all ranks. The reduction of
    a gradient starts once `loss.backward()` has computed it `backward_passes_per_step` times, and overlaps with the rest of the backward
    pass. With `groups`, a number or lists of parameters, the gradients of a group are reduced together. `gradient_predivide_factor` f
    splits the division of an average: by f before the sum, and by size / f after it. With op=hvd.Adasum each rank takes a step with its
    own gradients, and the steps are reduced, each parameter separately; raises NotImplementedError unless the number of ranks is a power
    of 2."""
    op = ReduceOp(op)
    if gradient_predivide_factor != 1.0 and op != ReduceOp.Average:
        raise ValueError("gradient_predivide_factor is only for op=hvd.Average")
    if backward_passes_per_step <= 0:
        raise ValueError(f"backward_passes_per_step must be at least 1, not {backward_passes_per_step}")
    groups = groups if groups is not None or num_groups == 0 else num_groups
    _check_groups(groups)
    names = _names_of(optimizer, named_parameters)
    mixin = AdasumMixin if op == ReduceOp.Adasum and process_set.may_have_others("DistributedOptimizer") else DistributedMixin
    kind: Any = type(type(optimizer).__name__, (mixin, type(optimizer)), {"__module__": type(optimizer).__module__})
    made = kind.__new__(kind)
    made.__dict__.update(vars(optimizer))
    made.__dict__.pop("step", None)  # a scheduler may have replaced `step`
    made._parameter_names = names
    if mixin is AdasumMixin:
        check_adasum(process_set.named("DistributedOptimizer").size, "float32", "DistributedOptimizer")
        made._hvd_names, made._hvd_compression, made._hvd_process_set = names, compression, process_set
        return made
    made._hvd_reducer, made._hvd_is_synchronized, made._hvd_synchronizes = None, False, True
    if process_set.may_have_others("DistributedOptimizer"):
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("DistributedOptimizer: torch.optim.LBFGS calls its closure as often as this rank's own loss requires, so that "
                             "ranks would wait for each other; use another optimizer")
        parameters = [parameter for parameter in _parameters_of(optimizer) if parameter.requires_grad]
        reducer = _Reducer(names, parameters, compression, backward_passes_per_step, op, gradient_predivide_factor,
                           sparse_as_dense, process_set)
        reducer.form_groups(_groups_of(groups, parameters, names))
        made._hvd_reducer = reducer
    return made

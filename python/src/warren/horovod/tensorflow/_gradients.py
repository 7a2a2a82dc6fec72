"""Reduces gradients over all ranks, for a tf.GradientTape and for a Keras optimizer."""
from typing import Any, List, Optional, Sequence

import tensorflow as tf

from warren.horovod._job import ProcessSet, global_process_set
from warren.horovod._named import ReduceOp
from warren.horovod.tensorflow._compression import Compression
from warren.horovod.tensorflow._ops import divided_by_size, grouped_allreduce


class Reduction:
    """Reduces gradients, which are submitted to the engine together and fused there."""

    def __init__(self, compression: Any, op: int, predivide: float, sparse_as_dense: bool, process_set: ProcessSet,
                 scales_local: bool) -> None:
        self._op = ReduceOp(op)
        if self._op == ReduceOp.Adasum:
            raise NotImplementedError("warren.horovod has Adasum for allreduce and for PyTorch's optimizers, not for the gradients of "
                                      "TensorFlow; use op=hvd.Average or op=hvd.Sum")
        if predivide != 1.0 and self._op != ReduceOp.Average:
            raise ValueError("gradient_predivide_factor is only for op=hvd.Average")
        self._compression, self._predivide, self._sparse_as_dense = compression, predivide, sparse_as_dense
        self._process_set, self._scales_local = process_set, scales_local
        self._is_local: List[Any] = []

    def leave_local(self, variable: Any) -> None:
        """Excludes a variable: its gradient is not reduced."""
        self._is_local.append(variable)

    def __call__(self, gradients: Sequence[Any], variables: Sequence[Any]) -> List[Any]:
        if not self._process_set.may_have_others("gradients"):
            return list(gradients)
        results = list(gradients)
        wanted = []
        for index, gradient in enumerate(gradients):
            if gradient is None:
                continue
            if not any(variables[index] is local for local in self._is_local):
                wanted.append(index)
            elif self._scales_local:
                results[index] = divided_by_size(gradient, self._process_set)
        dense = [tf.convert_to_tensor(gradients[index]) if self._sparse_as_dense else gradients[index] for index in wanted]
        if dense:
            reduced = grouped_allreduce(dense, compression=self._compression, op=self._op, prescale_factor=1.0 / self._predivide,
                                        postscale_factor=self._predivide, process_set=self._process_set)
            for index, gradient in zip(wanted, reduced):
                results[index] = gradient
        return results


class _DistributedTape:
    """The methods that DistributedGradientTape adds to a tape's class."""

    _hvd_reduction: Reduction

    def register_local_source(self, source: Any) -> None:
        """Excludes a variable: its gradient is not reduced."""
        self._hvd_reduction.leave_local(source)

    def gradient(self, target: Any, sources: Any, *args: Any, **options: Any) -> Any:
        gradients = super().gradient(target, sources, *args, **options)  # type: ignore[misc]
        flat = self._hvd_reduction(tf.nest.flatten(gradients), tf.nest.flatten(sources))
        return tf.nest.pack_sequence_as(gradients, flat)


def DistributedGradientTape(gradtape: Any, device_dense: str = "",
                            device_sparse: str = "",
                            compression: Any = Compression.none, sparse_as_dense: bool = False, op: int = ReduceOp.Average,
                            gradient_predivide_factor: float = 1.0, num_groups: int = 0, groups: Any = None,
                            process_set: ProcessSet = global_process_set, scale_local_gradients: bool = True) -> Any:
    """Returns the tape with a `gradient` method that returns the gradients reduced over all ranks. The gradients of local sources are not
    reduced; as in Horovod 0.28, they are divided by the number of ranks unless `scale_local_gradients` is false."""
    kind: Any = type("DistributedGradientTape", (_DistributedTape, type(gradtape)), {})
    made = kind.__new__(kind)
    made.__dict__.update(vars(gradtape))
    made._hvd_reduction = Reduction(compression, op, gradient_predivide_factor, sparse_as_dense, process_set, scale_local_gradients)
    return made


class _Variables(List[Any]):
    """A list that can also be called: `variables` is a list in Keras 3, but scripts written for Keras 2 call it as a method."""

    def __call__(self) -> List[Any]:
        return self


class _DistributedKerasOptimizer:
    """The methods that DistributedOptimizer adds to an optimizer's class."""

    _hvd_reduction: Reduction
    _hvd_factor: float

    @property
    def variables(self) -> List[Any]:
        return _Variables(super().variables)  # type: ignore[misc]

    def register_local_var(self, variable: Any) -> None:
        """Excludes a variable: its gradient is not reduced."""
        self._hvd_reduction.leave_local(variable)

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        gradients = list(grads)
        variables = trainable_variables
        if variables is None:
            variables = self._trainable_variables  # type: ignore[attr-defined]
        reduced = self._hvd_reduction(gradients, list(variables))
        if self._hvd_factor != 1.0:
            reduced = [None if gradient is None else gradient * self._hvd_factor for gradient in reduced]
        return super().apply(reduced, trainable_variables)  # type: ignore[misc]


def DistributedOptimizer(optimizer: Any, name: Optional[str] = None,
                         use_locking: bool = False,
                         device_dense: str = "", device_sparse: str = "",
                         compression: Any = Compression.none, sparse_as_dense: bool = False, backward_passes_per_step: int = 1,
                         op: int = ReduceOp.Average, gradient_predivide_factor: float = 1.0,
                         average_aggregated_gradients: bool = False, num_groups: int = 0,
                         groups: Any = None, process_set: ProcessSet = global_process_set,
                         scale_local_gradients: bool = True) -> Any:
    """Returns a new Keras optimizer that has the options of the given one and uses the gradients of all ranks. With
    `backward_passes_per_step`, a step uses the sum of the gradients of that many passes, or their average with
    `average_aggregated_gradients`. The gradients of local variables are not reduced; as in Horovod 0.28, they are divided by the number of
    ranks unless `scale_local_gradients` is false."""
    if not hasattr(type(optimizer), "apply"):
        raise TypeError(f"DistributedOptimizer takes an optimizer of Keras 3, not {type(optimizer).__name__}; "
                        "for others use hvd.DistributedGradientTape")
    kind: Any = type(type(optimizer).__name__, (_DistributedKerasOptimizer, type(optimizer)),
                     {"__module__": type(optimizer).__module__})
    config = optimizer.get_config()
    if backward_passes_per_step > 1:
        config["gradient_accumulation_steps"] = backward_passes_per_step
    made = kind.from_config(config)
    made._hvd_reduction = Reduction(compression, op, gradient_predivide_factor, sparse_as_dense, process_set, scale_local_gradients)
    made._hvd_factor = 1.0 if average_aggregated_gradients else float(backward_passes_per_step)
    return made

"""`hvd.elastic` for TensorFlow: see warren.horovod._elastic, and docs/how-to/elastic.md."""
import functools
from typing import Any, Callable, List, Optional, Sequence, TypeVar

import tensorflow as tf

from warren.horovod import _elastic
from warren.horovod._elastic import ObjectState
from warren.horovod._errors import HorovodInternalError
from warren.horovod._job import rank
from warren.horovod._objects import broadcast_object
from warren.horovod.tensorflow._ops import broadcast_variables

__all__ = ["TensorFlowKerasState", "TensorFlowState", "run"]

T = TypeVar("T")


def run(func: Callable[..., T]) -> Callable[..., T]:
    """Decorates a training function: see warren.horovod._elastic.run."""
    @functools.wraps(func)
    def wrapper(*arguments: Any, **named: Any) -> T:
        try:
            return func(*arguments, **named)
        except tf.errors.OpError as error:
            # TensorFlow's own error for an exception in a graph.
            if HorovodInternalError.__name__ not in str(error):
                raise
            raise HorovodInternalError(str(error)) from error

    return _elastic.run_fn(wrapper)


class TensorFlowState(ObjectState):
    """A state of variables and of Python objects, which are its attributes: `TensorFlowState(variables, batch=0)`."""

    def __init__(self, variables: Sequence[Any], session: Any = None, **kwargs: Any) -> None:
        if session is not None:
            raise ValueError("TensorFlowState: sessions of TensorFlow 1 are not supported")
        self._given: Optional[Sequence[Any]] = variables
        self._saved_values: List[Any] = []
        super().__init__(broadcast_object, rank, **kwargs)
        self._save_variables()

    @property
    def variables(self) -> Sequence[Any]:
        """The variables whose values are saved."""
        return list(self._given or ())

    def _save_variables(self) -> None:
        self._saved_values = [one.numpy() for one in self.variables]

    def save(self) -> None:
        """Saves copies of all values."""
        self._save_variables()
        super().save()

    def restore(self) -> None:
        """Returns to the saved values. Optimizer variables created since they were saved are set to zero, like new variables."""
        for place, one in enumerate(self.variables):
            one.assign(self._saved_values[place] if place < len(self._saved_values) else tf.zeros_like(one))
        super().restore()

    def sync(self) -> None:
        """Copies rank 0's variable values and saved objects to all ranks."""
        broadcast_variables(self.variables, 0)
        self._save_variables()
        super().sync()


class TensorFlowKerasState(TensorFlowState):
    """The state of a Keras model, which must be built, of its optimizer or the given one, and of Python objects, as in TensorFlowState."""

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:  # pylint: disable=unused-argument
        if not getattr(model, "built", True):
            raise ValueError("TensorFlowKerasState: the model has no variables yet; call model.build(input_shape) before")
        self.model, self.optimizer = model, optimizer or model.optimizer
        if self.optimizer is not None and not getattr(self.optimizer, "built", True):
            # All ranks then have the same variables, including ranks that join later.
            self.optimizer.build(model.trainable_variables)
        super().__init__((), **kwargs)

    @property
    def variables(self) -> Sequence[Any]:
        return [*self.model.variables, *(self.optimizer.variables if self.optimizer is not None else ())]

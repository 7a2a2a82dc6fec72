"""Keras callbacks for training on several ranks."""
from typing import Any, Callable, Dict, Iterable, Optional, Union

import keras
import tensorflow as tf

from warren.horovod._job import rank, size
from warren.horovod.tensorflow._ops import allreduce, broadcast_variables

__all__ = ["BroadcastGlobalVariablesCallback", "LearningRateScheduleCallback", "LearningRateWarmupCallback",
           "MetricAverageCallback"]


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Copies the root's model and optimizer variables, except `local_variables`, to all ranks after the first batch, when all variables
    exist."""

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:  # pylint: disable=unused-argument
        super().__init__()
        self.root_rank, self.broadcast_done = root_rank, False
        one = local_variables is not None and not isinstance(local_variables, (list, tuple))
        self._local: Iterable[Any] = [local_variables] if one else list(local_variables or ())

    def on_batch_end(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        if self.broadcast_done:
            return
        variables = [*self.model.variables, *self.model.optimizer.variables]
        broadcast_variables([one for one in variables if not any(one is local for local in self._local)], self.root_rank)
        self.broadcast_done = True


class MetricAverageCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Averages the metrics of an epoch over all ranks, for the callbacks after this one."""

    def __init__(self, device: str = "") -> None:  # pylint: disable=unused-argument
        super().__init__()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:  # pylint: disable=unused-argument
        for metric, value in sorted((logs or {}).items()):
            assert logs is not None
            logs[metric] = float(allreduce(tf.constant(value, tf.float64), name=f"metric.{metric}"))


def _decay(factor: float, start_epoch: int) -> Callable[[float], float]:
    return lambda epoch: float(factor ** (epoch - start_epoch))


class LearningRateScheduleCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """In the epochs from `start_epoch` up to, but not including, `end_epoch`, sets the learning rate to `initial_lr` times a factor: the value
    of `multiplier` for the epoch if it is a function, else `multiplier` raised to the power of the number of epochs since `start_epoch`. The
    rate is set at the start of each epoch if `staircase`, else at the start of each batch."""

    def __init__(self, initial_lr: float, multiplier: Union[float, Callable[[float], float]], start_epoch: int = 0,
                 end_epoch: Optional[int] = None, staircase: bool = True, momentum_correction: bool = True,
                 steps_per_epoch: Optional[int] = None) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("initial_lr is needed: the learning rate that is multiplied")
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.staircase, self.momentum_correction, self.steps_per_epoch = staircase, momentum_correction, steps_per_epoch
        self._multiplier = multiplier if callable(multiplier) else _decay(multiplier, start_epoch)
        self._epoch = 0
        self._momentum: Optional[float] = None  # the original value while a corrected one is set

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self.params.get("steps")
            if not self.steps_per_epoch:
                raise ValueError(f"{type(self).__name__} needs steps_per_epoch: Keras does not know it")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        self._epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        if self._epoch < self.start_epoch or (self.end_epoch is not None and self._epoch >= self.end_epoch):
            return
        if not self.staircase:
            self._adjust(self._epoch + batch / (self.steps_per_epoch or 1))
        elif batch == 0:
            self._adjust(self._epoch)

    def _adjust(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        before, after = float(optimizer.learning_rate), self.initial_lr * self._multiplier(epoch)
        optimizer.learning_rate = after
        # A momentum that is a Python number is compiled into the step, and cannot be changed.
        momentum: Any = getattr(optimizer, "momentum", None)
        if self.momentum_correction and hasattr(momentum, "assign") and before > 0:
            self._momentum = float(momentum)
            momentum.assign(self._momentum * after / before)

    def on_batch_end(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        if self._momentum is not None:
            self.model.optimizer.momentum.assign(self._momentum)
            self._momentum = None

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:  # pylint: disable=unused-argument
        if logs is not None:
            logs["lr"] = float(self.model.optimizer.learning_rate)


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Raises the learning rate from initial_lr / size to initial_lr, batch by batch, during the first `warmup_epochs` epochs."""

    def __init__(self, initial_lr: float, warmup_epochs: int = 5, momentum_correction: bool = True,
                 steps_per_epoch: Optional[int] = None, verbose: int = 0) -> None:
        def multiplier(epoch: float) -> float:
            # With the last batch of an epoch, a whole number of epochs is reached.
            reached = epoch + 1.0 / (self.steps_per_epoch or 1)
            return (reached * (size() - 1) / warmup_epochs + 1) / size()

        super().__init__(initial_lr, multiplier, 0, warmup_epochs, False, momentum_correction, steps_per_epoch)
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.verbose > 0 and self.end_epoch == epoch + 1 and rank() == 0:
            print(f"\nEpoch {epoch + 1}: the learning rate has warmed up to {float(self.model.optimizer.learning_rate):g}.")

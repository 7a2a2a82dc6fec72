"""`hvd.elastic` for Keras: see warren.horovod._elastic, and docs/how-to/elastic.md."""
from typing import Any, Optional

import keras

from warren.horovod.tensorflow.elastic import TensorFlowKerasState, run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]

#: Horovod's name for TensorFlowKerasState in its modules for Keras.
KerasState = TensorFlowKerasState


class CommitStateCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Commits the state after each `batches_per_commit` batches, and at the end of each epoch. Comes after callbacks that change the
    state."""

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Begins to count, on all ranks."""
        self.batches_remaining = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Commits if it is time."""
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Commits."""
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps `state.batch`, the number of the last batch; 0 at the end of an epoch. The first epoch after a change of ranks is shortened by
    the batches that have been made, if the number of steps is known."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.steps_per_epoch: Optional[int] = None

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Forgets the number of steps, which depends on the number of ranks."""
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Sets the number of steps that are left."""
        if self.params.get("steps"):
            if self.steps_per_epoch is None:
                self.steps_per_epoch = self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Notes the batch."""
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Notes that the next batch is the first one."""
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps `state.epoch`, the number of epochs that have been completed. After a change of ranks Keras counts from 0 again."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Notes where this call of `fit` begins."""
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Counts the epoch."""
        self.state.epoch = self.initial_epoch + epoch + 1

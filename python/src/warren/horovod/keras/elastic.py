"""`hvd.elastic` for Keras: see warren.horovod._elastic, and docs/how-to/elastic.md."""
from typing import Any, Optional

import keras

from warren.horovod.tensorflow.elastic import TensorFlowKerasState, run

__all__ = ["CommitStateCallback", "KerasState", "UpdateBatchStateCallback", "UpdateEpochStateCallback", "run"]

#: Horovod's name for TensorFlowKerasState in its modules for Keras.
KerasState = TensorFlowKerasState


class CommitStateCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Commits the state after every `batches_per_commit` batches, and at the end of each epoch. It must come after all callbacks that change
    the state."""

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Restarts the count, so that it is the same on all ranks."""
        self.batches_remaining = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Commits if `batches_per_commit` batches have been counted."""
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Commits."""
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Stores the number of the last batch in `state.batch`, and 0 at the end of an epoch. In the first epoch after a change of ranks, the
    number of steps that callbacks find in `params` is smaller by `state.batch`. Keras 3 does not use this number, so `fit` runs the whole
    epoch again. To train only the rest of it, call `fit(..., steps_per_epoch=total - state.batch, epochs=1)` for this epoch, with a data
    set that begins at that batch, and then `fit` for the remaining epochs."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.steps_per_epoch: Optional[int] = None

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Discards the number of steps, which depends on the number of ranks."""
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Sets the number of remaining steps in `params`."""
        if self.params.get("steps"):
            if self.steps_per_epoch is None:
                self.steps_per_epoch = self.params["steps"]
            self.params["steps"] = self.steps_per_epoch - self.state.batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Stores the number of the batch."""
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Resets the number, since the next batch is the first of an epoch."""
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Stores the number of completed epochs in `state.epoch`. After a change of ranks Keras itself counts from 0 again."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Stores the number of epochs completed before this call of `fit`."""
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # pylint: disable=unused-argument
        """Adds the epoch to the completed ones."""
        self.state.epoch = self.initial_epoch + epoch + 1

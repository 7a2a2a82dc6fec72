"""Horovod's API for Keras 3 with TensorFlow over Warren's engine; see warren.horovod.

    import warren.horovod.keras as hvd
    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(optimizer), ...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()])
"""
from typing import Any, Optional

import keras as _keras

from warren.horovod import _basics
from warren.horovod import tensorflow as _tensorflow
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._basics import Average
from warren.horovod.keras import callbacks, elastic
from warren.horovod.tensorflow import (Compression, DistributedOptimizer, allgather_object, broadcast_object, broadcast_variables)

__all__ = [
    "Compression", "DistributedOptimizer", "allgather", "allgather_object", "allreduce", "broadcast", "broadcast_object",
    "broadcast_variables", "callbacks", "elastic", "load_model", "reducescatter",
]
__all__ += _basics.__all__


def _value(tensor: Any) -> Any:
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def allreduce(value: Any, name: Optional[str] = None, average: Optional[bool] = None, prescale_factor: float = 1.0,
              postscale_factor: float = 1.0, op: Optional[int] = None, compression: Any = Compression.none) -> Any:
    """Returns the reduction over all ranks, the average by default, as an array. `value` is anything that converts to a tensor."""
    return _value(_tensorflow.allreduce(value, average, compression=compression, op=op, prescale_factor=prescale_factor,
                                        postscale_factor=postscale_factor, name=name))


def allgather(value: Any, name: Optional[str] = None) -> Any:
    """Returns the rows of all ranks, concatenated, as an array."""
    return _value(_tensorflow.allgather(value, name))


def broadcast(value: Any, root_rank: int, name: Optional[str] = None) -> Any:
    """Returns the root's value, as an array."""
    return _value(_tensorflow.broadcast(value, root_rank, name))


def reducescatter(value: Any, name: Optional[str] = None, op: int = Average) -> Any:
    """Returns this rank's share of the rows of a reduction, as an array."""
    return _value(_tensorflow.reducescatter(value, op=op, name=name))


def load_model(filepath: Any, custom_optimizers: Any = None, custom_objects: Any = None, compression: Any = Compression.none,
               legacy_opts: bool = False) -> Any:  # pylint: disable=unused-argument
    """Loads a saved model. Its optimizer has the saved state, and uses the gradients of all ranks."""
    found = {kind.__name__: kind for kind in custom_optimizers or ()}
    model = _keras.models.load_model(filepath, custom_objects={**found, **(custom_objects or {})})
    saved = model.optimizer
    if saved is not None:
        made = DistributedOptimizer(saved, compression=compression)
        made.build(model.trainable_variables)
        for to, variable in zip(made.variables, saved.variables):
            to.assign(variable)
        model.optimizer = made
    return model

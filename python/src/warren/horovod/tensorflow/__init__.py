"""Horovod's API for TensorFlow over Warren's engine; see warren.horovod.

    import warren.horovod.tensorflow as hvd

    hvd.init()
    with tf.GradientTape() as tape:
        ...
    gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)

For TensorFlow 2 with Keras 3, eager and in tf.function (through tf.py_function, which XLA does not compile). Tensors must be in host
memory."""
from warren.horovod import _basics
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._objects import allgather_object, broadcast_object
from warren.horovod.tensorflow import elastic
from warren.horovod.tensorflow._compression import Compression
from warren.horovod.tensorflow._gradients import DistributedGradientTape, DistributedOptimizer
from warren.horovod.tensorflow._ops import (allgather, allreduce, alltoall, broadcast, broadcast_, broadcast_variables,
                                            grouped_allgather, grouped_allreduce, grouped_reducescatter, local_rank_op,
                                            local_size_op, process_set_included_op, rank_op, reducescatter, size_op)

__all__ = [
    "Compression", "DistributedGradientTape", "DistributedOptimizer", "allgather", "allgather_object", "allreduce", "alltoall",
    "broadcast", "broadcast_", "broadcast_object", "broadcast_variables", "elastic", "grouped_allgather", "grouped_allreduce",
    "grouped_reducescatter", "local_rank_op", "local_size_op", "process_set_included_op", "rank_op", "reducescatter", "size_op",
]
__all__ += _basics.__all__

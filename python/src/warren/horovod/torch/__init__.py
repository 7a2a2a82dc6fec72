"""Horovod's API for PyTorch over Warren's engine; see warren.horovod.

    import warren.horovod.torch as hvd

    hvd.init()
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

Supports PyTorch 1.13, and 2.4 or later. Tensors must be in host memory."""
from warren._frameworks import dynamo as _dynamo
from warren.horovod import _basics
from warren.horovod.torch import elastic
from warren.horovod._basics import *  # noqa: F403  # pylint: disable=wildcard-import
from warren.horovod._objects import allgather_object, broadcast_object
from warren.horovod.torch._autograd import (allgather, allreduce, alltoall, broadcast, grouped_allgather, grouped_allreduce,
                                            grouped_reducescatter, reducescatter)
from warren.horovod.torch._compression import Compression
from warren.horovod.torch._ops import (allgather_async, allreduce_, allreduce_async, allreduce_async_, alltoall_async, broadcast_,
                                       broadcast_async, broadcast_async_, grouped_allgather_async, grouped_allreduce_,
                                       grouped_allreduce_async, grouped_allreduce_async_, grouped_reducescatter_async, poll,
                                       reducescatter_async, sparse_allreduce_async, synchronize)
from warren.horovod.torch._optimizer import DistributedOptimizer
from warren.horovod.torch._state import broadcast_optimizer_state, broadcast_parameters
from warren.horovod.torch._sync_batch_norm import SyncBatchNorm

__all__ = [
    "Compression", "DistributedOptimizer", "SyncBatchNorm", "allgather", "allgather_async", "allgather_object", "allreduce",
    "allreduce_", "allreduce_async", "allreduce_async_", "alltoall", "alltoall_async", "broadcast", "broadcast_",
    "broadcast_async",
    "broadcast_async_", "broadcast_object", "broadcast_optimizer_state", "broadcast_parameters", "elastic", "grouped_allgather",
    "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_", "grouped_allreduce_async", "grouped_allreduce_async_",
    "grouped_reducescatter", "grouped_reducescatter_async", "poll", "reducescatter", "reducescatter_async",
    "sparse_allreduce_async",
    "synchronize",
]
__all__ += _basics.__all__

_dynamo.leave_alone()

"""Synchronous operations, which propagate gradients."""
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from warren.horovod._job import ProcessSet, global_process_set, rank
from warren.horovod._named import ReduceOp
from warren.horovod.torch import _ops
from warren.horovod.torch._compression import Compression
from warren.horovod.torch._ops import synchronize


class _Allreduce(torch.autograd.Function):  # type: ignore[misc]
    """An allreduce, whose gradient is reduced in the same way."""

    @staticmethod
    def forward(ctx: Any, how: Tuple[Any, ...], name: Optional[str], *tensors: Tensor) -> Tuple[Tensor, ...]:
        ctx.how = how
        average, op, before, after, process_set = how
        if len(tensors) == 1:
            return (synchronize(_ops.allreduce_async(tensors[0], average, name, op, before, after, process_set)),)
        return tuple(synchronize(_ops.grouped_allreduce_async(tensors, average, name, op, before, after, process_set)))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Any, ...]:
        return (None, None, *_Allreduce.apply(ctx.how, None, *gradients))


def allreduce(tensor: Tensor, average: Optional[bool] = None, name: Optional[str] = None, compression: Any = Compression.none,
              op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
              process_set: ProcessSet = global_process_set) -> Tensor:
    """Returns the reduction of a tensor over all ranks, the average by default, in a new tensor."""
    compressed, context = compression.compress(tensor)
    (reduced,) = _Allreduce.apply((average, op, prescale_factor, postscale_factor, process_set), name, compressed)
    return compression.decompress(reduced, context)


def grouped_allreduce(tensors: Sequence[Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                      compression: Any = Compression.none, op: Optional[int] = None, prescale_factor: float = 1.0,
                      postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set) -> List[Tensor]:
    """Returns the reductions of several tensors, which are reduced together, in new tensors."""
    if not tensors:
        return []
    compressed, contexts = zip(*(compression.compress(tensor) for tensor in tensors))
    reduced = _Allreduce.apply((average, op, prescale_factor, postscale_factor, process_set), name, *compressed)
    return [compression.decompress(tensor, context) for tensor, context in zip(reduced, contexts)]


class _Allgather(torch.autograd.Function):  # type: ignore[misc]
    """An allgather. A rank's gradient is the average of the result's gradient over all ranks, at this rank's rows."""

    @staticmethod
    def forward(ctx: Any, process_set: ProcessSet, name: Optional[str], *tensors: Tensor) -> Tuple[Tensor, ...]:
        ctx.process_set, ctx.rows = process_set, [tensor.shape[:1].numel() for tensor in tensors]
        if len(tensors) == 1:
            return (synchronize(_ops.allgather_async(tensors[0], name, process_set)),)
        return tuple(synchronize(_ops.grouped_allgather_async(tensors, name, process_set)))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Any, ...]:
        reduced = grouped_allreduce(gradients, op=ReduceOp.Average, process_set=ctx.process_set)
        rows = synchronize(_ops.allgather_async(torch.tensor([ctx.rows]), None, ctx.process_set))
        begins = rows[:ctx.process_set.rank()].sum(0).tolist()
        return (None, None, *(one.narrow(0, begin, count) for one, begin, count in zip(reduced, begins, ctx.rows)))


def allgather(tensor: Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Tensor:
    """Returns the rows of all ranks, concatenated; ranks may pass different numbers of rows."""
    return _Allgather.apply(process_set, name, tensor)[0]


def grouped_allgather(tensors: Sequence[Tensor], name: Optional[str] = None,
                      process_set: ProcessSet = global_process_set) -> List[Tensor]:
    """Like `allgather`, for several tensors, which are gathered together."""
    return list(_Allgather.apply(process_set, name, *tensors))


class _Broadcast(torch.autograd.Function):  # type: ignore[misc]
    """A broadcast. The root's gradient is the average of the gradients of all ranks; the other ranks' tensors did not contribute."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, root_rank: int, name: Optional[str], process_set: ProcessSet) -> Tensor:
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return synchronize(_ops.broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Any, ...]:
        reduced = allreduce(gradient, op=ReduceOp.Average, process_set=ctx.process_set)
        return (reduced if rank() == ctx.root_rank else torch.zeros_like(reduced)), None, None, None


def broadcast(tensor: Tensor, root_rank: int, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Tensor:
    """Returns the root's tensor, in a new tensor."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


class _Alltoall(torch.autograd.Function):  # type: ignore[misc]
    """An all-to-all, whose gradients are sent back to the ranks from which the rows came."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, splits: Any, name: Optional[str], process_set: ProcessSet) -> Tuple[Tensor, Tensor]:
        output, received = synchronize(_ops.alltoall_async(tensor, splits, name, process_set))
        ctx.process_set, ctx.received, ctx.num_rows = process_set, received, len(tensor)
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Any) -> Tuple[Any, ...]:
        back = alltoall(gradient, ctx.received, process_set=ctx.process_set)[0]
        missing = ctx.num_rows - len(back)  # rows that the splits did not send
        return (torch.cat([back, back.new_zeros((missing, *back.shape[1:]))]) if missing else back), None, None, None


def alltoall(tensor: Tensor, splits: Union[None, Tensor, Sequence[int]] = None, name: Optional[str] = None,
             process_set: ProcessSet = global_process_set) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    """Sends splits[r] rows to each rank r. Returns the received rows, in rank order and, if there are `splits`, also the number of rows
    from each rank."""
    output, received = _Alltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


class _Reducescatter(torch.autograd.Function):  # type: ignore[misc]
    """A reduce-scatter. The gradient is the concatenation of the gradients of all ranks, multiplied by both scaling factors and, for a sum,
    by the number of ranks."""

    @staticmethod
    def forward(ctx: Any, how: Tuple[Any, ...], name: Optional[str], *tensors: Tensor) -> Tuple[Tensor, ...]:
        op, process_set, before, after = how
        ctx.process_set = process_set
        ctx.factor = before * after * (process_set.size() if op == ReduceOp.Sum else 1)
        if len(tensors) == 1:
            return (synchronize(_ops.reducescatter_async(tensors[0], name, op, process_set, before, after)),)
        return tuple(synchronize(_ops.grouped_reducescatter_async(tensors, name, op, process_set, before, after)))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tuple[Any, ...]:
        return (None, None, *grouped_allgather([gradient * ctx.factor for gradient in gradients], process_set=ctx.process_set))


def reducescatter(tensor: Tensor, name: Optional[str] = None, compression: Any = Compression.none, op: int = ReduceOp.Average,
                  process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                  postscale_factor: float = 1.0) -> Tensor:
    """Returns this rank's share of the rows of a reduction; if the shares cannot be equal, the first ranks get one row more."""
    return grouped_reducescatter([tensor], name, compression, op, process_set, prescale_factor, postscale_factor)[0]


def grouped_reducescatter(tensors: Sequence[Tensor], name: Optional[str] = None, compression: Any = Compression.none,
                          op: int = ReduceOp.Average, process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                          postscale_factor: float = 1.0) -> List[Tensor]:
    """Like `reducescatter`, for several tensors, which are reduced together."""
    if not tensors:
        return []
    compressed, contexts = zip(*(compression.compress(tensor) for tensor in tensors))
    reduced = _Reducescatter.apply((op, process_set, prescale_factor, postscale_factor), name, *compressed)
    return [compression.decompress(tensor, context) for tensor, context in zip(reduced, contexts)]

"""Asynchronous operations on tensors, and waiting for them.

A contiguous tensor is passed to the engine without a copy; any other tensor is copied first."""
import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from warren.horovod._arrays import splits_of
from warren.horovod._job import ProcessSet, global_process_set
from warren.horovod._named import Memory, Pending, ReduceOp, op_of, shares_of

#: The type that the asynchronous functions return, for `synchronize` and `poll`.
Operation = Pending[Any]


@functools.lru_cache(maxsize=None)
def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]


def _check(tensor: Any, what: str) -> None:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{what}: a tensor is expected, not {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise ValueError(
            f"{what}: warren.horovod takes tensors in host memory, but this one is on {tensor.device}; give it tensor.cpu()")
    if tensor.layout != torch.strided:
        raise ValueError(f"{what}: this tensor is {tensor.layout}; hvd.sparse_allreduce_async takes sparse ones")


def _check_rows(tensor: Tensor, what: str) -> Tensor:
    _check(tensor, what)
    if tensor.dim() == 0:
        raise ValueError(f"{what}: this tensor is a single number and has no rows")
    return tensor


def _memory(tensor: Tensor) -> Memory:
    return Memory(tensor.data_ptr(), tuple(tensor.shape), _name_of(tensor.dtype), tensor.numel(), tensor.element_size(), tensor)


def _contiguous(tensor: Tensor) -> Tensor:
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _empty_like(tensor: Tensor) -> Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype)


# --- reductions ---

def _scaled(tensor: Tensor, factor: float) -> Tensor:
    """Scales a tensor. Computes integers in float64, truncating the result, and float16 in float32."""
    if not tensor.dtype.is_floating_point:
        return tensor.to(torch.float64).mul_(factor).to(tensor.dtype)
    if tensor.dtype == torch.float16:
        return tensor.to(torch.float32).mul_(factor).to(tensor.dtype)
    return tensor * factor


class _Scaling:
    """Scaling of the elements before and after they are reduced."""

    def __init__(self, op: ReduceOp, before: float, after: float, size: int) -> None:
        self._before, self._after, self._size = before, after, size
        self._is_average = op == ReduceOp.Average

    def source(self, tensor: Tensor, output: Tensor) -> Tensor:
        """Returns the tensor to reduce: the tensor itself, or the scaled one, stored in `output` if it has the same shape."""
        if self._before == 1.0:
            return tensor
        with torch.no_grad():
            scaled = _scaled(tensor, self._before)
            return output.copy_(scaled) if output.shape == scaled.shape else scaled

    def finish(self, tensor: Tensor) -> Tensor:
        """Scales the result, and completes an average of integers, which the engine does not compute."""
        divides = self._is_average and not tensor.dtype.is_floating_point
        if self._after == 1.0 and not divides:
            return tensor
        with torch.no_grad():
            if divides and self._after == 1.0:
                wide = tensor if self._size <= torch.iinfo(tensor.dtype).max else tensor.to(torch.int64)
                return tensor.copy_(torch.div(wide, self._size, rounding_mode="trunc"))
            return tensor.copy_(_scaled(tensor, self._after / self._size if divides else self._after))


def _allreduce(tensors: Sequence[Tensor], outputs: Sequence[Tensor], kind: str, name: Optional[str], op: ReduceOp, before: float,
               after: float, process_set: ProcessSet, wrap: Callable[[List[Tensor]], Any]) -> Operation:
    named = process_set.named(kind)
    scaling = _Scaling(op, before, after, named.size)
    targets = [output if output.is_contiguous() else _empty_like(output) for output in outputs]
    sources = [scaling.source(_contiguous(tensor), target) for tensor, target in zip(tensors, targets)]
    into = [_memory(target) for target in targets]
    of = [memory if source is memory.owner else _memory(source) for source, memory in zip(sources, into)]
    handles = named.allreduce(named.name_of(kind, name), of, into, op)

    def finish(_: List[Any]) -> Any:
        for output, target in zip(outputs, targets):
            scaling.finish(target)
            _copy_back(output, target)
        return wrap(list(outputs))

    return Pending(handles, finish)


def _copy_back(output: Tensor, made: Tensor) -> None:
    """Copies the result to a non-contiguous output that was replaced by contiguous memory."""
    if output is not made and output.data_ptr() != made.data_ptr():
        with torch.no_grad():
            output.copy_(made)


def _only(outputs: List[Tensor]) -> Tensor:
    return outputs[0]


def _new_outputs(tensors: Sequence[Tensor], what: str) -> List[Tensor]:
    for tensor in tensors:
        _check(tensor, what)
    return [_empty_like(tensor) for tensor in tensors]


def allreduce_async(tensor: Tensor, average: Optional[bool] = None, name: Optional[str] = None, op: Optional[int] = None,
                    prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                    process_set: ProcessSet = global_process_set) -> Operation:
    """Starts the reduction of a tensor over all ranks, the average by default, into a new tensor."""
    return _allreduce([tensor], _new_outputs([tensor], "allreduce"), "allreduce", name, op_of(op, average), prescale_factor,
                      postscale_factor, process_set, _only)


def allreduce_async_(tensor: Tensor, average: Optional[bool] = None, name: Optional[str] = None, op: Optional[int] = None,
                     prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                     process_set: ProcessSet = global_process_set) -> Operation:
    """Like `allreduce_async`, in place."""
    _check(tensor, "allreduce")
    return _allreduce([tensor], [tensor], "allreduce", name, op_of(op, average), prescale_factor, postscale_factor, process_set,
                      _only)


def allreduce_(tensor: Tensor, average: Optional[bool] = None, name: Optional[str] = None, op: Optional[int] = None,
               prescale_factor: float = 1.0, postscale_factor: float = 1.0,
               process_set: ProcessSet = global_process_set) -> Tensor:
    """Reduces a tensor over all ranks, to the average by default, in place."""
    return synchronize(allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce_async(tensors: Sequence[Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                            op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                            process_set: ProcessSet = global_process_set) -> Operation:
    """Starts the reductions of several tensors, which are reduced together, into new tensors."""
    return _allreduce(tensors, _new_outputs(tensors, "grouped_allreduce"), "grouped_allreduce", name, op_of(op, average),
                      prescale_factor, postscale_factor, process_set, list)


def grouped_allreduce_async_(tensors: Sequence[Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                             op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                             process_set: ProcessSet = global_process_set) -> Operation:
    """Like `grouped_allreduce_async`, in place."""
    for tensor in tensors:
        _check(tensor, "grouped_allreduce")
    return _allreduce(tensors, tensors, "grouped_allreduce", name, op_of(op, average), prescale_factor, postscale_factor,
                      process_set, list)


def grouped_allreduce_(tensors: Sequence[Tensor], average: Optional[bool] = None, name: Optional[str] = None,
                       op: Optional[int] = None, prescale_factor: float = 1.0, postscale_factor: float = 1.0,
                       process_set: ProcessSet = global_process_set) -> List[Tensor]:
    """Reduces several tensors in place; they are reduced together."""
    handle = grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
    return list(synchronize(handle))


def sparse_allreduce_async(tensor: Tensor, name: Optional[str] = None, op: int = ReduceOp.Average,
                           process_set: ProcessSet = global_process_set) -> Callable[[], Tensor]:
    """Starts the sum or average of a sparse tensor over all ranks, by gathering its elements. Returns a function that waits for the
    result."""
    if op not in (ReduceOp.Average, ReduceOp.Sum):
        raise ValueError("sparse_allreduce: sparse tensors can only be summed or averaged")
    own = tensor.coalesce()
    parts = [own.indices().t().contiguous(), own.values()]
    gathering = grouped_allgather_async(parts, f"sparse.{name}" if name else None, process_set)

    def wait() -> Tensor:
        indices, values = synchronize(gathering)
        if op == ReduceOp.Average:
            values = values / process_set.named("sparse_allreduce").size
        return torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()

    return wait


def _reducescatter(tensors: Sequence[Tensor], kind: str, name: Optional[str], op: int, process_set: ProcessSet, before: float,
                   after: float, wrap: Callable[[List[Tensor]], Any]) -> Operation:
    named = process_set.named(kind)
    scaling = _Scaling(ReduceOp(op), before, after, named.size)
    sources, outputs = [], []
    for tensor in tensors:
        share = shares_of(len(_check_rows(tensor, kind)), named.size)[named.rank]
        outputs.append(torch.empty((share, *tensor.shape[1:]), dtype=tensor.dtype))
        sources.append(scaling.source(_contiguous(tensor), outputs[-1]))
    handles = named.reduce_scatter(named.name_of(kind, name), [_memory(source) for source in sources],
                                   [_memory(output) for output in outputs], op)

    return Pending(handles, lambda _: wrap([scaling.finish(output) for output in outputs]))


def reducescatter_async(tensor: Tensor, name: Optional[str] = None, op: int = ReduceOp.Average,
                        process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                        postscale_factor: float = 1.0) -> Operation:
    """Starts a reduction of which each rank receives a share of the rows; if the shares cannot be equal, the first ranks receive one row
    more."""
    return _reducescatter([tensor], "reducescatter", name, op, process_set, prescale_factor, postscale_factor, _only)


def grouped_reducescatter_async(tensors: Sequence[Tensor], name: Optional[str] = None, op: int = ReduceOp.Average,
                                process_set: ProcessSet = global_process_set, prescale_factor: float = 1.0,
                                postscale_factor: float = 1.0) -> Operation:
    """Like `reducescatter_async`, for several tensors, which are reduced together."""
    return _reducescatter(tensors, "grouped_reducescatter", name, op, process_set, prescale_factor, postscale_factor, list)


# --- operations that only move data ---

def _allgather(tensors: Sequence[Tensor], kind: str, name: Optional[str], process_set: ProcessSet,
               wrap: Callable[[List[Tensor]], Any]) -> Operation:
    named = process_set.named(kind)
    sources = [_contiguous(_check_rows(tensor, kind)) for tensor in tensors]

    def allocate(shape: Tuple[int, ...], index: int) -> Memory:
        return _memory(torch.empty(shape, dtype=sources[index].dtype))

    gathering = named.allgather(named.name_of(kind, name), [_memory(source) for source in sources], allocate)
    return Pending([gathering], lambda results: wrap(results[0]))


def allgather_async(tensor: Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> Operation:
    """Starts to concatenate the rows of all ranks; ranks may pass different numbers of rows."""
    return _allgather([tensor], "allgather", name, process_set, _only)


def grouped_allgather_async(tensors: Sequence[Tensor], name: Optional[str] = None,
                            process_set: ProcessSet = global_process_set) -> Operation:
    """Like `allgather_async`, for several tensors, which are gathered together."""
    return _allgather(tensors, "grouped_allgather", name, process_set, list)


def broadcast_async(tensor: Tensor, root_rank: int, name: Optional[str] = None,
                    process_set: ProcessSet = global_process_set) -> Operation:
    """Starts a broadcast of the root's tensor, into a new tensor."""
    _check(tensor, "broadcast")
    output = _empty_like(tensor)
    named = process_set.named("broadcast")
    if named.rank == process_set.place_of(root_rank, "broadcast"):
        output.copy_(tensor.detach())
    return broadcast_async_(output, root_rank, name, process_set)


def broadcast_async_(tensor: Tensor, root_rank: int, name: Optional[str] = None,
                     process_set: ProcessSet = global_process_set) -> Operation:
    """Like `broadcast_async`, in place."""
    _check(tensor, "broadcast")
    named, root = process_set.named("broadcast"), process_set.place_of(root_rank, "broadcast")
    data = _contiguous(tensor)
    handle = named.broadcast(named.name_of("broadcast", name), _memory(data), root)

    def finish(_: List[Any]) -> Tensor:
        _copy_back(tensor, data)
        return tensor

    return Pending([handle], finish)


def broadcast_(tensor: Tensor, root_rank: int, name: Optional[str] = None,
               process_set: ProcessSet = global_process_set) -> Tensor:
    """Overwrites the tensor with the root's."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


def alltoall_async(tensor: Tensor, splits: Union[None, Tensor, Sequence[int]] = None, name: Optional[str] = None,
                   process_set: ProcessSet = global_process_set) -> Operation:
    """Starts sending splits[r] rows to each rank r. The result is two tensors: the received rows, in rank order, and the number of rows
    from each rank."""
    named = process_set.named("alltoall")
    source = _contiguous(_check_rows(tensor, "alltoall"))
    kind = splits.dtype if isinstance(splits, Tensor) else torch.int32
    counts = splits_of(source.shape[0], splits, named.size)

    def allocate(shape: Tuple[int, ...], _: int) -> Memory:
        return _memory(torch.empty(shape, dtype=source.dtype))

    exchange = named.all_to_all(named.name_of("alltoall", name), _memory(source), counts, allocate)

    def finish(results: List[Any]) -> Tuple[Tensor, Tensor]:
        output, received = results[0][0]
        return output, torch.from_numpy(received).to(kind)

    return Pending([exchange], finish)


# --- waiting ---

def synchronize(handle: Operation) -> Any:
    """Waits for the operation and returns its result. Raises HorovodInternalError if it failed."""
    return handle.wait()


def poll(handle: Operation) -> bool:
    """Whether the operation has ended, so that `synchronize` does not block."""
    return handle.done()

"""Collectives on GPU tensors.

Data flow: a call is enqueued on PyTorch's current stream, after the work already there, by the device-memory functions of warren/c_api.h
(docs/how-to/gpu.md: NCCL, CUDA IPC or the host), and the caller continues. c10d's work is an event recorded after the call: waiting for the
work makes the caller's current stream wait. NCCL's backend works in the same way, and DistributedDataParallel relies on it. Other
collectives go through host memory: `Staging` copies there and back."""
from typing import Any, List, Sequence

import torch
from torch import Tensor
from torch.distributed import Work as C10dWork
from torch.futures import Future

from warren._engine import c_api as _c
from warren._engine.calls import DeviceCall, Handle
from warren.torch._tensors import Staging, num_bytes, op_of, reduction, root_of
from warren.torch._work import BaseWork, let_go


class DeviceWork(BaseWork):
    """c10d's work for a call enqueued on a stream."""

    def __init__(self, handle: "Handle[Any]", result: List[Tensor]) -> None:
        super().__init__(result)
        self._handle, self._device = handle, result[0].device
        self._behind = torch.cuda.Event()
        self._behind.record(torch.cuda.current_stream(self._device))

    def wait(self, timeout: Any = None) -> bool:  # pylint: disable=unused-argument
        """Makes the current stream wait, but not the caller. Raises RuntimeError if the call is known to have failed."""
        let_go(self)
        if self._handle.done():
            self._handle.wait()
        torch.cuda.current_stream(self._device).wait_event(self._behind)
        return True

    def is_completed(self) -> bool:
        return self._handle.done() and bool(self._behind.query())  # the results may still be copied on the stream

    def exception(self) -> Any:
        try:
            if self._handle.done():
                self._handle.wait()
        except RuntimeError as error:
            return error
        return None

    def get_future(self) -> "Future[List[Tensor]]":
        future: "Future[List[Tensor]]" = Future(devices=[self._device])
        future.set_result(self._result)  # the streams of the future's readers wait for the current stream
        return future


def has(*tensors: Any) -> bool:
    """Whether all arguments are tensors on CUDA GPUs."""
    return all(isinstance(tensor, Tensor) and tensor.is_cuda for tensor in tensors)


def alike(tensors: Sequence[Tensor]) -> bool:
    """Whether all tensors are on GPUs and of the same size."""
    return has(*tensors) and len({tensor.numel() for tensor in tensors}) == 1


def _put(comm: Any, name: str, arguments: Sequence[Any], result: List[Tensor], staging: Staging, kept: Any) -> C10dWork:
    stream = torch.cuda.current_stream(result[0].device).cuda_stream
    handle = DeviceCall(name, (comm, *arguments, stream), None, kept).begin()
    staging.copy_back()  # on the same stream
    return DeviceWork(handle, result)


def allreduce(comm: Any, tensor: Tensor, opts: Any) -> C10dWork:
    kind, op, width = reduction(op_of(opts), tensor.dtype, "allreduce")
    staging = Staging(on_device=True)
    data = staging.target(tensor, keeps=True)
    at = data.data_ptr()
    return _put(comm, "WarrenDeviceAllreduce", (at, at, width * data.numel(), kind, op), [tensor], staging, data)


def broadcast(comm: Any, tensor: Tensor, opts: Any) -> C10dWork:
    staging = Staging(on_device=True)
    data = staging.target(tensor, keeps=True)
    at = data.data_ptr()
    return _put(comm, "WarrenDeviceBroadcast", (at, at, num_bytes(data), _c.BYTES, root_of(opts)), [tensor], staging, data)


def allgather(comm: Any, outputs: List[Tensor], source: Tensor) -> C10dWork:
    """`outputs`: the results of all ranks in rank order, as one tensor, or as several of the same size."""
    staging = Staging(on_device=True)
    data, (made, kept) = staging.source(source), staging.targets(outputs)
    return _put(comm, "WarrenDeviceAllgather", (data.data_ptr(), made, num_bytes(data), _c.BYTES), outputs, staging, (data, kept))


def reduce_scatter(comm: Any, output: Tensor, sources: List[Tensor], opts: Any) -> C10dWork:
    """`sources`: the inputs for all ranks, in the same form as the `outputs` of `allgather`."""
    kind, op, width = reduction(op_of(opts), output.dtype, "reduce_scatter")
    staging = Staging(on_device=True)
    (data, kept), made = staging.sources(sources), staging.target(output)
    count = width * made.numel()
    return _put(comm, "WarrenDeviceReduceScatter", (data, made.data_ptr(), count, kind, op), [output], staging, (kept, made))

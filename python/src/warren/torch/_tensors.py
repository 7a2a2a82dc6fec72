"""Tensors in the engine's terms: its numbers for types and operations, and contiguous memory."""
import datetime
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist
from torch import Tensor

from warren._engine import c_api as _c
from warren.collectives import Op

TYPES = {
    torch.int8: _c.TYPES["int8"], torch.uint8: _c.TYPES["uint8"], torch.int32: _c.TYPES["int32"],
    torch.int64: _c.TYPES["int64"], torch.float32: _c.TYPES["float32"], torch.float64: _c.TYPES["float64"],
    torch.float16: _c.TYPES["float16"], torch.bfloat16: _c.TYPES["bfloat16"],
}
#: Complex types, each with the type of its real and imaginary parts. Complex numbers are reduced as pairs of these parts.
PARTS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
_OPS = {
    "SUM": Op.SUM, "AVG": Op.AVG, "PRODUCT": Op.PROD, "MIN": Op.MIN, "MAX": Op.MAX, "BAND": Op.BITAND, "BOR": Op.BITOR,
    "BXOR": Op.BITXOR,
}
#: The operations for bytes that are 0 or 1: sums and products mean "any" and "all", as in the other backends.
_BOOL_OPS = {"SUM": Op.MAX, "PRODUCT": Op.MIN, "MIN": Op.MIN, "MAX": Op.MAX, "BAND": Op.BITAND, "BOR": Op.BITOR,
             "BXOR": Op.BITXOR}


def kind_of(op: Any) -> Any:
    return getattr(op, "op", op)  # a ReduceOp has the operation in `op`


def _reductions() -> Dict[Tuple[int, torch.dtype], Tuple[int, int, int]]:
    """Maps c10d's operation (as a number) and the tensors' type to the engine's type and operation, and to the number of the engine's
    elements for each element of a tensor."""
    found = {}
    for name, op in _OPS.items():
        number = int(kind_of(getattr(dist.ReduceOp, name)))
        for dtype, kind in TYPES.items():
            is_bitwise = op in (Op.BITAND, Op.BITOR, Op.BITXOR)
            if (dtype.is_floating_point and not is_bitwise) or (not dtype.is_floating_point and op != Op.AVG):
                found[number, dtype] = (kind, int(op), 1)
        if op in (Op.SUM, Op.AVG):
            for dtype, part in PARTS.items():
                found[number, dtype] = (TYPES[part], int(op), 2)
        if name in _BOOL_OPS:
            found[number, torch.bool] = (TYPES[torch.uint8], int(_BOOL_OPS[name]), 1)
    return found


_REDUCTIONS = _reductions()


def reduction(op: Any, dtype: torch.dtype, what: str) -> Tuple[int, int, int]:
    """Looks up _REDUCTIONS. Raises RuntimeError if the type does not support the operation."""
    kind = kind_of(op)
    found = _REDUCTIONS.get((int(kind), dtype))
    if found is None:
        name = getattr(kind, "name", str(kind))
        hint = "; complex numbers support SUM and AVG" if dtype in PARTS else ""
        raise RuntimeError(f"{what}: the backend warren does not support {name} of {dtype}{hint}")
    return found


def check(tensor: Any, what: str) -> Tensor:
    """Returns the tensor. Raises TypeError or RuntimeError unless it is a dense tensor in host memory or on a CUDA GPU."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{what}: a tensor is expected, not {type(tensor).__name__}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise RuntimeError(f"{what}: tensors must be in host memory or on CUDA GPUs, but this one is on {tensor.device}; "
                           "give it tensor.cpu()")
    if tensor.layout != torch.strided:
        raise RuntimeError(f"{what}: tensors must be dense, but this one is {tensor.layout}")
    return tensor


def check_on_host(tensor: Any, what: str) -> Tensor:
    if check(tensor, what).is_cuda:
        raise RuntimeError(f"{what}: tensors must be in host memory, but this one is on {tensor.device}; give it tensor.cpu()")
    return tensor


def one(tensors: Any, what: str) -> Tensor:
    """Returns the tensor itself, or the only tensor of a list. Raises ValueError if the list has none or several, and the errors of
    `check`."""
    if isinstance(tensors, Tensor):
        return check(tensors, what)
    if len(tensors) != 1:
        raise ValueError(f"{what}: one tensor per process is expected, not {len(tensors)}")
    return check(tensors[0], what)


def num_bytes(tensor: Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def op_of(opts: Any) -> Any:
    """The operation of an options object, or the operation itself; the sum if None."""
    return dist.ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def root_of(opts: Any) -> int:
    return int(getattr(opts, "rootRank", opts))


def row_bytes(tensor: Tensor) -> int:
    return num_bytes(tensor) // max(1, len(tensor))


def is_async(opts: Any) -> bool:
    """Whether the caller continues without waiting. Before PyTorch 2.7, options do not contain this, and the result is true."""
    return getattr(opts, "asyncOp", True)


def seconds_of(timeout: Optional[datetime.timedelta]) -> Optional[float]:
    """The timeout in seconds; None, which stands for the group's timeout, unless the timeout is positive."""
    return timeout.total_seconds() if timeout is not None and timeout.total_seconds() > 0 else None


def is_plain(tensor: Tensor) -> bool:
    """Whether the tensor's elements are stored contiguously and unmodified. (A conjugate is a view of memory that has the original
    elements.)"""
    return bool(tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg())


def materialized(tensor: Tensor) -> Tensor:
    """The tensor's elements as a plain tensor outside the autograd graph; a copy unless the tensor itself is plain."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


class Staging:
    """Provides contiguous memory for tensors that are not contiguous, for a list of tensors, or for GPU tensors that are needed in host memory,
    and copies results back to the tensors. `on_device`: the memory is on the tensors' device instead of in host memory. Copies between device
    and host are synchronous."""

    def __init__(self, on_device: bool = False) -> None:
        self._on_device = on_device
        self._back: List[Tuple[Tensor, Tensor]] = []

    def _there(self, tensor: Tensor) -> bool:
        return self._on_device or not tensor.is_cuda

    def source(self, tensor: Tensor) -> Tensor:
        made = materialized(tensor)
        return made if self._there(tensor) else made.cpu()

    def target(self, tensor: Tensor, keeps: bool = False) -> Tensor:
        """Returns memory for a result that `copy_back` copies to the tensor; the tensor itself if its memory can be used. `keeps`: the memory
        must also contain the tensor's current contents."""
        there = self._there(tensor)
        if there and is_plain(tensor):
            return tensor
        if keeps:
            made = materialized(tensor if there else tensor.cpu())
        elif there:
            made = torch.empty_like(tensor, memory_format=torch.contiguous_format)
        else:
            made = torch.empty(tensor.shape, dtype=tensor.dtype)
        self._back.append((tensor, made))
        return made

    def _joined(self, tensors: Sequence[Tensor]) -> Optional[int]:
        """The address of the tensors if they are adjacent in memory, else None."""
        first: int = tensors[0].data_ptr() if tensors else 0
        at = first
        for tensor in tensors:
            if not self._there(tensor) or not is_plain(tensor) or (tensor.numel() > 0 and tensor.data_ptr() != at):
                return None
            at += num_bytes(tensor)
        return first

    def _flat(self, tensors: Sequence[Tensor]) -> Tensor:
        return torch.cat([materialized(tensor if self._there(tensor) else tensor.cpu()).reshape(-1) for tensor in tensors])

    def sources(self, tensors: Sequence[Tensor]) -> Tuple[int, Any]:
        """Returns the address of memory that contains all tensors, one after the other, and an object that must stay alive while the address
        is used."""
        at = self._joined(tensors)
        if at is not None:
            return at, tensors
        flat = self._flat(tensors)
        return flat.data_ptr(), flat

    def targets(self, tensors: Sequence[Tensor], keeps: bool = False) -> Tuple[int, Any]:
        at = self._joined(tensors)
        if at is not None:
            return at, tensors
        total = sum(tensor.numel() for tensor in tensors)
        device = tensors[0].device if self._on_device else "cpu"
        flat = self._flat(tensors) if keeps else torch.empty(total, dtype=tensors[0].dtype, device=device)
        begin = 0
        for tensor in tensors:
            self._back.append((tensor, flat[begin:begin + tensor.numel()].view(tensor.shape)))
            begin += tensor.numel()
        return flat.data_ptr(), flat

    def copy_back(self) -> None:
        with torch.no_grad():  # a tensor may be a parameter, and the engine's threads have a gradient mode of their own
            for to, made in self._back:
                to.copy_(made)
        self._back.clear()

"""Packs a module's tensors into one row of elements for each type, and reduces and broadcasts such rows."""
from typing import Any, Dict, Iterable, List, Sequence

import torch
from torch import Tensor

from warren import collectives
from warren._engine import c_api as _c
from warren.collectives import Communicator
from warren.torch._tensors import PARTS, TYPES, check_on_host, num_bytes


def by_type(tensors: Iterable[Tensor]) -> List[List[Tensor]]:
    """Groups the tensors by type, keeping their order."""
    found: Dict[Any, List[Tensor]] = {}
    for tensor in tensors:
        found.setdefault(tensor.dtype, []).append(tensor)
    return list(found.values())


def pack(tensors: Sequence[Tensor]) -> Tensor:
    """Returns a copy of the elements of all tensors, in one row."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def unpack(row: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copies the row into the tensors, in place."""
    with torch.no_grad():
        for tensor, part in zip(tensors, parts_of(row, tensors)):
            tensor.copy_(part)


def parts_of(row: Tensor, tensors: Sequence[Tensor]) -> List[Tensor]:
    """Returns each tensor's part of the row, in its shape."""
    parts = torch.split(row, [tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors)]


def allreduce_call(communicator: Communicator, tensor: Tensor, op: int, what: str) -> "collectives.Call[Tensor]":
    """Returns the call for an in-place allreduce of a contiguous tensor. For complex tensors, `op` must be a sum or an average. Raises
    TypeError for a type that cannot be reduced, and RuntimeError unless the tensor is dense and in host memory."""
    check_on_host(tensor, what)
    parts = torch.view_as_real(tensor) if tensor.dtype in PARTS else tensor
    if parts.dtype not in TYPES:
        raise TypeError(f"{what} takes {', '.join(str(dtype) for dtype in (*TYPES, *PARTS))}, not {tensor.dtype}")
    at = parts.data_ptr()
    own = communicator._comm  # pylint: disable=protected-access
    return collectives.Call("WarrenAllreduce", (own, at, at, parts.numel(), TYPES[parts.dtype], op), tensor, tensor)


def broadcast(communicator: Communicator, tensor: Tensor, root: int, what: str) -> None:
    """Broadcasts a contiguous tensor, in place."""
    check_on_host(tensor, what)
    own = communicator._comm  # pylint: disable=protected-access
    collectives.Call("WarrenBroadcast", (own, tensor.data_ptr(), num_bytes(tensor), _c.BYTES, root), tensor).run()

"""Compression of gradients while they are reduced."""
from typing import Any, Optional, Tuple

import torch
from torch import Tensor


class NoneCompressor:
    """Does not compress."""

    @staticmethod
    def compress(tensor: Tensor) -> Tuple[Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor:  # pylint: disable=unused-argument
        return tensor


class FP16Compressor:
    """Converts floating-point tensors to 16 bits. The engine sums 16-bit floats as float32, and rounds once."""

    @staticmethod
    def compress(tensor: Tensor) -> Tuple[Tensor, Optional[torch.dtype]]:
        return (tensor.to(torch.float16) if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Tensor, ctx: torch.dtype) -> Tensor:
        return tensor.to(ctx)


class Compression:
    """The values for the argument `compression`; any class with `compress` and `decompress` can be used."""

    none = NoneCompressor
    fp16 = FP16Compressor

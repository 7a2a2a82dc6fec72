"""What gradients travel as."""
from typing import Any, Optional, Tuple

import torch
from torch import Tensor


class NoneCompressor:
    """As they are."""

    @staticmethod
    def compress(tensor: Tensor) -> Tuple[Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor:  # pylint: disable=unused-argument
        return tensor


class FP16Compressor:
    """Floating point of 16 bits. The engine adds it up as float32, and rounds once."""

    @staticmethod
    def compress(tensor: Tensor) -> Tuple[Tensor, Optional[torch.dtype]]:
        return (tensor.to(torch.float16) if tensor.dtype.is_floating_point else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Tensor, ctx: torch.dtype) -> Tensor:
        return tensor.to(ctx)


class Compression:
    """For the argument `compression`: any class with these two functions does."""

    none = NoneCompressor
    fp16 = FP16Compressor

"""Compression of gradients while they are reduced."""
from typing import Any, Tuple

import tensorflow as tf


class NoneCompressor:
    """Does not compress."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:  # pylint: disable=unused-argument
        return tensor


class FP16Compressor:
    """Converts floating-point tensors to 16 bits. The engine sums 16-bit floats as float32, and rounds once."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return (tf.cast(tensor, tf.float16) if tensor.dtype.is_floating else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tf.cast(tensor, ctx)


class Compression:
    """The values for the argument `compression`; any class with `compress` and `decompress` can be used."""

    none = NoneCompressor
    fp16 = FP16Compressor

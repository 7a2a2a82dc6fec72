"""What gradients travel as."""
from typing import Any, Tuple

import tensorflow as tf


class NoneCompressor:
    """As they are."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:  # pylint: disable=unused-argument
        return tensor


class FP16Compressor:
    """Floating point of 16 bits. The engine adds it up as float32, and rounds once."""

    @staticmethod
    def compress(tensor: Any) -> Tuple[Any, Any]:
        return (tf.cast(tensor, tf.float16) if tensor.dtype.is_floating else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        return tf.cast(tensor, ctx)


class Compression:
    """For the argument `compression`: any class with these two functions does."""

    none = NoneCompressor
    fp16 = FP16Compressor

"""Adasum, the adaptive sum of gradients (Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys 2021, section 3).

Of two vectors it is

    Adasum(a, b) = (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b

which is their sum where they are orthogonal and their mean where they are parallel. Of 2^k vectors it is that of the Adasums of the two
halves, as Horovod computes it: neighbours first.

How it works here: every partial result is a linear combination of the ranks' vectors, and so are the inner products of partial results of
the inner products of the vectors. An all-to-all gives each rank its share of the elements of all vectors, of which it computes the
inner products; an allreduce adds these up; each rank has the same coefficients then, combines its share, and an allgather collects the
shares. Twice a vector is moved, as by an allreduce, and all ranks have the same bits.
"""
from typing import Tuple

import numpy as np

from warren._calls import Array

#: Elements that are converted to float64 at a time.
_BLOCK = 1 << 16
#: A partial result that is so much smaller than what it is made of is nothing but rounding, and adds without being scaled.
_ROUNDING = 1e-14


def inner_products(parts: Array) -> Array:
    """The matrix (ranks, ranks) of float64 for some elements of all vectors, shape (ranks, elements)."""
    products = np.zeros((len(parts), len(parts)))
    for begin in range(0, parts.shape[1], _BLOCK):
        block = parts[:, begin:begin + _BLOCK].astype(np.float64)
        products += block @ block.T
    return products


def coefficients(products: Array) -> Array:
    """What each rank's vector is multiplied with in the result, by the inner products of all vectors. Their number is a power of 2."""
    norms = np.sqrt(np.diagonal(products))

    def scaled(vector: Array, product: float) -> Array:
        square = float(vector @ products @ vector)
        is_rounding = square <= _ROUNDING * float(np.abs(vector) @ norms)**2
        factor = 1.0 if is_rounding else 1.0 - 0.5 * product / square
        return np.asarray(vector * factor)

    def combined(begin: int, end: int) -> Array:
        if end - begin == 1:
            return np.asarray(np.eye(len(products))[begin])
        middle = (begin + end) // 2
        left, right = combined(begin, middle), combined(middle, end)
        product = float(left @ products @ right)
        return np.asarray(scaled(left, product) + scaled(right, product))

    return combined(0, len(products))


def combination(factors: Array, parts: Array) -> Array:
    """The sum of the vectors' elements, each multiplied with its factor, computed in float64 and rounded once to their type."""
    result = np.empty(parts.shape[1], parts.dtype)
    for begin in range(0, parts.shape[1], _BLOCK):
        result[begin:begin + _BLOCK] = factors @ parts[:, begin:begin + _BLOCK].astype(np.float64)
    return result


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def check(size: int, dtype: str, what: str) -> None:
    """Raises NotImplementedError for a number of ranks and ValueError for a type that there is no Adasum of."""
    if not is_power_of_two(size):
        raise NotImplementedError(f"{what}: Adasum is of 2, 4, 8, ... ranks, and there are {size}; start as many, or take op=hvd.Average")
    allowed: Tuple[str, ...] = ("float16", "float32", "float64")
    if dtype not in allowed:
        raise ValueError(f"{what}: Adasum is of {', '.join(allowed)}, not of {dtype}")

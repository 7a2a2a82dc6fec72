"""Adasum, the adaptive sum of gradients (Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys 2021, section 3).

For two vectors it is

    Adasum(a, b) = (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b

which is their sum if they are orthogonal and their mean if they are parallel. For 2^k vectors it is the Adasum of the Adasums of the two
halves, in the order in which Horovod computes it: neighbors first.

Implementation: every partial result is a linear combination of the ranks' vectors, so its inner products are combinations of the inner
products of the vectors. An all-to-all sends each rank its share of the elements of all vectors, from which it computes partial inner
products; an allreduce adds these up. Then all ranks have the same coefficients; each combines its share, and an allgather collects the
shares. The data moved are twice the size of a vector, as for an allreduce, and all ranks get the same bits."""
from typing import Tuple

import numpy as np

from warren._engine.calls import Array

#: The number of elements of each vector that are converted to float64 at a time.
_BLOCK = 1 << 16
#: A partial result consists only of rounding errors, and is added without scaling, if its squared norm is at most this fraction of the squared
#: sum of the norms of its terms.
_ROUNDING = 1e-14


def inner_products(parts: Array) -> Array:
    """Returns the float64 matrix (ranks, ranks) of the vectors' inner products over some elements. `parts`: these elements of all vectors,
    an array of shape (ranks, elements)."""
    products = np.zeros((len(parts), len(parts)))
    for begin in range(0, parts.shape[1], _BLOCK):
        block = parts[:, begin:begin + _BLOCK].astype(np.float64)
        products += block @ block.T
    return products


def coefficients(products: Array) -> Array:
    """Computes the coefficient of each rank's vector in the result from the inner products of all vectors. The number of vectors is a power
    of 2."""
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
    """Returns the linear combination of the vectors' elements, computed in float64 and rounded once to their type."""
    result = np.empty(parts.shape[1], parts.dtype)
    for begin in range(0, parts.shape[1], _BLOCK):
        result[begin:begin + _BLOCK] = factors @ parts[:, begin:begin + _BLOCK].astype(np.float64)
    return result


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def check(size: int, dtype: str, what: str) -> None:
    """Raises NotImplementedError for a number of ranks, and ValueError for a type, that Adasum does not support."""
    if not is_power_of_two(size):
        raise NotImplementedError(f"{what}: Adasum needs 2, 4, 8, ... ranks, but there are {size}; start such a number, or use "
                                  "op=hvd.Average")
    allowed: Tuple[str, ...] = ("float16", "float32", "float64")
    if dtype not in allowed:
        raise ValueError(f"{what}: Adasum takes {', '.join(allowed)}, not {dtype}")

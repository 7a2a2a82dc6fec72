"""Assigns rows to ranks, and checks the caller's arguments that determine the assignment. Pure functions."""
from typing import Any, List, Tuple

import numpy as np
from numpy.typing import NDArray


def even_cuts(rows: int, world: int) -> List[int]:
    """Returns the first row of each rank's share, followed by the end of the last share. Shares are contiguous and in rank order; if they
    cannot be equal, the first ones are longer by a row."""
    return [rank * (rows // world) + min(rank, rows % world) for rank in range(world + 1)]


def group_cuts(sizes: NDArray[Any], world: int) -> Tuple[List[int], List[int]]:
    """Like `even_cuts`, for rows in groups that are never split: returns the cuts as rows, and as groups. Each cut is the boundary between
    groups that is nearest to the even cut, or the earlier one of two equally near."""
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    wanted = np.array(even_cuts(int(ends[-1]), world), np.int64)
    after = np.searchsorted(ends, wanted)
    before = np.maximum(after - 1, 0)
    groups = np.where(wanted - ends[before] <= ends[after] - wanted, before, after)
    groups[0], groups[-1] = 0, len(sizes)
    return [int(row) for row in ends[groups]], [int(group) for group in groups]


def checked_group(group: Any, rows: int) -> NDArray[Any]:
    """Returns the query sizes that the caller passed, as int64. Raises ValueError unless they are non-negative integers that add up to
    `rows`."""
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" and sizes.size:
        raise ValueError(f"group is an array of {sizes.dtype} with {sizes.ndim} dimensions, expected the number of rows of "
                         "each query")
    sizes = sizes.astype(np.int64)
    if sizes.size and sizes.min() < 0:
        raise ValueError(f"group[{int(sizes.argmin())}] is {int(sizes.min())}, expected a number of rows")
    if sizes.sum() != rows:
        raise ValueError(f"group has queries of {int(sizes.sum())} rows in total, but the table has {rows} rows")
    return sizes


def check_piece_bytes(piece_bytes: Any) -> None:
    """Raises ValueError unless `piece_bytes` is a whole number of at least 1."""
    if isinstance(piece_bytes, bool) or not isinstance(piece_bytes, (int, np.integer)) or piece_bytes < 1:
        raise ValueError(f"piece_bytes is {piece_bytes!r}, expected at least 1 byte")

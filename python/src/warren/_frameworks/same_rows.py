"""Detects workers that all train on the same rows, usually because every worker has read the whole DataFrame. Each row then counts once for
every worker."""
import contextlib
import hashlib
import warnings
from typing import Any, Callable, List, Optional

import numpy as np
from numpy.typing import NDArray

from warren._system import callers as _callers

#: For fewer rows than this there is no warning: they may be the same by chance, or be the whole data set.
_LEAST_ROWS = 10
#: The maximum number of rows examined, spread over the whole data set.
_MOST_ROWS = 64
#: The maximum number of labels examined. They suffice to tell data sets apart only if more than _FEW_LABELS of them are distinct.
_MOST_LABELS = 4096
_FEW_LABELS = 16
#: Whether this process has already warned.
_has_warned = False


class SameRowsWarning(UserWarning):
    """All workers of a job train on the same rows."""


def sampled_rows(rows: int) -> NDArray[np.int32]:
    """The indices of the rows to examine."""
    return np.unique(np.linspace(0, max(rows - 1, 0), min(rows, _MOST_ROWS)).astype(np.int32))


def digest(*pieces: Any) -> int:
    """A hash of arrays and plain values."""
    found = hashlib.blake2b(digest_size=8)
    for piece in pieces:
        plain = isinstance(piece, np.ndarray) and piece.dtype != object and piece.size > 0
        found.update(np.ascontiguousarray(piece).data.cast("B") if plain else repr(piece).encode())
        found.update(b"|")
    return int.from_bytes(found.digest(), "little")


def labels_suffice(labels: Any) -> bool:
    """Whether labels suffice to distinguish data sets: different rows are unlikely to have the same labels, unless there are few distinct
    labels, or the labels are row numbers."""
    found = np.asarray([] if labels is None else labels, np.float64).ravel()
    return len(np.unique(found[:_MOST_LABELS])) > _FEW_LABELS and len(np.unique(np.diff(found[:_MOST_LABELS]))) > _FEW_LABELS


def check(greatest: Callable[[NDArray[Any]], NDArray[Any]], rank: int, world: int, rows: int, is_share: bool,
         own_digest: Callable[[], Optional[int]], advice: str, common: Callable[[], int] = int) -> bool:
    """Warns on rank 0, once per process, if all ranks have the same rows. A collective call of all ranks that train together, with a small
    allreduce: `greatest` returns the elementwise maximum over all ranks. `is_share`: whether the rows are known to be this rank's share of
    a data set; in this case, and for fewer than ten rows, there is no warning. `own_digest` returns a digest of this rank's rows, or None
    if too little of them is accessible; None, or an error in it, counts as different rows. `advice` tells the user what to do instead.
    Returns whether the number that `common` returns is the same on all ranks; an error in it counts as 0."""
    global _has_warned  # pylint: disable=global-statement
    found, ours = None, 0
    with contextlib.suppress(Exception):  # this rank must still call `greatest`, in which the other ranks wait
        found = own_digest()
    with contextlib.suppress(Exception):
        ours = common()
    if found is None:
        found = digest("none", rank)
    full = np.iinfo(np.uint64).max
    most, least, shares, greater, smaller = map(int, greatest(np.array([found, full - found, is_share, ours, full - ours], np.uint64)))
    is_same = greater == full - smaller
    if most != full - least or shares or rows < _LEAST_ROWS or rank != 0 or _has_warned:
        return is_same
    _has_warned = True
    warnings.warn(f"all {world} workers train on the same {rows} rows, so that each row counts {world} times: {advice}; if this is "
                  "intended, use warnings.simplefilter('ignore', warren.data.SameRowsWarning)", SameRowsWarning,
                  stacklevel=_callers.stacklevel())
    return is_same


def sample(rows: Any) -> List[Any]:
    """Returns the contents of at most _MOST_ROWS rows of a NumPy, SciPy, pandas, polars or Arrow table, for `digest`; an empty list if they
    cannot be extracted."""
    try:
        at = sampled_rows(len(rows) if not hasattr(rows, "shape") else rows.shape[0])
        if hasattr(rows, "iloc"):
            return [str(one) for one in rows.iloc[at].to_numpy().ravel()]
        if hasattr(rows, "indptr"):
            part = rows.tocsr()[at]
            return [part.indices.tolist(), part.data.tolist()]
        taken = rows.take(at) if hasattr(rows, "take") and not isinstance(rows, np.ndarray) else rows[at]
        return [str(taken.to_pydict() if hasattr(taken, "to_pydict") else taken.tolist() if hasattr(taken, "tolist") else taken)]
    except Exception:  # pylint: disable=broad-except
        return []

"""Notices workers that all train on the same rows, each of which then counts as often as there are workers: a DataFrame that every
worker has read whole, mostly."""
import contextlib
import hashlib
import sys
import warnings
from typing import Any, Callable, List, Optional

import numpy as np
from numpy.typing import NDArray

#: Fewer rows may be the same by chance, or be all there are.
_LEAST_ROWS = 10
#: Rows of a data set that are looked at, spread over all of it.
_ROWS_LOOKED_AT = 64
#: Labels that are counted, and different ones of which a data set without another mark has more.
_LABELS_LOOKED_AT = 4096
_FEW_LABELS = 16
#: Packages whose frames are not where a user's program trains.
_NOT_THE_USERS = ("warren", "xgboost", "lightgbm", "sklearn", "contextlib", "functools")
_told = False


class SameRowsWarning(UserWarning):
    """All workers of a job train on the same rows."""


def places(rows: int) -> NDArray[np.int32]:
    """The rows to look at."""
    return np.unique(np.linspace(0, max(rows - 1, 0), min(rows, _ROWS_LOOKED_AT)).astype(np.int32))


def digest(*pieces: Any) -> int:
    """A word that tells arrays and plain values apart."""
    found = hashlib.blake2b(digest_size=8)
    for piece in pieces:
        plain = isinstance(piece, np.ndarray) and piece.dtype != object and piece.size > 0
        found.update(np.ascontiguousarray(piece).data.cast("B") if plain else repr(piece).encode())
        found.update(b"|")
    return int.from_bytes(found.digest(), "little")


def _frames_to_the_user() -> int:
    """The `stacklevel` for a warning at the nearest line outside of these packages."""
    level, frame = 1, sys._getframe(1)  # pylint: disable=protected-access
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _NOT_THE_USERS:
        level, frame = level + 1, frame.f_back
    return level


def labels_tell(labels: Any) -> bool:
    """Whether labels alone tell data sets apart: other rows hardly have the same ones, unless there are few different labels, or these
    are the numbers of the rows."""
    found = np.asarray([] if labels is None else labels, np.float64).ravel()
    return len(np.unique(found[:_LABELS_LOOKED_AT])) > _FEW_LABELS and len(np.unique(np.diff(found[:_LABELS_LOOKED_AT]))) > _FEW_LABELS


def look(greatest: Callable[[NDArray[Any]], NDArray[Any]], rank: int, world: int, rows: int, is_share: bool,
         word: Callable[[], Optional[int]], instead: str) -> None:
    """Warns on rank 0, once a process, where all ranks have the same rows. A collective call of all ranks that train together, a small
    allreduce: `greatest` gives the greatest of all ranks at each place. `is_share`: whether the rows are known to be this rank's part of
    a data set; then nothing is said, nor of fewer than ten rows. `word`: a digest of this rank's rows, None where too little of them can
    be seen; that, and an error in it, counts as other rows. `instead`: what the user is advised to do."""
    global _told  # pylint: disable=global-statement
    found = None
    with contextlib.suppress(Exception):  # the others wait for this rank
        found = word()
    if found is None:
        found = digest("none", rank)
    full = np.iinfo(np.uint64).max
    most, least, shares = (int(one) for one in greatest(np.array([found, full - found, is_share], np.uint64)))
    if most != full - least or shares or rows < _LEAST_ROWS or rank != 0 or _told:
        return
    _told = True
    warnings.warn(f"all {world} workers train on the same {rows} rows, so that each row counts {world} times: {instead}; if this is meant, "
                  "say warnings.simplefilter('ignore', warren.data.SameRowsWarning)", SameRowsWarning, stacklevel=_frames_to_the_user())


def sample(rows: Any) -> List[Any]:
    """A few rows of a table as a user has it: of NumPy, SciPy, pandas, polars or Arrow. Empty where nothing can be taken out of it."""
    try:
        at = places(len(rows) if not hasattr(rows, "shape") else rows.shape[0])
        if hasattr(rows, "iloc"):
            return [str(one) for one in rows.iloc[at].to_numpy().ravel()]
        if hasattr(rows, "indptr"):
            part = rows.tocsr()[at]
            return [part.indices.tolist(), part.data.tolist()]
        taken = rows.take(at) if hasattr(rows, "take") and not isinstance(rows, np.ndarray) else rows[at]
        return [str(taken.to_pydict() if hasattr(taken, "to_pydict") else taken.tolist() if hasattr(taken, "tolist") else taken)]
    except Exception:  # pylint: disable=broad-except
        return []

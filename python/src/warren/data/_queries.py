"""The queries of rows: where they begin, and whether the rows of each are contiguous, on this worker or across workers."""
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from warren.data._peers import Peers

Key = TypeVar("Key", int, str)


def starts(queries: NDArray[Any]) -> NDArray[np.int64]:
    """The first row of each run of consecutive rows with the same query. `queries`: the query of each row."""
    return np.flatnonzero(np.append(len(queries) > 0, queries[1:] != queries[:-1]))


def repeated(queries: NDArray[Any]) -> Optional[Any]:
    """The smallest query that occurs more than once, or None."""
    values, counts = np.unique(queries, return_counts=True)
    return values[int(np.flatnonzero(counts > 1)[0])] if (counts > 1).any() else None


def require_together(peers: Peers, ours: Mapping[Key, NDArray[Any]], refuse: Callable[[Key, Any], None]) -> None:
    """A collective call. For each file with a query that several workers have, calls `refuse` on all workers with the file and the query.
    Shares are cut between queries, so each query belongs to one worker if its rows are contiguous. `ours`: this worker's distinct queries by
    file."""
    if peers.world == 1 or not peers.connected:
        return
    # For files sorted by query, the ranges of the workers' queries already show that no query occurs twice.
    spans = peers.allgather({file: (queries.min(), queries.max()) for file, queries in ours.items() if len(queries)}, objects=True)
    shared = {file for of_one in spans for file in of_one if _overlap([one[file] for one in spans if file in one])}
    if not shared:
        return
    parts = peers.allgather({file: ours[file] for file in shared if file in ours}, objects=True)
    for file in sorted(shared):
        query = repeated(np.concatenate([one[file] for one in parts if file in one]))
        if query is not None:
            refuse(file, query)


def _overlap(spans: Sequence[Tuple[Any, Any]]) -> bool:
    in_order: List[Tuple[Any, Any]] = sorted(spans)
    return any(before[1] >= after[0] for before, after in zip(in_order, in_order[1:]))

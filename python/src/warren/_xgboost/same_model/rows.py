"""The labels, weights, queries and bounds of the rows of all workers."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import scipy.sparse
import xgboost as xgb

from warren.data._exchange import gather
from warren.data._peers import Peers

#: XGBoost's fields with values for each row.
_PER_ROW = ("label", "label_lower_bound", "label_upper_bound")


class Order:
    """Puts the workers' rows of a matrix into the order of the data set. This is the order of ranks and rows, unless the matrix lists the
    parts of the data set that it holds, in `warren_parts`: the position, the number of rows and the number of queries of each part. All
    workers create it together."""

    def __init__(self, matrix: Any, peers: Peers) -> None:
        parts: List[Tuple[int, int, int]] = [part for of_rank in peers.allgather(getattr(matrix, "warren_parts", None) or []) for part in of_rank]
        self._moves = [place for place, _, _ in parts] != sorted(place for place, _, _ in parts)
        self._parts = parts

    def rows(self, values: Any) -> Any:
        """Returns `values`, one per row in rank order, in the order of the data set."""
        return self._ordered(values, [rows for _, rows, _ in self._parts])

    def queries(self, values: Any) -> Any:
        """Like `rows`, for values of which there is one per query."""
        return self._ordered(values, [queries for _, _, queries in self._parts])

    def _ordered(self, values: Any, sizes: Sequence[int]) -> Any:
        if not self._moves or values is None or len(values) == 0:
            return values
        ends = np.cumsum([0, *sizes])
        places = [place for place, _, _ in self._parts]
        by_place = sorted(range(len(sizes)), key=places.__getitem__)
        return np.concatenate([values[ends[number]:ends[number + 1]] for number in by_place])


class OfAllRows:
    """The fields of all workers' rows of a matrix, in the order of the data set. Only rank 0 has the values. All workers create it
    together."""

    def __init__(self, matrix: Any, peers: Peers) -> None:
        order = Order(matrix, peers)
        groups = np.diff(matrix.get_uint_info("group_ptr").astype(np.int64))
        rows = matrix.num_row()
        self._rows = sum(peers.allgather(rows))
        weights = matrix.get_weight()
        # A worker without rows has neither weights nor queries.
        by_query = any(peers.allgather(bool(groups.size)))
        self._fields: Dict[str, Any] = {}
        for name in _PER_ROW:
            values = matrix.get_label() if name == "label" else matrix.get_float_info(name)
            self._fields[name] = order.rows(gathered(values.astype(np.float32, copy=False), peers))
        in_order = order.queries if by_query else order.rows
        self._fields["weight"] = in_order(gathered(weights.astype(np.float32, copy=False), peers))
        self._fields["group"] = order.queries(gathered(groups, peers)) if by_query else None

    def matrix(self) -> Any:
        """Returns a DMatrix with these fields and one feature without values. Called on rank 0 only, through alone_on_root."""
        empty = scipy.sparse.csr_matrix((self._rows, 1), dtype=np.float32)
        found = xgb.DMatrix(empty)
        if self._fields["group"] is not None:
            found.set_group(self._fields["group"])
        for name, values in self._fields.items():
            if name != "group" and values is not None and values.size:
                found.set_info(**{name: values})
        return found


def gathered(values: Any, peers: Peers) -> Optional[Any]:
    """Returns the values of all workers on rank 0, in rank order, and None elsewhere. A worker without rows may pass an array of another
    shape. A collective call."""
    if peers.world == 1:
        return values
    widths = peers.allgather(values.shape[1] if values.ndim == 2 and values.size else 0)
    if values.size == 0:
        values = np.empty((0, max(widths)) if max(widths) else 0, values.dtype)
    return gather(values, root=0)

"""A worker's share of a data set in memory."""
import dataclasses
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from warren.data import _queries, _text


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of a data set: a share of it, or a batch of a share."""

    features: Any  #: float32, (rows, features), with NaN for missing values; from the text reader, a scipy.sparse.csr_matrix
    names: Optional[List[str]]  #: names of the features, or None if they are numbered
    types: Optional[List[str]]  #: types of the features, as in XGBoost: "q" number, "int" whole number, "i" Boolean, "c" category; None for text
    label: Optional[NDArray[Any]]  #: float32, (rows) or (rows, labels)
    weight: Optional[NDArray[Any]]  #: float32, (rows)
    qid: Optional[NDArray[Any]]  #: the query of each row, int64, counted from 0 in this share
    base_margin: Optional[NDArray[Any]]  #: float32, (rows) or (rows, groups)
    categories: Dict[str, List[Any]]  #: the values of categorical features by their codes, the same on all workers

    @property
    def group_sizes(self) -> Optional[NDArray[Any]]:
        """The number of rows of each query, uint32, or None without queries."""
        return None if self.qid is None else np.diff(_queries.starts(self.qid), append=len(self.qid)).astype("uint32")

    @property
    def query_weight(self) -> Optional[NDArray[Any]]:
        """The weight of each query: all of its rows have the same weight. None without weights or queries."""
        if self.qid is None or self.weight is None:
            return None
        return self.weight[np.unique(self.qid, return_index=True)[1]]

    def __len__(self) -> int:
        return int(self.features.shape[0])


#: The fields of a Table, other than the features, with a value for each row.
OF_ROWS = ("label", "weight", "qid", "base_margin")


def of_rows(rows: _text.Rows) -> Table:
    """Converts the result of the text reader to a table."""
    import scipy.sparse  # pylint: disable=import-outside-toplevel

    count = len(rows.offsets) - 1
    qid = None if rows.group_sizes is None else np.repeat(np.arange(len(rows.group_sizes)), rows.group_sizes)
    weight = rows.weights if rows.weights is None or qid is None else rows.weights[qid]
    matrix = scipy.sparse.csr_matrix((rows.values, rows.indices, rows.offsets), shape=(count, rows.columns))
    return Table(matrix, None, None, rows.labels, weight, qid, None, {})


def resized(tables: Iterator[Table], rows: int, drop_last: bool, whole_queries: bool = False) -> Iterator[Table]:
    """Yields the same rows in tables of exactly `rows` rows, and the remaining rows in a last table, unless `drop_last`. With `whole_queries`,
    each table ends at the end of a query: it has at most `rows` rows, or consists of one longer query."""
    waiting: List[Table] = []
    count = 0
    for table in tables:
        waiting.append(table)
        count += len(table)
        if count < rows:
            continue
        whole, begin = concatenated(waiting), 0
        while len(whole) - begin >= rows:
            end = begin + rows
            if whole_queries:
                assert whole.qid is not None
                # The end of a query is known only once the next one has begun.
                end = _end_of_query(whole.qid, begin, end)
                if end == begin:
                    break
            yield cut_out(whole, begin, end)
            begin = end
        waiting, count = [cut_out(whole, begin, len(whole))], len(whole) - begin
    if count and not drop_last:
        yield concatenated(waiting)


def _end_of_query(qid: NDArray[Any], begin: int, end: int) -> int:
    """The last end of a query up to `end`, or else the first end of a query after `end`; `begin` if that is not known yet."""
    ends = np.flatnonzero(qid[begin + 1:] != qid[begin:-1]) + begin + 1
    if ends.size == 0:
        return begin
    before = ends[ends <= end]
    return int(before[-1] if before.size else ends[0])


def cut_out(table: Table, begin: int, end: int) -> Table:
    """Returns the rows of a table from `begin` up to, but not including, `end`. Arrays are not copied; a sparse matrix is."""
    def of_one(array: Any) -> Any:
        return None if array is None else array[begin:end]
    return dataclasses.replace(table, features=table.features[begin:end], **{name: of_one(getattr(table, name)) for name in OF_ROWS})


def concatenated(tables: Sequence[Table]) -> Table:
    """Returns the rows of all tables as one table; the table itself if there is only one."""
    first = tables[0]
    if len(tables) == 1:
        return first

    def of_all(name: str) -> Any:
        return None if getattr(first, name) is None else np.concatenate([getattr(table, name) for table in tables])
    if isinstance(first.features, np.ndarray):
        features = of_all("features")
    else:
        import scipy.sparse  # pylint: disable=import-outside-toplevel
        features = scipy.sparse.vstack([table.features for table in tables], format="csr")
    return dataclasses.replace(first, features=features, **{name: of_all(name) for name in OF_ROWS})

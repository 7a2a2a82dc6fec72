"""A worker's share of a data set in memory."""
import dataclasses
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from warren.data import _columns, _pieces, _text
from warren.data._columns import Categories
from warren.data._source import Batch, Source, shown_uri, together


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of a data set; a share of it, or a batch of that."""

    features: Any  #: float32, (rows, features), missing values as NaN; of LibSVM, libfm and CSV text a scipy.sparse.csr_matrix
    names: Optional[List[str]]  #: of the features; None: they have numbers
    types: Optional[List[str]]  #: "q" numbers, "int" whole ones, "i" true or false, "c" categories: XGBoost's letters
    label: Optional[NDArray[Any]]  #: float32, (rows) or (rows, labels)
    weight: Optional[NDArray[Any]]  #: float32, (rows)
    qid: Optional[NDArray[Any]]  #: the query of each row, int64, counted from 0 in this share
    base_margin: Optional[NDArray[Any]]  #: float32, (rows) or (rows, groups)
    categories: Dict[str, List[Any]]  #: what the codes of categorical features stand for, alike on all workers

    @property
    def group_sizes(self) -> Optional[NDArray[Any]]:
        """The rows of each query, uint32; None: there are no queries."""
        return None if self.qid is None else _pieces.group_sizes(self.qid)[0]

    @property
    def query_weight(self) -> Optional[NDArray[Any]]:
        """The weight of each query, which all its rows have; None: there are no weights or no queries."""
        if self.qid is None or self.weight is None:
            return None
        return self.weight[np.unique(self.qid, return_index=True)[1]]

    def __len__(self) -> int:
        return int(self.features.shape[0])


#: What a table has of each row besides the features.
OF_ROWS = ("label", "weight", "qid", "base_margin")


def of_rows(rows: _text.Rows) -> Table:
    """What the reader of text gives, as a table."""
    import scipy.sparse  # pylint: disable=import-outside-toplevel

    count = len(rows.offsets) - 1
    qid = None if rows.group_sizes is None else np.repeat(np.arange(len(rows.group_sizes)), rows.group_sizes)
    weight = rows.weights if rows.weights is None or qid is None else rows.weights[qid]
    matrix = scipy.sparse.csr_matrix((rows.values, rows.indices, rows.offsets), shape=(count, rows.columns))
    return Table(matrix, None, None, rows.labels, weight, qid, None, {})


class Converter:
    """Turns batches of a source into tables. Makes the workers agree on the categories: all make it at the same time."""

    def __init__(self, source: Source, categories: Optional[Mapping[str, Sequence[Any]]]) -> None:
        self.source, self.layout = source, source.layout
        self.categories = Categories(self._found() if categories is None else self._checked(categories))
        self._last_query: Tuple[Any, int] = (None, -1)
        self._queries: Dict[Any, int] = {}

    def _categorical(self) -> List[str]:
        return [column.name for column in self.layout.features if column.kind == "category"]

    def _checked(self, categories: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        lacking = [name for name in self._categorical() if name not in categories]
        if lacking:
            raise ValueError(f"{shown_uri(self.source.uri)}: categories says nothing of the categorical column {_columns.shown(lacking)}")
        return categories

    def _found(self) -> Dict[str, List[Any]]:
        """Those of all workers, in order: a pass over the categorical columns of each worker's share."""
        peers, wanted = self.source.peers, self._categorical()
        if not wanted:
            return {}
        if peers.world > 1 and not peers.connected:
            raise ValueError(f"{shown_uri(self.source.uri)}: workers that do not talk cannot agree on what categories "
                             f"{_columns.shown(wanted)} has: give categories={{name: values}}, or load inside of a job's communicator")

        def mine() -> Dict[str, List[Any]]:
            found: Dict[str, Dict[Any, None]] = {name: {} for name in wanted}
            for batch in self.source.batches(wanted):
                for name, values in found.items():
                    values.update(dict.fromkeys(_columns.distinct(batch.table.column(name))))
            return {name: list(values) for name, values in found.items()}

        ours = together(peers, mine)
        all_of_them = peers.allgather(ours) if peers.world > 1 else [ours]

        def merged() -> Dict[str, List[Any]]:
            result = {}
            for name in wanted:
                values = {value for one in all_of_them for value in one[name]}
                if len({type(value) for value in values}) > 1:
                    raise ValueError(f"{shown_uri(self.source.uri)}: column {name!r} has categories of different types, such as "
                                     f"{_columns.shown(sorted(map(repr, values)))}")
                result[name] = sorted(values)
            return result

        return together(peers, merged)

    def start(self) -> None:
        """Before the share is gone through once more."""
        self._last_query, self._queries = (None, -1), {}

    def empty(self) -> Table:
        """No rows, with all columns."""
        request, width = self.layout.request, len(self.layout.names())

        def none(count: int, dtype: str = "float32") -> Optional[NDArray[Any]]:
            return None if count == 0 else np.empty(0 if count == 1 else (0, count), dtype)
        return Table(np.empty((0, width), "float32"), self.layout.names(), self.layout.types(), none(len(request.label)),
                     none(int(request.weight is not None)), none(int(request.qid is not None), "int64"), none(len(request.base_margin)),
                     self.categories.values)

    def table(self, batch: Batch, out: Optional[NDArray[Any]] = None) -> Table:
        """`out`: where the features go, float32, (rows, features); None: new memory. Raises ValueError that says where a value is
        missing or wrong."""
        layout, table = self.layout, batch.table
        features = np.empty((len(table), len(layout.names())), "float32") if out is None else out
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                _columns.fill(features, table, layout.features, self.categories)
            request = layout.request
            label = self._numbers(batch, request.label, "label")
            weight = self._numbers(batch, [request.weight] if request.weight else [], "weight")
        except ValueError as error:
            where = self.source.where(batch.slice)
            raise ValueError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None
        margin = self._numbers(batch, request.base_margin, "base_margin")
        qid = self._query_numbers(batch, weight) if request.qid else None
        return Table(features, layout.names(), layout.types(), label, weight, qid, margin, self.categories.values)

    def _numbers(self, batch: Batch, names: Sequence[str], what: str) -> Optional[NDArray[Any]]:
        """Float32, (rows) or (rows, names); None of none of them."""
        columns = []
        for name in names:
            parts = [_columns.numbers(chunk) for chunk in batch.table.column(name).chunks]
            column = np.concatenate(parts) if parts else np.empty(0)
            bad = ~np.isfinite(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
            if what == "weight":
                bad |= column < 0
            if what == "label" and not batch.table.column(name).null_count:
                bad = np.isnan(column) if column.dtype.kind == "f" else bad  # labels of survival may be infinite
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                found = "nothing" if np.isnan(column[row]) else repr(float(column[row]))
                raise ValueError(f"{self.source.where(batch.slice, batch.row + row if batch.row >= 0 else -1)}: the {what} in column "
                                 f"{name!r} is {found}, expected a number{' from 0 on' if what == 'weight' else ''}")
            columns.append(column.astype("float32"))
        if len(columns) > 1:
            columns = [np.stack(columns, axis=1)]
        return columns[0] if columns else None

    def _query_numbers(self, batch: Batch, weight: Optional[NDArray[Any]]) -> NDArray[Any]:
        """Numbers from 0 for the queries in the order in which they come."""
        name = self.layout.request.qid
        assert name is not None
        column = batch.table.column(name)
        where = self.source.where(batch.slice)
        if column.null_count:
            raise ValueError(f"{where}: {column.null_count} rows have no value in column {name!r}, the qid")
        parts = [_columns.numbers(chunk) for chunk in column.chunks]
        queries = np.concatenate(parts) if parts else np.empty(0)
        starts = np.concatenate([[0], np.flatnonzero(queries[1:] != queries[:-1]) + 1]).astype("int64")
        ends = np.concatenate([starts[1:], [len(queries)]])
        numbers = np.empty(len(queries), "int64")
        for begin, end in zip(starts.tolist(), ends.tolist()):
            query = queries[begin]
            query = query.item() if isinstance(query, np.generic) else query
            if begin > 0 or query != self._last_query[0] or self._last_query[1] < 0:
                if query in self._queries:
                    raise ValueError(f"{where}: the rows of query {query!r} (column {name!r}) are not together: sort the data by it")
                self._queries[query] = len(self._queries)
            self._last_query = (query, self._queries[query])
            numbers[begin:end] = self._queries[query]
            if weight is not None and (weight[begin:end] != weight[begin]).any():
                raise ValueError(f"{where}: the rows of query {query!r} (column {name!r}) have different weights; a query has one")
        return numbers


def loaded(source: Source, categories: Optional[Mapping[str, Sequence[Any]]], progress: Callable[[int, int], None]) -> Table:
    """All of this worker's share. `progress` is told rows and bytes that came."""
    converter = Converter(source, categories)
    return together(source.peers, lambda: _filled(converter, progress))


def _filled(converter: Converter, progress: Callable[[int, int], None]) -> Table:
    source, width = converter.source, len(converter.layout.names())
    # Where the number of rows is known, they are written to where they stay: there is no moment with two of each.
    features = None if source.rows is None else np.empty((source.rows, width), "float32")
    tables: List[Table] = []
    row = 0
    for batch in source.batches(converter.layout.read()):
        out = None if features is None else features[row:row + len(batch.table)]
        table = converter.table(batch, out)
        row += len(table)
        tables.append(table if features is None else dataclasses.replace(table, features=None))
        progress(len(batch.table), share_of(batch))
    if features is None:
        features = np.concatenate([table.features for table in tables]) if tables else np.empty((0, width), "float32")
    empty = converter.empty()

    def joined(name: str) -> Optional[NDArray[Any]]:
        parts: List[Any] = [getattr(table, name) for table in tables or [empty]]
        return None if parts[0] is None else np.concatenate(parts)

    return dataclasses.replace(empty, features=features[:row], **{name: joined(name) for name in OF_ROWS})


def share_of(batch: Batch) -> int:
    """About how many bytes of the source the rows of a batch are; 0 where only the piece's size is known, but for its first rows."""
    piece = batch.slice.piece
    if piece.rows > 0:
        return piece.size * len(batch.table) // piece.rows
    return piece.size if batch.row <= batch.slice.begin else 0


def resized(tables: Iterator[Table], rows: int, drop_last: bool, whole_queries: bool = False) -> Iterator[Table]:
    """The same rows in tables of exactly so many, the last one perhaps fewer. With `whole_queries` each ends where a query does:
    tables have more rows, of a query that is longer."""
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
                # Of queries that go on behind, it is known when they are over that they are.
                end = _end_of_query(whole.qid, begin, end)
                if end == begin:
                    break
            yield cut_out(whole, begin, end)
            begin = end
        waiting, count = [cut_out(whole, begin, len(whole))], len(whole) - begin
    if count and not drop_last:
        yield concatenated(waiting)


def _end_of_query(qid: NDArray[Any], begin: int, end: int) -> int:
    """The last end of a query up to `end`, or the first one behind; `begin` where that is not known yet."""
    ends = np.flatnonzero(qid[begin + 1:] != qid[begin:-1]) + begin + 1
    if ends.size == 0:
        return begin
    before = ends[ends <= end]
    return int(before[-1] if before.size else ends[0])


def cut_out(table: Table, begin: int, end: int) -> Table:
    """Rows of a table, without a copy."""
    def of_one(array: Any) -> Any:
        return None if array is None else array[begin:end]
    return dataclasses.replace(table, features=table.features[begin:end], **{name: of_one(getattr(table, name)) for name in OF_ROWS})


def concatenated(tables: Sequence[Table]) -> Table:
    """One after the other."""
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

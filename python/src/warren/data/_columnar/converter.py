"""Converts batches of a source to tables of numbers."""
import contextlib
import dataclasses
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from warren.data import _queries
from warren.data._columnar import columns as _columns
from warren.data._columnar.columns import Categories, Column
from warren.data._columnar.source import Batch, Source, shown_uri
from warren.data._files import shown
from warren.data._peers import together
from warren.data._table import OF_ROWS, Table


class _Runs(NamedTuple):
    """The queries of a batch's rows."""

    queries: NDArray[Any]  #: the query of each row
    numbers: NDArray[Any]  #: the number of each row's query; queries are numbered from 0 in order of appearance
    starts: NDArray[Any]  #: the first row of each run of rows with the same query
    weight: Optional[float]  #: the weight of the query that continues from the previous batch; None if unknown, or if no query continues


class Converter:
    """Converts batches of a source to tables. Unless the categories are given, creating a converter is a collective call, in which the workers
    agree on them."""

    def __init__(self, source: Source, categories: Optional[Mapping[str, Sequence[Any]]]) -> None:
        self.source, self.layout = source, source.layout
        self.categories = Categories(self._found() if categories is None else self._checked(categories))
        self.start()

    def _checked(self, categories: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        lacking = [name for name in categorical(self.source) if name not in categories]
        if lacking:
            raise ValueError(f"{shown_uri(self.source.uri)}: categories has no entry for the categorical column {_columns.shown(lacking)}")
        if self.source.format_name == "csv":
            # CSV categories are words, such as 007. Missing values are kept, and rejected later.
            return {name: [None if value is None or value != value else str(value) for value in values]
                    for name, values in categories.items()}
        return categories

    def _found(self) -> Dict[str, List[Any]]:
        """Returns the categories of all workers, sorted. Reads the categorical columns of this worker's share once."""
        peers, wanted = self.source.peers, categorical(self.source)
        if not wanted:
            return {}
        if peers.world > 1 and not peers.connected:
            raise ValueError(f"{shown_uri(self.source.uri)}: workers that do not communicate cannot agree on the categories of "
                             f"{_columns.shown(wanted)}: give categories={{name: values}}, or load inside a job's communicator")

        def mine() -> Dict[str, Dict[Any, Any]]:
            found: Dict[str, Dict[Any, Any]] = {name: {} for name in wanted}
            for batch in self.source.batches(wanted):
                add_categories(self.source, batch, found)
            return found

        ours = together(peers, mine)
        all_of_them = peers.allgather(ours, objects=True) if peers.world > 1 else [ours]
        return {name: _columns.in_order({value: order for one in all_of_them for value, order in one[name].items()}) for name in wanted}

    def start(self) -> None:
        """Resets the state for another pass over the share."""
        self._count = 0  # the number of queries so far
        self._last: Tuple[Any, ...] = ()  # the file and query of the last row
        self._weight: Optional[float] = None  # the weight of the last row, or None if unknown
        self._starts: Dict[int, List[NDArray[Any]]] = {}  # by file: the query of each run of rows with the same query

    def empty(self) -> Table:
        """A table with all columns and no rows."""
        request, width = self.layout.request, len(self.layout.names())

        def none(count: int, dtype: str = "float32") -> Optional[NDArray[Any]]:
            return None if count == 0 else np.empty(0 if count == 1 else (0, count), dtype)
        return Table(np.empty((0, width), "float32"), self.layout.names(), self.layout.types(), none(len(request.label)),
                     none(int(request.weight is not None)), none(int(request.qid is not None), "int64"), none(len(request.base_margin)),
                     self.categories.values)

    def table(self, batch: Batch, out: Optional[NDArray[Any]] = None) -> Table:
        """Converts a batch. `out` receives the features, float32, (rows, features); if None, a new array is made. Raises ValueError, with
        the position, for an invalid value, and for a missing label, weight, query or base margin."""
        layout, table = self.layout, batch.table
        features = np.empty((len(table), len(layout.names())), "float32") if out is None else out
        # Before all other conversions, so that the queries are counted even if the rows have another problem.
        runs = self._runs(batch) if layout.request.qid else None
        request = layout.request
        with self._at(batch):
            _columns.fill(features, table, layout.features, self.categories)
            label = self._numbers(batch, request.label, "label")
            weight = self._numbers(batch, [request.weight] if request.weight else [], "weight")
        margin = self._numbers(batch, request.base_margin, "base_margin")
        if runs is not None and weight is not None:
            self._require_one_weight(batch, runs, weight)
        return Table(features, layout.names(), layout.types(), label, weight, None if runs is None else runs.numbers, margin,
                     self.categories.values)

    def columns_of_all(self, columns: Sequence[Column]) -> Iterator[Tuple[NDArray[Any], Optional[NDArray[Any]]]]:
        """Yields some features of the rows of all workers, in the order of the data set: batches of float32 (rows, features), and the rows'
        weights, float32, or None without weights. Raises ValueError as `table` does."""
        weight = self.layout.request.weight
        width = sum(column.width for column in columns)
        names = [*(column.name for column in columns), *([weight] if weight else [])]
        for batch in self.source.batches_of_all(list(dict.fromkeys(names))):
            features = np.empty((len(batch.table), width), "float32")
            with self._at(batch):
                _columns.fill(features, batch.table, columns, self.categories)
                weights = self._numbers(batch, [weight] if weight else [], "weight")
            yield features, weights

    @contextlib.contextmanager
    def _at(self, batch: Batch) -> Iterator[None]:
        """Prefixes ValueErrors with the position of the batch, and turns off NumPy's warnings about values that overflow float32."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                yield
        except ValueError as error:
            where = self.source.where(batch.slice)
            raise ValueError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None

    def _numbers(self, batch: Batch, names: Sequence[str], what: str) -> Optional[NDArray[Any]]:
        """Returns the named columns as float32, (rows) or (rows, names); None if `names` is empty. Raises ValueError for a missing or invalid
        value."""
        columns = []
        for name in names:
            parts = [_columns.numbers(chunk) for chunk in batch.table.column(name).chunks]
            column = np.concatenate(parts) if parts else np.empty(0)
            with np.errstate(over="ignore"):
                column, given = column.astype("float32"), column
            bad = np.isnan(column) if what == "label" else ~np.isfinite(column)  # survival labels may be infinite
            bad |= np.isinf(column) & np.isfinite(given)
            if what == "weight":
                bad |= column < 0
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                found = "nothing" if np.isnan(column[row]) else f"{given[row]!s}"
                raise ValueError(f"{self.source.where(batch.slice, batch.row + row if batch.row >= 0 else -1)}: the {what} in column "
                                 f"{name!r} is {found}, expected a number{' from 0 on' if what == 'weight' else ''}")
            columns.append(column)
        if len(columns) > 1:
            columns = [np.stack(columns, axis=1)]
        return columns[0] if columns else None

    def _runs(self, batch: Batch) -> _Runs:
        name = self.layout.request.qid
        assert name is not None
        column = batch.table.column(name)
        where = self.source.where(batch.slice)
        if column.null_count:
            raise ValueError(f"{where}: {column.null_count} rows have no value in the qid column {name!r}")
        queries = np.concatenate([_columns.identifiers(chunk) for chunk in column.chunks])
        starts = _queries.starts(queries)
        runs: NDArray[Any] = np.zeros(len(queries), "int64")
        runs[starts] = 1
        goes_on = self._goes_on(batch.slice.piece.file, queries[0])
        numbers: NDArray[Any] = np.cumsum(runs) - 1 + self._count - int(goes_on)
        self._starts.setdefault(batch.slice.piece.file, []).append(queries[starts[int(goes_on):]])
        self._count = int(numbers[-1]) + 1
        self._last = (batch.slice.piece.file, queries[-1])
        weight, self._weight = self._weight if goes_on else None, None
        return _Runs(queries, numbers, starts, weight)

    def _require_one_weight(self, batch: Batch, runs: _Runs, weight: NDArray[Any]) -> None:
        """Raises ValueError if rows of one query have different weights, in this batch or compared to the previous one."""
        of_runs = weight[runs.starts]
        if runs.weight is not None:
            of_runs[0] = runs.weight
        different = np.flatnonzero(weight != np.repeat(of_runs, np.diff(runs.starts, append=len(weight))))
        if different.size:
            raise ValueError(f"{self.source.where(batch.slice)}: the rows of query {runs.queries[int(different[0])]!s} (column "
                             f"{self.layout.request.qid!r}) have different weights; a query has only one")
        self._weight = float(weight[-1])

    def _goes_on(self, file: int, query: Any) -> bool:
        """Whether the first row of a batch belongs to the same query as the previous row. With shuffled files, queries do not continue
        across files."""
        if not self._last or self._last[1] != query:
            return False
        return bool(self.source.options.shuffle is None or self._last[0] == file)

    def check_queries(self) -> None:
        """A collective call, to be made after the last row. Raises ValueError on all workers if the rows of a query are not contiguous in a
        file, within a share or across shares. Different files may reuse query numbers. A worker that is not connected to the others reads the
        queries of the files that it shares with them, and raises an error on its own."""
        peers = self.source.peers
        if self.layout.request.qid is None:
            return
        ours = together(peers, self.check_own_queries)
        if peers.connected:
            _queries.require_together(peers, ours, self._refuse)
            return
        # This worker cannot communicate with the others, so it reads all queries of the files that it shares with them.
        for file in ours:
            queries = self.source.queries_of_file(file)
            if queries is not None:
                self.require_together(file, queries)

    def check_own_queries(self) -> Dict[int, NDArray[Any]]:
        """Like `check_queries`, for this worker's rows alone. Returns the queries by file."""
        ours = self.own_queries()
        for file, queries in ours.items():
            self.require_together(file, queries)
        return ours

    def own_queries(self) -> Dict[int, NDArray[Any]]:
        """Returns, for each file, the query of each run of consecutive rows with the same query, among this worker's rows so far."""
        return {file: np.concatenate(parts) for file, parts in self._starts.items() if sum(map(len, parts))}

    def require_together(self, file: int, queries: NDArray[Any]) -> None:
        """Raises ValueError if a query occurs twice in `queries`, which has an entry for each run of rows of the file."""
        query = _queries.repeated(queries)
        if query is not None:
            self._refuse(file, query)

    def _refuse(self, file: int, query: Any) -> None:
        raise ValueError(f"{shown(self.source.files[file].uri)}: the rows of query {query!s} (column {self.layout.request.qid!r}) are not "
                         "together: sort the file by it")


def categorical(source: Source) -> List[str]:
    """The names of the categorical features."""
    return [column.name for column in source.layout.features if column.kind == "category"]


def add_categories(source: Source, batch: Batch, found: Dict[str, Dict[Any, Any]]) -> None:
    """Adds the categories of a batch to `found`: for each column, values with their sort keys. Raises ValueError, with the piece, as
    `columns.categories` does."""
    try:
        for name, orders in found.items():
            orders.update(_columns.categories(name, batch.table.column(name)))
    except ValueError as error:
        raise ValueError(f"{source.where(batch.slice)}: {error}") from None


def loaded(converter: Converter, progress: Callable[[int, int], None]) -> Table:
    """Returns this worker's share as one table. A collective call. Raises errors as `Converter.table` and `check_queries` do, on all workers.
    `progress` is called with the row and byte counts of each batch."""
    table = together(converter.source.peers, lambda: filled(converter, progress))
    converter.check_queries()
    return table


def filled(converter: Converter, progress: Callable[[int, int], None]) -> Table:
    """Like `loaded`, but not a collective call, and without the check of the queries."""
    source, width = converter.source, len(converter.layout.names())
    # If the row count is known, the rows are written directly to their final place, which avoids a second copy.
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
    """The approximate size of a batch's rows in the source, in bytes. If the piece's row count is unknown, returns the size of the whole
    piece for the batch with the slice's first rows, and 0 for the other batches; but if rows are shuffled or filtered, returns the size of
    the whole piece for every batch."""
    piece = batch.slice.piece
    if piece.rows > 0:
        return piece.size * len(batch.table) // piece.rows
    return piece.size if batch.row <= batch.slice.begin else 0

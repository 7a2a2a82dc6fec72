"""The quantile cuts that one process would compute from the rows of all workers.

A column's cuts depend only on that column and on the weights, and XGBoost computes them from the rows in their order. So the columns are
divided among the workers: each worker passes all rows of its columns to XGBoost, block by block, to compute the cuts. For files of columns
(Parquet, Arrow) a worker reads its columns of all files; other rows are in the workers' memory, and each block is gathered from there. All
workers then exchange the results, and each makes a small matrix whose cuts are those of one process, as `ref` for its own rows: a column of
the small matrix has so few values that XGBoost makes a cut at each."""
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import xgboost as xgb
from numpy.typing import NDArray

from warren._xgboost.same_model.alone import alone
from warren.data import _memory
from warren.data._columnar.converter import Converter
from warren.data._exchange import gather
from warren.data._peers import Peers, together

#: The maximum size of a block in bytes, unless _PART_OF_OWN_ROWS allows more; but a block has at least one column.
BLOCK_BYTES = 64 << 20
#: A block of files may take as much memory as a worker's own rows, which are read later, divided by this number. XGBoost takes some time for each
#: row of a block, however many columns the block has.
_PART_OF_OWN_ROWS = 4
#: A block of files that would take more than a worker's memory divided by this number is read again in each of XGBoost's passes.
_PART_OF_MEMORY = 8

#: Rows of a block, in order: float32 (rows, columns) with NaN for missing values, or a scipy.sparse.csr_matrix; and their weights or None.
Batch = Tuple[Any, Optional[NDArray[Any]]]


class How(NamedTuple):
    """The arguments of QuantileDMatrix on which the cuts depend, and the number of its threads."""

    max_bin: int
    nthread: int


class Block(NamedTuple):
    """Some columns of the rows of all workers."""

    types: Optional[List[str]]  #: XGBoost's letters for the columns, as in Table; None if all are numbers
    batches: Callable[[], Iterator[Batch]]  #: begins a pass over the rows


class Values(NamedTuple):
    """The values of a small matrix, column by column."""

    ends: NDArray[np.int64]  #: (columns + 1): where each column begins and ends
    values: NDArray[np.float32]

    @staticmethod
    def of(columns: Sequence[NDArray[Any]]) -> "Values":
        """The values of these columns."""
        ends = np.cumsum([0, *map(len, columns)], dtype=np.int64)
        return Values(ends, np.concatenate([np.empty(0, np.float32), *columns]).astype(np.float32, copy=False))

    @staticmethod
    def joined(parts: Sequence["Values"]) -> "Values":
        """All columns of `parts`."""
        sizes = np.concatenate([np.empty(0, np.int64), *(np.diff(part.ends) for part in parts)])
        return Values(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
                      np.concatenate([np.empty(0, np.float32), *(part.values for part in parts)]))


def with_categories(types: Optional[Sequence[str]]) -> Dict[str, Any]:
    """The option that a matrix needs if there are categories among its columns, which have these types."""
    return {"enable_categorical": True} if types and "c" in types else {}


def owned(sizes: Sequence[int], rank: int, world: int) -> Tuple[int, int]:
    """Returns the range of columns whose cuts a worker computes: the first column, and the one after the last. `sizes`: the number of
    features of each column."""
    begins = np.cumsum([0, *sizes])
    places = np.searchsorted(begins[:-1], [begins[-1] * rank / world, begins[-1] * (rank + 1) / world])
    return int(places[0]), int(places[1]) if rank + 1 < world else len(sizes)


#: The approximate number of values that _reduced treats as one row, joined from short rows: NumPy is slow if rows are short.
_WIDE = 1024


def _reduced(function: Any, rows: Any) -> Any:
    """`function.reduce` along the rows of an array."""
    columns = rows.shape[1]
    count = max(1, _WIDE // max(1, columns))
    whole = len(rows) // count * count
    if whole == 0:
        return function.reduce(rows, axis=0)
    wide = function.reduce(np.ascontiguousarray(rows[:whole]).reshape(-1, count * columns), axis=0)
    return function.reduce(np.concatenate([wide.reshape(count, columns), rows[whole:]]), axis=0)


class _Extremes:
    """The smallest and the greatest value of each column of a block, and the categories of its categorical columns. Like XGBoost's sketch, it
    ignores the numbers, but not the categories, in rows whose weight is 0."""

    def __init__(self, types: Optional[List[str]]) -> None:
        self._categorical = [number for number, letter in enumerate(types or ()) if letter == "c"]
        self.least: Any = None
        self.greatest: Any = None
        self.categories = {number: np.empty(0, np.float32) for number in self._categorical}

    def add(self, features: Any, weights: Optional[NDArray[Any]]) -> None:
        """Takes the next rows into account."""
        counted = features if weights is None or np.all(weights) else features[weights != 0]
        with np.errstate(invalid="ignore"):
            if not isinstance(features, np.ndarray):
                self._add_sparse(features, counted)
                return
            if len(counted):
                self._extend(_reduced(np.fmin, counted), _reduced(np.fmax, counted))
            for number in self._categorical:
                self._add_categories(number, features[:, number])

    def _add_categories(self, number: int, values: Any) -> None:
        known = np.unique(values)
        self.categories[number] = np.union1d(self.categories[number], known[~np.isnan(known)])

    def _add_sparse(self, features: Any, counted: Any) -> None:
        columns = counted.tocsc()
        least, greatest = (np.full(features.shape[1], np.nan, np.float32) for _ in range(2))
        filled = np.flatnonzero(np.diff(columns.indptr))
        if filled.size:
            starts = columns.indptr[filled]
            least[filled], greatest[filled] = np.fmin.reduceat(columns.data, starts), np.fmax.reduceat(columns.data, starts)
        self._extend(least, greatest)
        columns = features.tocsc() if self._categorical else columns
        for number in self._categorical:
            self._add_categories(number, columns.data[columns.indptr[number]:columns.indptr[number + 1]])

    def _extend(self, least: Any, greatest: Any) -> None:
        self.least = least if self.least is None else np.fmin(self.least, least)
        self.greatest = greatest if self.greatest is None else np.fmax(self.greatest, greatest)


#: The passes over the rows that XGBoost makes for a QuantileDMatrix. In the first two it counts values and computes cuts, in the others it
#: stores the bin of each value.
_PASSES, _PASSES_FOR_CUTS = 4, 2


class _Rows(xgb.DataIter):  # type: ignore[misc]
    """The rows of a block. Unless `has_bins`, rows have no values in the passes for bins: only the cuts matter, and finding bins takes nearly
    as long as computing cuts. Each pass begins with a row without values, so that XGBoost expects missing values in all passes."""

    def __init__(self, block: Block, extremes: _Extremes, has_bins: bool) -> None:
        self._block, self._extremes, self._has_bins = block, extremes, has_bins
        self._batches: Optional[Iterator[Batch]] = None
        self.passes = 0
        super().__init__()

    def next(self, input_data: Any) -> int:
        """Passes the next batch to XGBoost."""
        if self._batches is None:
            self._batches = self._pass(self.passes)
            self.passes += 1
        batch = next(self._batches, None)
        if batch is None:
            return 0
        features, weights = batch
        input_data(data=features, **({} if weights is None else {"weight": weights}),
                   **({} if self._block.types is None else {"feature_types": self._block.types}))
        return 1

    def reset(self) -> None:
        """Restarts at the first row."""
        self._batches = None

    def _pass(self, done: int) -> Iterator[Batch]:
        is_first, is_empty = done == 0, done >= _PASSES_FOR_CUTS and not self._has_bins
        for number, (features, weights) in enumerate(self._block.batches()):
            if number == 0:
                yield self._without_values(1, features.shape[1]), None if weights is None else np.ones(1, np.float32)
            if is_first:
                self._extremes.add(features, weights)
            yield (self._without_values(*features.shape) if is_empty else features), weights

    @staticmethod
    def _without_values(rows: int, columns: int) -> Any:
        import scipy.sparse  # pylint: disable=import-outside-toplevel

        return scipy.sparse.csr_matrix((rows, columns), dtype=np.float32)


def _cuts(block: Block, extremes: _Extremes, how: How, has_bins: bool = False) -> Tuple[Any, Any]:
    """Returns XGBoost's cuts: the index at which each column begins, and the values."""
    rows = _Rows(block, extremes, has_bins)
    found = xgb.QuantileDMatrix(rows, max_bin=how.max_bin, nthread=how.nthread or None, **with_categories(block.types)).get_quantile_cut()
    if rows.passes != _PASSES and not has_bins:  # in an unknown version, which may compute the cuts in another pass
        return _cuts(block, extremes, how, True)
    return found  # type: ignore[no-any-return]


def values_of(block: Block, how: How) -> Values:
    """Returns the values for a block's columns: for a column of numbers its smallest value, the cuts between its bins, and its greatest
    value; for a column of categories its categories; for a column without values nothing."""
    extremes = _Extremes(block.types)
    begins, found = alone(lambda: _cuts(block, extremes, how))
    begins = np.asarray(begins, np.int64)
    values = np.array(found, np.float32)
    if extremes.least is None:  # no worker has rows
        return Values.of([np.empty(0, np.float32)] * (len(begins) - 1))
    # XGBoost's first and last cut lie outside of the values, at a distance that it computes from the extreme values.
    values[begins[:-1]], values[begins[1:] - 1] = extremes.least, extremes.greatest
    if not extremes.categories and not np.isnan(extremes.least).any():
        return Values(begins, values)
    columns = [np.empty(0, np.float32) if np.isnan(extremes.least[number]) else
               extremes.categories.get(number, values[begins[number]:begins[number + 1]]) for number in range(len(begins) - 1)]
    return Values.of(columns)


def _blocks_of_files(converter: Converter) -> Iterator[Block]:
    """Yields the blocks of this worker's columns."""
    peers, columns = converter.source.peers, converter.layout.features
    first, last = owned([column.width for column in columns], peers.rank, peers.world)
    # The size of a piece whose row count is unknown is about that of its values as float32.
    width = max(1, len(converter.layout.names()))
    rows = sum(piece.rows if piece.rows >= 0 else max(1, piece.size // (4 * width)) for piece in converter.source.pieces)
    allowed = max(BLOCK_BYTES, min(4 * rows * width // peers.world // _PART_OF_OWN_ROWS, _memory.limit() // _PART_OF_MEMORY))
    while first < last:
        end, size = first + 1, 4 * rows * columns[first].width
        while end < last and size + 4 * rows * columns[end].width <= allowed:
            size += 4 * rows * columns[end].width
            end += 1
        mine = columns[first:end]
        types = converter.layout._replace(features=mine).types()

        def read(mine: Any = mine) -> Iterator[Batch]:
            return converter.columns_of_all(mine)

        if size > _memory.limit() // _PART_OF_MEMORY:
            yield Block(types, read)
        else:
            kept = list(read())
            yield Block(types, lambda kept=kept: iter(kept))  # type: ignore[misc]
        first = end


def of_files(converter: Converter, how: How) -> Values:
    """Returns the values for all features of a data set stored by columns. A collective call. Raises the errors of reading, the same on all
    workers."""
    peers = converter.source.peers
    return _of_all(peers, together(peers, lambda: Values.joined([values_of(block, how) for block in _blocks_of_files(converter)])))


def of_shares(peers: Peers, features: Any, weights: Optional[NDArray[Any]], types: Optional[List[str]], how: How) -> Values:
    """Returns the values for all columns of rows in the workers' memory: float32 (rows, columns) or a scipy.sparse.csr_matrix, with the rows'
    weights, float32, or None. A collective call, with the same columns on all workers; the data set consists of their rows in rank order.
    Raises the errors of XGBoost, the same on all workers."""
    width = features.shape[1]
    is_dense = isinstance(features, np.ndarray)
    sizes = peers.allgather(4 * features.size if is_dense else 8 * int(features.nnz) + 8 * features.shape[0])
    columns_at_once = max(1, BLOCK_BYTES * width // max(1, sum(sizes)))
    ranges = [owned([1] * width, rank, peers.world) for rank in range(peers.world)]
    found: List[Values] = []
    errors: List[Exception] = []
    for done in range(0, max(last - first for first, last in ranges), columns_at_once):
        mine: Any = None
        for owner, (first, last) in enumerate(ranges):
            begin, end = min(first + done, last), min(first + done + columns_at_once, last)
            if begin < end:
                gathered = gather((features[:, begin:end], weights), root=owner)
                if owner == peers.rank:
                    mine = (gathered, None if types is None else types[begin:end])
        if mine is not None and not errors:
            try:
                found.append(values_of(Block(mine[1], lambda rows=mine[0]: iter([rows])), how))  # type: ignore[misc]
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)  # raised below, on all workers: the others wait in `gather`

    def joined() -> Values:
        if errors:
            raise errors[0]
        return Values.joined(found)

    return _of_all(peers, together(peers, joined))


def _of_all(peers: Peers, mine: Values) -> Values:
    """The values of all workers' columns."""
    if peers.world == 1:
        return mine
    return Values.joined([Values(ends, values) for ends, values in peers.allgather((mine.ends, mine.values))])


def matrix_of(values: Values, types: Optional[List[str]], how: How) -> Any:
    """Returns a QuantileDMatrix with a cut at each value: the `ref` for the workers' rows."""
    import scipy.sparse  # pylint: disable=import-outside-toplevel

    sizes = np.diff(values.ends)
    rows = np.arange(values.ends[-1]) - np.repeat(values.ends[:-1], sizes)
    whole = scipy.sparse.csc_matrix((values.values, rows, values.ends), shape=(max(1, int(sizes.max(initial=0))), len(sizes)))
    named = {} if types is None else {"feature_types": types}
    return alone(lambda: xgb.QuantileDMatrix(whole.tocsr(), max_bin=how.max_bin, nthread=how.nthread or None, **named,
                                             **with_categories(types)))

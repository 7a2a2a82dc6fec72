"""A data set of an elastic training run, of which this worker holds some shares."""
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Tuple

import xgboost as xgb

from warren._elastic.rows import Files, joined
from warren._elastic.shares import Range, dealt, ranges_of
from warren._xgboost import digest as _digest
from warren._xgboost import matrices as _matrices
from warren._xgboost.same_model import cuts as _cuts
from warren._xgboost.same_model.alone import alone
from warren.data import _check, _load, _table
from warren.data._peers import Peers, together
from warren.data._table import Table

#: A matrix of more values than this is made from batches of about this size, between which the work can be ended. A batch of dense rows takes
#: about a second.
_BATCH_VALUES = 1 << 24
#: The options of load_dmatrix that have no effect here, with the values that are accepted, the default first.
_WITHOUT_MEANING = {"external_memory": (False, None), "cache_dir": (None,), "quantile": (False, True), "reproducible": (False, True)}


class Asked(NamedTuple):
    """The data set to read, and the options of the matrix."""

    wanted: _load.Wanted
    options: Dict[str, Any]
    progress: bool
    is_checked: bool  #: whether the caller requested a table of each worker's rows


def asked(uri: Any, given: Mapping[str, Any]) -> Asked:
    """Returns the data set that load_dmatrix would read with the arguments `given`. Raises TypeError or ValueError for arguments that
    elastic training does not support."""
    options = dict(given)
    for name, values in _WITHOUT_MEANING.items():
        if options.pop(name, values[0]) not in values:
            raise ValueError(f"elastic=True: {name}={given[name]!r} is not possible: the rows of a lost worker are read anew into memory")
    if "max_bin" in options:
        raise ValueError(f"elastic=True: max_bin={options['max_bin']!r} belongs to the parameters of train, which the cuts are computed for")
    is_checked = _check.wanted(options.pop("check", None))
    progress = bool(options.pop("progress", True))
    of_files = {name: options.pop(name) for name in list(options) if name in _load.Wanted.ARGUMENTS}
    _matrices.require_known(xgb.QuantileDMatrix, options)
    _matrices.require_cuts_of_all(options)
    return Asked(_load.Wanted(uri, **of_files), options, progress, is_checked)


class Rows(Files):
    """A data set of `count` shares, some of which this worker holds in a matrix."""

    def __init__(self, what: Asked, count: int) -> None:
        super().__init__(what.wanted, what.progress, count)
        self._asked = what
        self._read: Tuple[List[Range], List[Table]] = [], []
        #: XGBoost's matrix of the shares that this worker holds.
        self.matrix: Any = None
        #: This worker's shares, in the order in which it received them.
        self.held: List[int] = []
        # The previous matrix, kept while this worker also holds a lost worker's rows: it consists of bins, which take little memory, and is
        # needed again when another worker joins.
        self._before: Tuple[List[Range], Any] = [], None

    def cuts(self, peers: Peers, how: _cuts.How) -> _cuts.Values:
        """Returns the values that determine the cuts that one process would compute from all rows. A collective call, after open_together.
        Raises the errors of reading, the same on all workers."""
        if self._source is not None and self._source.has_columns:
            assert self._converter is not None
            return _cuts.of_files(self._converter, how)
        mine = ranges_of(dealt([[]] * peers.world, self._count)[peers.rank])
        self._read = mine, together(peers, lambda: self.tables(mine))
        table = joined(self._read[1])
        return _cuts.of_shares(peers, table.features, table.weight, table.types, how)

    def hold(self, shares: List[int], cuts: _cuts.Values, how: _cuts.How, is_digested: bool, check: Callable[[], None] = lambda: None) -> None:
        """Makes the matrix of these shares, without the other workers. `is_digested`: whether the matrix gets a digest of its rows. `check` is
        called often, and may raise an exception: this worker then holds the same rows as before. Raises the errors of reading."""
        ranges, now = ranges_of(shares), (ranges_of(self.held), self.matrix)
        if self._before[1] is not None and self._before[0] == ranges:
            matrix, self._before = self._before[1], ([], None)
        else:
            matrix = self._made(ranges, cuts, how, is_digested, check)
            is_extended = now[1] is not None and set(self.held) < set(shares)
            # If the shares are extended once more, the first matrix is kept, since it will be needed again.
            self._before = ([], None) if not is_extended else self._before if self._before[1] is not None else now
        self.matrix, self.held = matrix, shares

    def _made(self, ranges: List[Range], cuts: _cuts.Values, how: _cuts.How, is_digested: bool, check: Callable[[], None]) -> Any:
        read, self._read = self._read, ([], [])
        tables = read[1] if read[0] == ranges else self.tables(ranges, check)
        table = joined(tables)
        options = {**self._asked.options, "max_bin": how.max_bin, "nthread": how.nthread or None,
                   "ref": _cuts.matrix_of(cuts, table.types, how)}
        matrix = alone(lambda: _matrix_of(table, options, check))
        matrix.warren_is_reproducible, matrix.warren_categories = True, table.categories
        if is_digested:
            digests = [_digest.of_table(one) for one in tables]
            matrix.warren_digest = sum(one.digest for one in digests) % 2**64
            matrix.warren_order = [(part.first, one.in_order, one.length) for part, one in zip(ranges, digests)]
        matrix.warren_parts = [(one.first, len(part), 0 if part.group_sizes is None else len(part.group_sizes))
                               for one, part in zip(ranges, tables)]
        return matrix


def _matrix_of(table: _table.Table, options: Dict[str, Any], check: Callable[[], None]) -> Any:
    """Returns the matrix of a table, with these options of QuantileDMatrix. Calls `check` between batches if there are many rows."""
    rows = max(1, len(table) * _BATCH_VALUES // max(1, table.features.size))  # the size of a sparse matrix is that of its entries
    if len(table) <= rows or not set(options) <= _matrices.OPTIONS_OF_BATCHES:
        return _matrices.of_table(xgb.QuantileDMatrix, table, _matrices.arguments(table, options))

    def batches() -> Iterator[_table.Table]:
        for batch in _table.resized(iter([table]), rows, False, table.qid is not None):
            check()
            yield batch

    return _matrices.of_batches(batches, table.types, options)

"""A data set of an elastic training, of which this worker holds some shares."""
import contextlib
import dataclasses
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import xgboost as xgb

from warren._xgboost import digest as _digest
from warren._xgboost import matrices as _matrices
from warren._xgboost.elastic.shares import Range, dealt, ranges_of
from warren._xgboost.same_model import cuts as _cuts
from warren._xgboost.same_model.alone import alone
from warren.data import _check, _files, _load, _peers, _table
from warren.data._columnar import converter as _converter
from warren.data._columnar.source import Source
from warren.data._peers import Peers, together
from warren.data._table import Table

#: Options of load_dmatrix that have no meaning here; with their values if they are not given.
_WITHOUT_MEANING = {"external_memory": (False, None), "cache_dir": (None,), "quantile": (False, True), "reproducible": (False, True)}


class Asked(NamedTuple):
    """What the caller wants to read, and the options of the matrix."""

    wanted: _load.Wanted
    options: Dict[str, Any]
    progress: bool
    is_checked: bool  #: whether the caller wants a table of what each worker has read


def asked(uri: Any, given: Mapping[str, Any]) -> Asked:
    """`given`: the arguments of load_dmatrix. Raises TypeError or ValueError for those that an elastic training does not take."""
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
    return Asked(_load.Wanted(uri, **of_files), options, progress, is_checked)


class Rows:
    """See above. `count`: the number of shares."""

    def __init__(self, what: Asked, count: int) -> None:
        self._asked, self._count = what, count
        self._source: Optional[Source] = None
        self._converter: Optional[_converter.Converter] = None
        self._read: Tuple[List[Range], List[Table]] = [], []
        #: XGBoost's matrix of the shares that this worker holds.
        self.matrix: Any = None
        #: The shares, in the order in which it got them.
        self.held: List[int] = []
        # The matrix before this one, while this worker has rows of a lost one in addition: it consists of bins, which take little memory,
        # and is needed again when another worker comes.
        self._before: Tuple[List[Range], Any] = [], None

    def open_together(self, peers: Peers) -> None:
        """Looks at the files; all workers call it, and agree on the categories unless the caller has given them. Raises the errors of
        warren.data.load, the same on all of them."""
        if not self._asked.wanted.is_text:
            self._source = self._asked.wanted.source(peers)
            self._converter = _converter.Converter(self._source, self._asked.wanted.categories)

    def open_alone(self, categories: Mapping[str, Any]) -> None:
        """Looks at the files without the other workers, with the categories that they have agreed on."""
        if not self._asked.wanted.is_text:
            self._source = self._asked.wanted.source(_peers.of(0, self._count))
            self._converter = _converter.Converter(self._source, categories)

    def files(self) -> List[Tuple[str, int, int]]:
        """The names of the files, their sizes, and when they were changed (in ns; 0 for those of stores)."""
        if self._source is not None:
            found = self._source.files
        else:
            wanted = self._asked.wanted
            names = [wanted.uri] if isinstance(wanted.uri, str) else wanted.uri
            found = _files.find([name.partition("#")[0].partition("?")[0] for of_one in names for name in of_one.split(";")],
                                storage_options=wanted.options.storage_options)
        return [(one.uri, one.size, _changed(one.uri)) for one in found]

    def require_unchanged(self, files: Sequence[Tuple[str, int, int]], of_this_host: bool) -> None:
        """Raises ValueError if the files are not those that the other workers read: rows of both would be mixed. `of_this_host`: whether they
        were looked at on this host, whose clock tells when files were changed."""
        for (name, size, changed), (_, other_size, other_changed) in zip(self.files(), files):
            if size != other_size or (of_this_host and changed != other_changed):
                raise ValueError(f"{name} has changed since the training began, and a worker was to read it anew: start the job again")

    @property
    def is_open(self) -> bool:
        """Whether the files have been looked at."""
        return self._asked.wanted.is_text or self._converter is not None

    @property
    def categories(self) -> Dict[str, Any]:
        """The values of categorical features."""
        return dict(self._converter.categories.values) if self._converter is not None else {}

    def cuts(self, peers: Peers, how: _cuts.How) -> _cuts.Values:
        """The values whose cuts one process would compute from all rows. All workers call it, after open_together. Raises the errors of
        reading, the same on all workers."""
        if self._source is not None and self._source.has_columns:
            assert self._converter is not None
            return _cuts.of_files(self._converter, how)
        mine = ranges_of(dealt([[]] * peers.world, self._count)[peers.rank])
        self._read = mine, together(peers, lambda: self._tables(mine))
        table = _joined(self._read[1])
        return _cuts.of_shares(peers, table.features, table.weight, table.types, how)

    def _tables(self, ranges: Sequence[Range]) -> List[Table]:
        """The rows of each range, read without the other workers."""
        if self._source is None:
            return [_joined([self._asked.wanted.text(_peers.of(share, self._count)) for share in range(*one)]) for one in ranges]
        assert self._converter is not None
        found = []
        for one in ranges:
            self._source.slices = self._source.between(*one, self._count)
            self._converter.start()
            with contextlib.closing(_load.bar(self._source, self._asked.progress)) as shown:
                found.append(_converter.filled(self._converter, shown))
            self._converter.check_own_queries()
        return found

    def hold(self, shares: List[int], cuts: _cuts.Values, how: _cuts.How, is_digested: bool) -> None:
        """Makes the matrix of these shares, without the other workers. `is_digested`: with a digest of its rows. Raises the errors of
        reading."""
        ranges, now = ranges_of(shares), (ranges_of(self.held), self.matrix)
        if self._before[1] is not None and self._before[0] == ranges:
            matrix, self._before = self._before[1], ([], None)
        else:
            matrix = self._made(ranges, cuts, how, is_digested)
            is_extended = now[1] is not None and set(self.held) < set(shares)
            # If it is extended once more, the first one stays the one that is needed again.
            self._before = ([], None) if not is_extended else self._before if self._before[1] is not None else now
        self.matrix, self.held = matrix, shares

    def _made(self, ranges: List[Range], cuts: _cuts.Values, how: _cuts.How, is_digested: bool) -> Any:
        read, self._read = self._read, ([], [])
        tables = read[1] if read[0] == ranges else self._tables(ranges)
        table = _joined(tables)
        given = _matrices.arguments(table, {**self._asked.options, "max_bin": how.max_bin, "nthread": how.nthread or None})
        small = _cuts.matrix_of(cuts, table.types, how)
        matrix = alone(lambda: _matrices.of_table(xgb.QuantileDMatrix, table, {**given, "ref": small}))
        matrix.warren_is_reproducible, matrix.warren_categories = True, table.categories
        if is_digested:
            matrix.warren_digest = sum(map(_digest.of_table, tables)) % 2**64
        matrix.warren_parts = [(one.first, len(part), 0 if part.group_sizes is None else len(part.group_sizes))
                               for one, part in zip(ranges, tables)]
        return matrix


def _changed(name: str) -> int:
    try:
        return os.stat(_files.on_disk(name) or name).st_mtime_ns
    except OSError:  # in a store
        return 0


def _joined(tables: Sequence[Table]) -> Table:
    """The rows of all tables. Each table's queries are numbered after those of the tables before it."""
    if len(tables) == 1:
        return tables[0]
    numbered, count = [], 0
    for table in tables:
        if table.qid is not None and len(table):
            count, table = count + int(table.qid[-1]) + 1, dataclasses.replace(table, qid=table.qid + count)
        numbered.append(table)
    return _table.concatenated(numbered)

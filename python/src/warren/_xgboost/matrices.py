"""Makes DMatrix and its variants from the data read by warren.data."""
import contextlib
import dataclasses
import inspect
import os
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence

import numpy as np
import xgboost as xgb

from warren._system import callers as _callers
from warren._system.locks import LockedFolder
from warren._xgboost.same_model import cuts as _cuts
from warren._xgboost.versions import VERSION, collective
from warren.data import _check, _load, _memory, _table
from warren.data._columnar import converter as _converter
from warren.data._columnar import formats as _formats
from warren.data._columnar.ahead import ahead
from warren.data._columnar.pieces import Slice
from warren.data._columnar.source import Source, shown_uri
from warren.data._peers import Peers, same_on_all, together

#: The size in bytes of the batches of rows passed to XGBoost, if it keeps only bins.
_BATCH_BYTES = 64 << 20
#: In external memory, each batch becomes a page. XGBoost works better with few large pages, so the four batches that are in memory at the
#: same time (see _memory.Need) may take a worker's memory divided by this number.
_PAGES_IN_MEMORY = 8
DEFAULT_BINS = 256
#: The number of pieces, spread over the share, that are read to estimate the number of rows if the files do not contain it.
_PIECES_LOOKED_AT = 4
_OF_BINS = ("ref", "max_bin", "max_quantile_batches")


def arguments(table: _table.Table, options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the arguments for making a matrix of a table, except the features."""
    found: Dict[str, Any] = {"label": table.label, "weight": table.weight if table.qid is None else table.query_weight,
                             "group": table.group_sizes, "base_margin": table.base_margin}
    return {**{name: value for name, value in found.items() if value is not None}, **described(table, options), **options}


def of_table(kind: Callable[..., Any], table: _table.Table, given: Dict[str, Any]) -> Any:
    """Makes a matrix of the rows. XGBoost forgets the names and types of features if there are no rows, so these are set again: rank 0 may
    have no rows, and saves its names and types in the model."""
    matrix = kind(table.features, **given)
    if len(table) == 0:
        for name in ("feature_names", "feature_types"):
            if given.get(name) is not None:
                setattr(matrix, name, given[name])
    return matrix


#: The options that QuantileDMatrix has if it is made of batches.
OPTIONS_OF_BATCHES = frozenset(("enable_categorical", "max_bin", "max_quantile_batches", "missing", "nthread", "ref"))


def of_batches(tables: Callable[[], Iterator[_table.Table]], types: Optional[Sequence[str]], options: Dict[str, Any]) -> Any:
    """Makes a QuantileDMatrix of tables that do not divide queries, with some of OPTIONS_OF_BATCHES. `tables` begins a pass over them, and is
    called several times. `types`: those of the features. Raises the errors of `tables`."""
    return xgb.QuantileDMatrix(_iterator(tables), **{**_cuts.with_categories(types), **options})


def require_known(kind: Any, options: Mapping[str, Any], more: Sequence[str] = ()) -> None:
    """Raises TypeError for an option that is neither an argument of the matrix nor one of `more`."""
    known = {*inspect.signature(kind.__init__).parameters, *more}
    for name in options:
        if name not in known:
            raise TypeError(f"load_dmatrix() has no argument {name!r}, nor has {kind.__name__}")


def described(table: _table.Table, options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the DMatrix options that describe the features, if known: their names, types and `enable_categorical`. Numeric columns have
    the type "float", as in models that XGBoost trains on a table."""
    types = None if table.types is None else ["float" if letter == "q" else letter for letter in table.types]
    known = {"feature_names": table.names, "feature_types": types}
    found: Dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    if table.types and "c" in table.types:
        found["enable_categorical"] = options.get("enable_categorical", True)
    return found


class Pages:
    """A source as batches for XGBoost: each pass reads the source again, with a thread that reads ahead. No query is split between batches.
    After an error there are no more rows: this worker still makes the collective calls, and the error is raised on all workers once the
    matrix is made."""

    def __init__(self, source: Source, converter: _converter.Converter, rows: int) -> None:
        self.source, self.converter, self.rows = source, converter, rows
        self.failure: Optional[Exception] = None

    def tables(self) -> Iterator[_table.Table]:
        """Makes one pass over the rows. Yields an empty table if this worker has no rows, because XGBoost needs the columns."""
        given = False
        if self.failure is None:
            try:
                for table in self._rows():
                    given = True
                    yield table
            except Exception as error:  # pylint: disable=broad-except
                self.failure = error
        if not given:
            yield self.converter.empty()

    def _rows(self) -> Iterator[_table.Table]:
        self.converter.start()
        batches = self.source.batches(self.converter.layout.read())
        by_query = self.converter.layout.request.qid is not None
        yield from ahead(lambda: _table.resized(map(self.converter.table, batches), self.rows, False, by_query), 1)


def _iterator(tables: Callable[[], Iterator[_table.Table]], **how: Any) -> Any:
    """Returns an xgboost.DataIter over tables. `tables` begins a pass over them; it is a generator function."""

    class Batches(xgb.DataIter):  # type: ignore[misc]
        """Iterates over the tables."""

        def __init__(self) -> None:
            self._tables: Optional[Iterator[_table.Table]] = None
            super().__init__(**how)

        def next(self, input_data: Any) -> int:
            """Passes the next batch to XGBoost."""
            if self._tables is None:
                self._tables = tables()
            table = next(self._tables, None)
            if table is None:
                return 0
            given = arguments(table, {})
            given.pop("enable_categorical", None)
            sizes = given.pop("group", None)
            if sizes is not None:
                given["qid"] = table.qid
            input_data(data=table.features, **given)
            return 1

        def reset(self) -> None:
            """Restarts at the first row."""
            if self._tables is not None:
                self._tables.close()  # type: ignore[attr-defined]
            self._tables = None

    return Batches()


def load(asked: _load.Wanted, peers: Peers, *, quantile: bool, external_memory: Any, cache_dir: Optional[str], check: Optional[bool],
         progress: bool, reproducible: bool, options: Dict[str, Any]) -> Any:
    """See warren.xgboost.load_dmatrix."""
    if reproducible:
        require_cuts_of_all(options)
    matrix = _loaded(asked, peers, quantile or reproducible, external_memory, cache_dir, check, progress, reproducible, options)
    matrix.warren_is_reproducible = reproducible
    return matrix


def _loaded(asked: _load.Wanted, peers: Peers, quantile: bool, external_memory: Any, cache_dir: Optional[str], check: Optional[bool],
            progress: bool, reproducible: bool, options: Dict[str, Any]) -> Any:
    if external_memory not in (False, True, None, "auto"):
        raise ValueError(f"external_memory is {external_memory!r}, expected False, True or 'auto'")
    kind = xgb.QuantileDMatrix if quantile else xgb.DMatrix
    require_known(kind, options, _OF_BINS if external_memory else ())
    if asked.categories is None and options.get("ref") is not None:
        asked.categories = getattr(options["ref"], "warren_categories", None) or None
    same_on_all(peers, {"text": asked.is_text, "quantile": quantile, "external_memory": external_memory, "check": _check.wanted(check),
                        "categories": asked.categories, "max_bin": options.get("max_bin"), "reproducible": reproducible,
                        "ref": options.get("ref") is not None})
    how = _how(options, asked.nthread, peers) if reproducible else None
    if asked.is_text:
        if external_memory is True:
            raise ValueError(f"{shown_uri(asked.uri)}: text is read into memory: convert it to Parquet (warren data convert) for "
                             "external memory")
        table = asked.text(peers)
        _checked(asked, table, peers, check)
        matrix = of_table(kind, table, arguments(table, _with_cuts_of_shares(options, table, peers, how)))
        matrix.warren_categories = table.categories
        _require_labels(matrix, table, peers)
        return matrix
    with contextlib.ExitStack() as kept:
        source = asked.source(peers)
        kept.callback(source.close)
        fits = "external" if external_memory is True else "matrix" if not external_memory else _fitting(source, quantile, options)
        converter = _converter.Converter(source, asked.categories)
        if how is not None and (fits != "matrix" or source.has_columns):
            options = {**options, "ref": _cuts.matrix_of(_cuts.of_files(converter, how), converter.layout.types(), how)}
            how = None
        if fits == "matrix":
            with contextlib.closing(_load.bar(source, progress)) as shown:
                table = _converter.loaded(converter, shown)
            _checked(asked, table, peers, check)
            if external_memory and not quantile:
                # These options are for binned data, which a DMatrix does not have.
                options = {name: value for name, value in options.items() if name not in _OF_BINS}
            matrix = of_table(kind, table, arguments(table, _with_cuts_of_shares(options, table, peers, how)))
        else:
            matrix = _from_pages(source, converter, fits, cache_dir, check, options)
            converter.check_queries()
            if fits == "external":
                kept.pop_all()  # XGBoost may read the source again
            table = converter.empty()
        matrix.warren_categories = table.categories
        _require_labels(matrix, table, peers)
        return matrix


def of_rows(table: _table.Table, peers: Peers, options: Dict[str, Any]) -> Any:
    """Makes a matrix of this worker's rows. `options` are those of the matrix, `quantile` and `reproducible`. A collective call."""
    given = dict(options)
    reproducible = bool(given.pop("reproducible", False))
    if reproducible:
        require_cuts_of_all(given)
    kind = xgb.QuantileDMatrix if given.pop("quantile", False) or reproducible else xgb.DMatrix
    if kind is xgb.DMatrix:
        given = {name: value for name, value in given.items() if name not in _OF_BINS}
    table = dataclasses.replace(table, types=given.get("feature_types", table.types), names=given.pop("feature_names", table.names))
    same_on_all(peers, {"features": table.names or table.features.shape[1], "types": table.types, "categories": table.categories,
                        **{name: getattr(table, name) is not None for name in _table.OF_ROWS}, "reproducible": reproducible,
                        **{name: given.get(name) is not None for name in ("ref", "feature_weights", "label_lower_bound")},
                        "max_bin": given.get("max_bin")})
    require_same_categories(table.categories, given.get("ref"))
    how = _how(given, int(given.get("nthread") or 0), peers) if reproducible else None
    matrix = of_table(kind, table, arguments(table, _with_cuts_of_shares(given, table, peers, how)))
    matrix.warren_is_reproducible, matrix.warren_categories = reproducible, table.categories
    _require_labels(matrix, table, peers)
    return matrix


def require_cuts_of_all(options: Dict[str, Any]) -> None:
    """Raises ValueError for options of a reproducible matrix whose cuts would depend on the number of workers."""
    ref, missing = options.get("ref"), options.get("missing")
    if ref is not None and not getattr(ref, "warren_is_reproducible", False):
        raise ValueError("reproducible=True: the cuts of ref may be those of one worker's rows: make it with reproducible=True, too")
    if missing is not None and not np.isnan(missing):
        raise ValueError(f"reproducible=True: missing={missing!r} is not known when the cuts are computed: write missing values as empty "
                         "ones or as NaN")


def require_same_categories(categories: Mapping[str, Any], ref: Any) -> None:
    """Raises ValueError if a column has other categories than the same column of `ref`, the matrix of the training rows, or none."""
    for name, known in (getattr(ref, "warren_categories", None) or {}).items():
        if list(categories.get(name, ())) != list(known):
            raise ValueError(other_categories(name, categories.get(name), "the training rows have", known))


def other_categories(name: Any, values: Optional[Sequence[Any]], others: str, known: Sequence[Any]) -> str:
    """The error message for a column with other categories than others have; None: it has no categories."""
    own = "is no column of categories" if values is None else f"has the categories {list(values)[:8]!r}"
    return f"column {name!r} {own}, and {others} {list(known)[:8]!r}: give both the same, as with pandas.CategoricalDtype"


def _how(options: Dict[str, Any], nthread: int, peers: Peers) -> Optional[_cuts.How]:
    """Returns the settings for computing the cuts of all workers' rows; None if the cuts come from `ref`, or if there is only one worker."""
    if options.get("ref") is not None or peers.world == 1:
        return None
    return _cuts.How(int(options.get("max_bin") or DEFAULT_BINS), nthread)


def _with_cuts_of_shares(options: Dict[str, Any], table: _table.Table, peers: Peers, how: Optional[_cuts.How]) -> Dict[str, Any]:
    """Returns the options with `ref`, a matrix that has the cuts of all workers' rows. Without `how`, returns the options unchanged. A
    collective call."""
    if how is None:
        return options
    values = _cuts.of_shares(peers, table.features, table.weight, table.types, how)
    return {**options, "ref": _cuts.matrix_of(values, table.types, how)}


def _require_labels(matrix: Any, table: _table.Table, peers: Peers) -> None:
    """XGBoost before 3.2 (seen in 3.0.5, not in 3.2.0) forgets the number of labels per row if there are no rows, so that its workers make
    different calls. Raises ValueError on all ranks in that case. A collective call of `peers`. `table`: the rows, or an empty table."""
    if peers.world == 1 or table.label is None or table.label.ndim == 1:
        return
    forgotten = matrix.num_row() == 0 and matrix.get_label().ndim == 1
    ranks = peers.greatest(np.array([peers.rank + 1 if forgotten else 0], "uint64"))
    if ranks[0]:
        raise ValueError(f"rank {int(ranks[0]) - 1} of {peers.world} has no rows, and XGBoost {xgb.__version__} cannot train with "
                         f"{table.label.shape[1]} labels per row in that case: start fewer workers, or use XGBoost 3.2 or later")


def _checked(asked: _load.Wanted, table: _table.Table, peers: Peers, check: Optional[bool]) -> None:
    if _check.wanted(check):
        _check.show(shown_uri(asked.uri), table, peers)


def _batch_rows(source: Source, size: int) -> int:
    return max(1, size // (4 * max(1, len(source.layout.names()))))


def _rows(source: Source) -> int:
    """Returns the approximate number of rows of this worker's share. If the files do not contain it, it is estimated from the rows per byte
    of a few pieces, which are read completely. The rows of compressed text are counted, because the size of compressed text does not
    predict their number."""
    if source.rows is not None:
        return source.rows
    columns = source.layout.request.others() or source.layout.read()[:1]

    def counted(slices: Sequence[Slice]) -> int:
        return sum(len(batch.table) for one in slices for batch in source.batches_of(one, columns))

    def is_compressed(one: Slice) -> bool:
        return source.format_name == "csv" and _formats.Csv.is_compressed(one.piece)

    compressed = [one for one in source.slices if is_compressed(one)]
    plain = [one for one in source.slices if not is_compressed(one)]
    places = sorted({len(plain) * k // _PIECES_LOOKED_AT for k in range(_PIECES_LOOKED_AT)}) if plain else []
    looked_at = [plain[at] for at in places]
    size = sum(one.piece.size for one in looked_at)
    rows = -(-counted(looked_at) * sum(one.piece.size for one in plain) // size) if size else 0
    return rows + counted(compressed)


def _fitting(source: Source, quantile: bool, options: Dict[str, Any]) -> str:
    """Returns "matrix", "quantile" or "external": the form of the data that fits into the memory of each worker. The answer is the same on
    all workers."""
    kinds = ["matrix", "quantile", "external"]
    peers = source.peers

    def ours() -> str:
        batch_rows = _batch_rows(source, _BATCH_BYTES)
        need = _memory.Need.of(_rows(source), len(source.layout.names()), int(options.get("max_bin") or DEFAULT_BINS), batch_rows)
        return _memory.choice(need, _memory.limit(), quantile)

    chosen = kinds.index(together(peers, ours))
    if peers.world > 1 and peers.connected:
        chosen = int(peers.greatest(np.array([chosen], "uint64"))[0])
    if kinds[chosen] != "matrix" and peers.rank == 0:
        what = "a QuantileDMatrix, made from batches" if kinds[chosen] == "quantile" else "pages on disk"
        print(f"{shown_uri(source.uri)}: does not fit into the {_memory.limit() / 1e9:.1f} GB that a worker has: {what}", file=sys.stderr)
    return kinds[chosen]


def _from_pages(source: Source, converter: _converter.Converter, how: str, cache_dir: Optional[str], check: Optional[bool],
                options: Dict[str, Any]) -> Any:
    if _check.wanted(check):
        _show_of_pages(source, converter)
    types = converter.layout.types()
    if how == "quantile":
        pages = Pages(source, converter, _batch_rows(source, _BATCH_BYTES))
        return _made(pages, lambda: of_batches(pages.tables, types, options))
    if VERSION < (3, 0) and source.peers.world > 1:
        raise ValueError(f"XGBoost {xgb.__version__} supports external memory only outside of jobs: external_memory needs 3.0 or later in "
                         "a job")
    folder = together(source.peers, lambda: _folder(cache_dir))
    rows = _batch_rows(source, max(_BATCH_BYTES, _memory.limit() // _PAGES_IN_MEMORY // 4))
    pages = Pages(source, converter, rows)
    batches = _iterator(pages.tables, cache_prefix=os.path.join(folder.path, f"rank-{source.peers.rank}"))
    kind = xgb.ExtMemQuantileDMatrix if hasattr(xgb, "ExtMemQuantileDMatrix") else xgb.DMatrix
    matrix = _made(pages, lambda: kind(batches, **{**_cuts.with_categories(types), **options}))
    matrix.warren_folder = folder
    return matrix


def _folder(cache_dir: "str | os.PathLike[str] | None") -> LockedFolder:
    """Makes a folder for pages on disk. It is removed with the matrix that refers to it, once XGBoost has closed its files there."""
    place = tempfile.gettempdir() if cache_dir is None else os.fspath(cache_dir)
    try:
        return LockedFolder(place, "warren-pages-")
    except FileNotFoundError:
        raise FileNotFoundError(f"cache_dir={place!r}: there is no such folder") from None


def _made(pages: Pages, make: Callable[[], Any]) -> Any:
    """Returns the matrix from `make`. If reading failed on a worker, raises its error on all workers. A collective call."""
    def checked() -> Any:
        try:
            matrix = make()
        except xgb.core.XGBoostError:
            if pages.failure is None:
                raise
        if pages.failure is not None:
            raise pages.failure
        return matrix

    return together(pages.source.peers, checked)


def _show_of_pages(source: Source, converter: _converter.Converter) -> None:
    """Prints the table of each worker's share, in a separate pass over the rows."""
    converter.start()
    found: Optional[_check.Summary] = None
    for batch in source.batches(converter.layout.read()):
        one = _check.summary(converter.table(batch))
        found = one if found is None else _check.added(found, one)
    ours = found if found is not None else _check.summary(converter.empty())
    _check.tell(shown_uri(source.uri), len(converter.layout.names()), ours, source.peers, converter.categories.values)


def warn_of_workers_without_rows(uri: Any, rows: int, weights: int) -> None:
    """Warns on rank 0 if there are workers without rows. A collective call of all ranks of XGBoost's communicator."""
    module = collective()
    if int(module.get_world_size()) == 1:
        return
    without, weighted = (int(count) for count in module.allreduce(np.array([rows == 0, weights > 0], np.int32), module.Op.SUM))
    if without == 0 or int(module.get_rank()) != 0:
        return
    consequence = "" if not weighted else ("; XGBoost computes base_score differently on workers with weights: set it (base_score=0.5), "
                                           "or start fewer workers")
    if VERSION < (2, 0):
        consequence = (f"; with tree_method=hist the workers of XGBoost {xgb.__version__} then wait for each other forever: start fewer "
                       "of them, or use approx")
    warnings.warn(f"{without} of {int(module.get_world_size())} workers have no rows of {shown_uri(uri)}{consequence}",
                  stacklevel=_callers.stacklevel())

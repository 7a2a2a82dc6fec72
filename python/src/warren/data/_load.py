"""The public functions `load` and `batches`, which read data sets of any format, from any store, as tables."""
import contextlib
import dataclasses
import operator
import os
import re
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from warren._system import callers as _callers
from warren.data import _check, _files, _peers, _progress, _queries, _table, _text
from warren.data._columnar import converter as _converter
from warren.data._columnar import formats as _formats
from warren.data._columnar.ahead import ahead
from warren.data._columnar.columns import Names, Request, names, near
from warren.data._columnar.source import Options, Source, Uri, shown_uri
from warren.data._peers import Peers
from warren.data._table import Table

_TEXT = ("libsvm", "libfm")
#: Matches one option of the text reader, as it may follow a "?" in a URI; see docs/how-to/data-text.md.
_TEXT_OPTION = ("(?:format|indexing_mode|label_column|weight_column|qid_column|delimiter|header|part|n|shuffle|bad_rows)"
                "=(?:/|[^&/]*)")
_PART_OPTION = re.compile(r"\?(?:.*&)?part=")
_TEXT_OPTIONS = re.compile(rf"\?({_TEXT_OPTION}(?:&{_TEXT_OPTION})*)$")


def _paths(uri: Any) -> Union[str, List[str]]:
    """Returns a str for a str, and a list of names for a Path, a list or a tuple. A leading ~ is expanded, unless a file has that name.
    Raises TypeError for anything else."""
    if isinstance(uri, str):
        return _files.in_full(uri)
    if isinstance(uri, os.PathLike):
        return [_files.in_full(os.fsdecode(uri))]
    if not isinstance(uri, (list, tuple)) or not all(isinstance(one, (str, os.PathLike)) for one in uri):
        raise TypeError(f"found a {type(uri).__name__} for a data set, expected the name of a file, a folder or a pattern, or a list of "
                        "them; for rows in memory use xgboost.DMatrix or lightgbm.Dataset, after warren.data.scatter if one worker has "
                        "them all")
    return [_files.in_full(os.fsdecode(one)) for one in uri]


class Wanted:
    """A checked request: the arguments that the functions of this module share. The constructor raises TypeError or ValueError for invalid
    arguments. To detect the format, it may list the data set's files and read the first bytes of one."""

    #: The names of these arguments, except `uri`.
    ARGUMENTS = ("label", "weight", "qid", "base_margin", "features", "exclude", "categorical", "categories", "filters", "shuffle", "format",
                 "delimiter", "storage_options", "nthread")

    def __init__(self, uri: Uri, *, label: Names = None, weight: Optional[str] = None, qid: Optional[str] = None,
                 base_margin: Names = None, features: Names = None, exclude: Names = None, categorical: Names = None,
                 categories: Optional[Mapping[str, Sequence[Any]]] = None, filters: Optional[Sequence[Any]] = None,
                 shuffle: Optional[int] = None, format: Optional[str] = None,  # pylint: disable=redefined-builtin
                 delimiter: Optional[str] = None, storage_options: Optional[Mapping[str, Any]] = None, nthread: int = 0) -> None:
        self.uri, self.categories, self.nthread = _paths(uri), categories, nthread
        for what, name in (("weight", weight), ("qid", qid)):
            if name is not None and not (isinstance(name, str) and name):
                raise TypeError(f"{what}={name!r}: expected the name of a column")
        if categories is not None and not isinstance(categories, Mapping):
            raise TypeError(f"categories={categories!r}: expected {{name of a column: its values}}")
        for name, values in (categories or {}).items():
            if isinstance(values, (str, set, frozenset)):  # a set has another order, and so other codes, in each process
                raise TypeError(f"categories[{name!r}] is a {type(values).__name__}, expected a list of values, in the same order on all "
                                "workers")
        if shuffle is not None:
            shuffle = whole_number("shuffle", shuffle, "a seed")
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii() and
                                          delimiter not in "\r\n\""):
            raise ValueError(f"delimiter={delimiter!r}: expected one character, such as ',' or '\\t'")
        self.request = Request(names(label, "label"), weight, qid, names(base_margin, "base_margin"),
                               None if features is None else names(features, "features"), names(exclude, "exclude"),
                               tuple(dict.fromkeys([*names(categorical, "categorical"), *(categories or {})])), tuple(categories or ()))
        self.options = Options(format, filters, shuffle, delimiter or "", storage_options)
        self.is_text = self._is_text()
        self._shape: Optional[NDArray[Any]] = None  # the result of _text.shape, computed when first needed

    def _is_text(self) -> bool:
        """Whether Warren's text reader reads the data set. The same on all workers, if they see the same files."""
        kind = self.options.format
        if kind is not None:
            if kind not in (*_TEXT, *_formats.FORMATS):
                raise ValueError(f"format is {kind!r}, expected one of {', '.join((*_TEXT, *_formats.FORMATS))}")
            return kind in _TEXT
        if isinstance(self.uri, str):
            options = _TEXT_OPTIONS.search(self.uri.partition("#")[0])
            if options and (_formats.by_name(self.uri[:options.start()]) in (None, "csv") or "format=" in options[1]):
                return True
        if self.request != Request() or self.options.filters is not None:
            return False
        if any(map(_formats.by_name, [self.uri] if isinstance(self.uri, str) else self.uri)):
            return False
        return not self._looks_like_columns()

    @property
    def text_format(self) -> str:
        """The format of a text data set, such as "libsvm"."""
        found = _TEXT_OPTIONS.search(self.uri.partition("#")[0]) if isinstance(self.uri, str) else None
        said = [option[len("format="):] for option in (found[1].split("&") if found else []) if option.startswith("format=")]
        return self.options.format or (said[-1] if said else "libsvm")

    def _looks_like_columns(self) -> bool:
        """Whether the first non-empty file of the data set has named columns, judging by that file's name or contents. Used only if neither
        the arguments nor the names in the URI determine the format."""
        try:
            files = _files.find(self.uri, storage_options=self.options.storage_options)
        except (OSError, ValueError):
            return False  # the text reader will report the error
        first = next((file for file in files if file.size), None)
        return first is not None and _formats.of_file(first, self.options.storage_options) is not None

    def text(self, peers: Peers) -> Table:
        """Returns this worker's share of a text data set. A collective call if `peers` are connected. Raises ValueError with the file, line
        and column of the problem, and the errors of the store; the same error on all workers if they are connected."""
        if self.request != Request() or self.options.filters is not None or self.categories is not None:
            raise ValueError(f"{shown_uri(self.uri)}: LibSVM and libfm text contains its labels, weights and queries, and its features "
                             "have numbers: leave label, weight, qid, features, filters and categories out")
        if self.options.delimiter:
            raise ValueError(f"{shown_uri(self.uri)}: delimiter={self.options.delimiter!r} is for CSV with named columns (format='csv'); "
                             "for CSV text, write it into the name: 'FILE?format=csv&delimiter=...'")
        kind = self.options.format
        # In a name, format= has precedence over format='libsvm'.
        in_name = isinstance(self.uri, str) and "format=" in self.uri.partition("?")[2]
        more = [] if kind is None or (kind == "libsvm" and in_name) else [f"format={kind}"]
        more += [] if self.options.shuffle is None else [f"shuffle={self.options.shuffle}"]
        how: Dict[str, Any] = {"options": "&".join(more), "threads": self.nthread, "storage_options": self.options.storage_options}

        def read(greatest: Optional[_peers.Greatest]) -> Tuple[_text.Rows, Dict[str, NDArray[Any]]]:
            return _text.read_share(self.uri, peers.rank, peers.world, allreduce_max=greatest, **how)

        def refuse(file: str, query: Any) -> None:
            raise ValueError(f"{_files.shown(file)}: the rows of query {query!s} are not together: sort the file by qid")

        if peers.world == 1:
            rows, _ = read(None)
        elif peers.connected:
            rows, queries = _peers.with_greatest(peers, read)
            names_part = isinstance(self.uri, str) and _PART_OPTION.search(self.uri.partition("#")[0])
            if rows.group_sizes is not None and not names_part:  # for a named part, the reader has checked all parts
                _queries.require_together(peers, queries, refuse)
        else:
            # This worker cannot communicate with the others, so it reads the whole data set to find the shape that all shares must have.
            if self._shape is None:
                self._shape = _text.shape(self.uri, **how)
            shape = self._shape
            rows, _ = read(lambda values: np.maximum(values, shape))
        if rows.bad_rows > 0:
            warnings.warn(f"{rows.bad_rows} bad rows of {shown_uri(self.uri)} were skipped, such as {rows.first_bad_row}",
                          stacklevel=_callers.stacklevel())
        return _table.of_rows(rows)

    def table(self, peers: Peers, *, check: Optional[bool], progress: bool, whole: bool = False) -> Table:
        """Returns this worker's share, or all rows if `whole`, in memory. A collective call of `peers`, unless `whole`."""
        readers = _peers.Alone() if whole else peers
        if self.is_text:
            table = self.text(readers)
        else:
            with contextlib.closing(self.source(readers)) as source, contextlib.closing(bar(source, progress)) as shown:
                table = _converter.loaded(_converter.Converter(source, self.categories), shown)
        # With `whole`, all ranks have the same rows, so only rank 0 prints the summary, as if it were the only worker.
        if _check.wanted(check) and not (whole and peers.rank > 0):
            _check.show(shown_uri(self.uri), table, readers)
        return table

    def source(self, peers: Peers, as_stored: bool = False, files: Optional[Sequence[_files.File]] = None,
               of_all: Optional[Sequence[_files.File]] = None) -> Source:
        """Opens a data set with named columns; with `as_stored`, columns of any type. `files` and `of_all` are as for Source."""
        present = tuple((name, value) for name, values in (self.categories or {}).items() for value in values
                        if isinstance(value, str) and value in _formats.CSV_MISSING)
        return Source(self.uri, self.request._replace(as_stored=as_stored, present=present), peers, self.options, files, of_all)


def peers_of(rank: Optional[int], world: Optional[int]) -> Peers:
    """Returns the ranks of this process's job, or rank `rank` of `world`, without communication. Raises ValueError if only one of the two
    is given, or if `rank` is not a rank of `world`; TypeError if they are not whole numbers; and RuntimeError as `_peers.current` does."""
    if (rank is None) != (world is None):
        raise ValueError(f"rank and world are {rank!r} and {world!r}: expected both, or neither to use those of this process's job")
    if rank is None or world is None:
        return _peers.current()
    return _peers.of(whole_number("rank", rank, "which share"), whole_number("world", world, "how many shares"))


def whole_number(name: str, value: Any, meaning: str) -> int:
    """Returns the argument as an int. Raises TypeError for anything but a whole number; a bool is not one."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}={value!r}: expected a whole number, {meaning}")


def load(uri: Uri, *, rank: Optional[int] = None, world: Optional[int] = None, check: Optional[bool] = None,
         progress: bool = True, **wanted: Any) -> Table:
    """Returns this worker's share of a data set, in memory.

    `uri`: a str is a file, a folder (with all files below it), a pattern, or several of them separated by ";": paths, or s3://, gs://,
    abfs://, hdfs://, http(s):// and anything else that fsspec opens. A Path, and each element of a list, is one file or folder, whatever
    characters its name has. `format`: "parquet", "arrow" (Feather), "csv", "libsvm" or "libfm"; None detects it by names and contents. For
    LibSVM, libfm and CSV text as `read` takes it (with a "?"), only `shuffle`, `storage_options` and `nthread` of the next paragraph apply.

    `label`, `weight`, `qid`, `base_margin`: names of columns; `label` and `base_margin` may be several. `features`: names or patterns; None
    means all other columns; `exclude`: columns to leave out. `categorical`: columns of words or numbers that are categories; dictionary
    columns (pandas' categories) need not be named. `categories`: the values of each, such as those of the training data for predictions;
    None takes them from the rows of all workers. `filters`: [(column, operator, value), ...], which must all hold, or a list of such lists,
    at least one of which must hold. `shuffle`: a seed for the order of the pieces (row groups) and of the rows in each piece; with `qid`,
    for the order of the files alone. `delimiter`: for CSV; None means a tab if the name ends in .tsv (or .tsv.gz, ...), else a comma.
    `storage_options`: for fsspec. `nthread`: the number of threads that read text, 0 for one per core.

    `rank`, `world`: the number of the share, and the number of shares; None means those of the job that this process has joined (XGBoost's
    communicator, Warren's, torch.distributed's), or the whole data set outside a job. Shares are about equal in bytes; concatenated they
    are the data set, each row once, in the same order for any number of workers. Queries are never split. A share may have no rows. All
    shares have the same columns, and either all or none have labels, weights and queries. Workers of a job agree on these; if `rank` and
    `world` are given, with more than one share, `categories` must be given if there are categorical columns, and a text data set is read as a
    whole once more.

    `check`: prints a table of each worker's share on rank 0's standard error (None: if dmlc-submit was started with --check-data).
    `progress`: shows the progress on rank 0's terminal, if it has one; in a job that dmlc-submit started, dmlc-submit shows the progress of
    all workers.

    A collective call in a job; all workers pass the same arguments. Raises ValueError or OSError with the file, row group, column and row of
    the problem, the same on all workers. Workers exchange information about files and columns in messages sealed with the job's token: raises
    RuntimeError for a message that is not sealed. In a job without a token the messages are pickles, and the other workers are trusted."""
    _require_known("load", wanted, ("rank", "world", "check", "progress"))
    return Wanted(uri, **wanted).table(peers_of(rank, world), check=check, progress=progress)


def _require_known(function: str, given: Mapping[str, Any], own: Sequence[str]) -> None:
    """Raises TypeError for an argument that is not one of Wanted's. `own`: the function's other arguments, which may be meant."""
    for name in given:
        if name not in Wanted.ARGUMENTS:
            meant = near(name, [*Wanted.ARGUMENTS, *own])
            raise TypeError(f"{function}() got an unexpected argument {name!r}" + (f"; did you mean {meant[0]!r}?" if meant else
                                                                                 f": expected {', '.join((*Wanted.ARGUMENTS, *own))}"))


def bar(source: Source, progress: bool) -> _progress.Progress:
    """Returns a progress display for reading all of this rank's share."""
    return _progress.Progress(f"reading {shown_uri(source.uri)}", source.rows, source.bytes, progress, draws=source.peers.rank == 0)


def batches(uri: Uri, batch_rows: int = 65536, *, kind: str = "numpy", rank: Optional[int] = None, world: Optional[int] = None,
            drop_last: bool = False, **wanted: Any) -> Iterator[Any]:
    """Yields this worker's share, `batch_rows` rows at a time. A thread reads ahead; memory is needed for a few batches and one row group.
    A share of a text data set, however, is read as a whole. The arguments are those of `load`.

    `kind`: "numpy" yields Tables; "torch" the same with tensors instead of arrays (dense ones for text, with 0 for absent values); "arrow"
    pyarrow.Tables with the columns as they are stored, including those of labels, weights and queries. `drop_last`: leaves out a last batch
    with fewer rows. With `shuffle`, pass another seed for each epoch. The number of batches may differ between ranks.

    A collective call. A problem with the data set's columns is raised immediately and on all workers; a problem with a value is raised
    during the iteration, on the worker that reads it. If the rows of a query are not contiguous in a share, an error is raised after the
    last full batch, except with "arrow"; a query that also occurs in another worker's share is not detected here (`load` detects it). In
    text data sets, all problems are found as by `load`, before the first batch."""
    if kind not in ("numpy", "torch", "arrow"):
        raise ValueError(f"kind is {kind!r}, expected numpy, torch or arrow")
    batch_rows = whole_number("batch_rows", batch_rows, "rows")
    if batch_rows < 1:
        raise ValueError(f"batch_rows is {batch_rows}, expected at least 1")
    _require_known("batches", wanted, ("batch_rows", "kind", "rank", "world", "drop_last"))
    asked = Wanted(uri, **wanted)
    peers = peers_of(rank, world)
    if asked.is_text:
        if kind == "arrow":
            raise ValueError(f"{shown_uri(uri)}: text gives kind='numpy' or 'torch'")
        tables: Iterator[Table] = iter([asked.text(peers)])
        return _converted(_table.resized(tables, batch_rows, drop_last), kind)
    if kind == "arrow":
        return _arrow(asked.source(peers, as_stored=True), batch_rows, drop_last)
    source = asked.source(peers)
    converter = _converter.Converter(source, asked.categories)
    return _converted(_table.resized(_tables(source, converter), batch_rows, drop_last), kind)


def _tables(source: Source, converter: _converter.Converter) -> Iterator[Table]:
    with contextlib.closing(source):
        converter.start()
        yield from ahead(lambda: map(converter.table, source.batches(converter.layout.read())), 2)
        converter.check_own_queries()


def _arrow(source: Source, rows: int, drop_last: bool) -> Iterator[Any]:
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    with contextlib.closing(source):
        waiting = None
        for batch in source.batches(source.layout.read()):
            waiting = batch.table if waiting is None else pa.concat_tables([waiting, batch.table], promote_options="permissive")
            while len(waiting) >= rows:
                yield waiting.slice(0, rows)
                waiting = waiting.slice(rows)
        if waiting is not None and len(waiting) and not drop_last:
            yield waiting


def _converted(tables: Iterator[Table], kind: str) -> Iterator[Table]:
    if kind == "numpy":
        return tables
    import torch  # pylint: disable=import-outside-toplevel

    def tensor(array: Any) -> Any:
        if array is None:
            return None
        return torch.from_numpy(array.toarray() if hasattr(array, "toarray") else array)

    def converted(table: Table) -> Table:
        return dataclasses.replace(table, features=tensor(table.features), **{
            name: tensor(getattr(table, name)) for name in _table.OF_ROWS})
    return map(converted, tables)

"""A data set of files with named columns, opened for reading by one worker of a job.

Rank 0 lists the files; each worker reads the metadata of some of them (columns and pieces: formats.py), and the workers exchange the
metadata, so that no worker reads the metadata of all files. The workers then agree on the columns (columns.py), and compute each worker's
share (pieces.py). If files or workers disagree, the constructor raises an error with the same text on all workers."""
import concurrent.futures
import contextlib
import dataclasses
import functools
import os
import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from warren.data import _files, _queries
from warren.data._columnar import columns as _columns
from warren.data._columnar import formats as _formats
from warren.data._columnar import pieces as _pieces
from warren.data._columnar.ahead import ahead
from warren.data._columnar.pieces import Piece, Slice
from warren.data._peers import Peers, same_on_all, together

Uri = Union[str, "os.PathLike[str]", Sequence[Any]]

#: The number of files whose metadata are read concurrently: each request to a store takes long, but a store processes many at the same
#: time.
_ASKED_AT_ONCE = 16
#: If several workers have fewer files per worker than this, the row counts of Arrow's record batches are read, so that shares can be cut
#: within them.
_FEW_FILES = 4
#: The number of batches that are read ahead of the current one.
_AHEAD = 2


class Options(NamedTuple):
    """The options with which a data set is read; see `warren.data.load`."""

    format: Optional[str] = None
    filters: Optional[Sequence[Any]] = None
    shuffle: Optional[int] = None
    delimiter: str = ","
    storage_options: Optional[Mapping[str, Any]] = None


class Batch(NamedTuple):
    """Some rows of a share, all from one piece."""

    table: Any  #: pyarrow.Table
    slice: Slice
    row: int  #: the index of the first row in its piece, or -1 if rows are shuffled or filtered


@contextlib.contextmanager
def _about(file: _files.File, place: str = "") -> Iterator[None]:
    """Prefixes errors with the file and the position in it. KeyError, TypeError and NotImplementedError become ValueError."""
    uri = _files.shown(file.uri)
    where = f"{uri}{', ' + place if place else ''}"
    try:
        yield
    except OSError as error:
        if uri in str(error):
            raise
        # The Parquet reader also raises OSError for damaged files.
        raise type(error)(f"{where}: {error}") from None
    except (ValueError, KeyError) as error:  # including pyarrow's
        raise ValueError(f"{where}: {str(error).strip()}" if uri not in str(error) else str(error)) from None
    except (TypeError, NotImplementedError) as error:  # from pyarrow, and from libraries that register types with it
        raise ValueError(f"{where}: {error}") from error


@contextlib.contextmanager
def _of_pieces(pieces: Sequence[Piece], kind: Any) -> Iterator[None]:
    """Appends the range of row groups to errors about the columns of a Parquet file, since all its row groups have the same columns."""
    try:
        yield
    except ValueError as error:
        if kind is not _formats.Parquet or not pieces:
            raise
        last = pieces[-1].place
        raise ValueError(f"{error} (row group{f's {pieces[0].place} to' if last > pieces[0].place else ''} {last})") from None


@contextlib.contextmanager
def _hinted(hint: str) -> Iterator[None]:
    """Appends a possible cause to ValueErrors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{error}{hint}") from None


class Source:
    """An opened data set. Used by one thread. Creating it is a collective call (see the beginning of this file), which raises ValueError or
    OSError, the same on all workers.

    `files`: the files of `uri`, if they have been listed already. `of_all`: the files that determine the types of folder columns, if
    `files` are only some of them."""

    def __init__(self, uri: Uri, request: _columns.Request, peers: Peers, options: Options,
                 files: Optional[Sequence[_files.File]] = None, of_all: Optional[Sequence[_files.File]] = None) -> None:
        self.uri, self.peers, self.options = uri, peers, options
        given = [uri] if isinstance(uri, os.PathLike) else uri
        same_on_all(peers, {"the data set": shown_uri(given) if isinstance(given, str) else [shown_uri(one) for one in given],
                            **request._asdict(), **options._asdict(), "storage_options": None})
        self._request = request
        self._filter_columns = _columns_of(options.filters)
        listed = together(peers, lambda: self._listed(files) if peers.rank == 0 or not peers.connected else [])
        self.files: List[_files.File] = peers.broadcast(listed, 0, objects=True) if peers.connected else listed
        if peers.connected and peers.rank > 0:
            # Rank 0's tags are not compared with those of this host: copies on the hosts' own disks may have different modification times,
            # and the clients of a network file system may see different ones.
            self.files = [file if _is_remote(file) else dataclasses.replace(file, tag="") for file in self.files]
        #: The columns, by file number, that the file contains although its folders give them, too.
        self._twice: Dict[int, List[str]] = {}
        self._folders = together(peers, lambda: self._partition_types(self.files if of_all is None else of_all))
        self._format = together(peers, self._chosen_format)
        self._reading = _formats.Reading(options.storage_options, options.delimiter, {},
                                         _formats.csv_range(sum(file.size for file in self.files)),
                                         request.categorical, request.present,
                                         1 < peers.world and len(self.files) < _FEW_FILES * peers.world)
        contents = together(peers, self._asked)
        if peers.connected:
            contents = {number: one for of_one in peers.allgather(contents, objects=True) for number, one in of_one.items()}
        self.layout, self.schema = together(peers, lambda: self._common_layout(contents))
        self._reading = self._reading._replace(types=self._csv_types(self.schema))
        self._opened = _formats.Opened(self.files, self._format, self._reading)
        whole_files = request.qid is not None
        self.pieces = _pieces.ordered([piece for number in sorted(contents) for piece in contents[number].pieces], options.shuffle,
                                      whole_files)
        self.slices = together(peers, self._share)

    def _listed(self, files: Optional[Sequence[_files.File]]) -> List[_files.File]:
        return _files.find(self.uri, storage_options=self.options.storage_options) if files is None else list(files)

    def _chosen_format(self) -> Any:
        name = self.options.format
        if name is None:
            name = next(filter(None, (_formats.of_file(file, self.options.storage_options) for file in self.files)), None)
        if name not in _formats.FORMATS:
            raise ValueError(f"{shown_uri(self.uri)}: format is {name!r}, expected one of {', '.join(_formats.FORMATS)}" if name else
                             f"{_files.shown(self.files[0].uri)}: neither its name nor its first bytes show its format: give format=")
        return _formats.FORMATS[name]

    def _asked(self) -> Dict[int, _formats.Contents]:
        """Reads the metadata of this worker's part of the files, or of all files if the workers are not connected; returns them by file number.
        An empty file is an error if the format does not allow empty files."""
        peers = self.peers
        mine = range(peers.rank, len(self.files), peers.world) if peers.connected else range(len(self.files))
        # The whole filter. `_kept` checks it against each file's columns, and applies its conditions on folder values and on columns separately.
        keep = self._expression(self.options.filters)

        def ask(number: int) -> Tuple[int, _formats.Contents]:
            file = self.files[number]
            with _about(file):
                opened = self._format(file, number, self._reading)
                try:
                    found = opened.contents(None)
                    if keep is not None:
                        with _hinted(found.hint):
                            found = found._replace(pieces=self._kept(opened, file, found, keep))
                    return number, found
                finally:
                    opened.close()

        with concurrent.futures.ThreadPoolExecutor(_ASKED_AT_ONCE, "warren-data-ask") as pool:
            return dict(pool.map(ask, mine))

    def _kept(self, opened: _formats.Format, file: _files.File, found: _formats.Contents, keep: Any) -> List[Piece]:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        known = {name for name in found.schema.names} | {key for key, _ in file.partition}
        for name in self._filter_columns:
            if name not in known:
                raise _columns.absent("filters", name, sorted(known))
        self._try_filters(found.schema, file, keep)
        told = {key: self._folder_value(key, value) for key, value in file.partition if key in self._filter_columns}
        of_folders = [[one for one in group if one[0] in told] for group in _groups(self.options.filters)]
        if told and all(of_folders) and not len(pa.table(told).filter(self._expression(of_folders))):
            return []
        # Row groups are filtered by the conditions on columns alone.
        of_columns = [[one for one in group if one[0] not in told] for group in _groups(self.options.filters)]
        return opened.contents(self._expression(of_columns)).pieces if all(of_columns) else found.pieces

    def _try_filters(self, schema: Any, file: _files.File, keep: Any) -> None:
        """Raises ValueError if the filters' values cannot be compared with the columns' types."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        kinds = {field.name: field.type for field in schema} | {key: self._folders[key] for key, _ in file.partition}
        columns = {name: kinds[name] for name in self._filter_columns}
        plain = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in columns.items()}
        _filtered(pa.table({name: pa.array([], kind) for name, kind in plain.items()}), keep, columns)

    @staticmethod
    def _expression(filters: Optional[Sequence[Any]]) -> Any:
        if not filters:
            return None
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        import pyarrow.parquet as pq  # pylint: disable=import-outside-toplevel

        try:
            return pq.filters_to_expression(filters)
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise ValueError(f"filters={filters!r}: {error}") from None

    def _partition_types(self, files: Sequence[_files.File]) -> Dict[str, Any]:
        """Returns the types of the columns given by folders: whole numbers if all values are whole numbers or missing and the caller has
        not declared the column categorical, else categories. Raises ValueError if only some of the files have such a column."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        values: Dict[str, List[str]] = {}
        for file in files:
            for key, value in file.partition:
                values.setdefault(key, []).append(value)
        for key, of_one in values.items():
            if len(of_one) != len(files):
                lacking = next(file.uri for file in files if key not in dict(file.partition))
                raise ValueError(f"{_files.shown(lacking)}: no folder in its path gives its {key!r}, unlike those of other files")
        declared = self._request.categorical
        return {key: pa.int64() if key not in declared and all(_WHOLE.fullmatch(value) for value in of_one if value != _MISSING) else
                pa.dictionary(pa.int32(), pa.string()) for key, of_one in values.items()}

    def _folder_value(self, key: str, value: str) -> Any:
        """Returns the value in a folder's name as a pyarrow array of one element."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        is_word = pa.types.is_dictionary(self._folders[key])
        found = None if value == _MISSING else value if is_word else int(value)
        return pa.array([found], pa.string() if is_word else self._folders[key])

    def _common_layout(self, contents: Mapping[int, _formats.Contents]) -> Tuple[_columns.Layout, Any]:
        """Returns the columns of all files, and the first file's schema; with `as_stored`, the schema's types are widened to fit the values
        of all files. Raises ValueError if there are no files, or if their columns differ."""
        if not contents:
            raise ValueError(f"{shown_uri(self.uri)}: there are no files")
        contents = _formats.settled(contents)
        partition = list(self._folders.items())
        whole = contents[min(contents)].schema
        found: Optional[_columns.Layout] = None
        seen: List[Any] = []
        for number in sorted(contents):
            schema = contents[number].schema
            twice = [name for name in schema.names if name in self._folders]
            if twice:
                self._twice[number] = twice
            if any(schema.equals(one) for one in seen):
                continue
            seen.append(schema)
            with _about(self.files[number]), _of_pieces(contents[number].pieces, self._format):
                with _hinted(contents[number].hint):
                    one = _columns.layout(schema, partition, self._request)
                found = one if found is None else _columns.agreed(found, one)
                if self._request.as_stored:
                    for name in one.read():
                        if name in schema.names and name not in self._folders:
                            at = whole.get_field_index(name)
                            whole = whole.set(at, _field_of_both(whole.field(at), schema.field(name)))
        assert found is not None
        return found, whole

    def stored_schema(self, columns: Sequence[str]) -> Any:
        """The pyarrow.Schema of these columns in batches, in this order, including columns given by folders."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        def field(name: str) -> Any:
            if name in self._folders:
                return pa.field(name, self._folders[name])
            found = self.schema.field(name)
            kind = self._reading.types.get(name, found.type)
            return found.with_type(pa.large_string() if pa.types.is_string_view(kind) else kind)
        return pa.schema([field(name) for name in columns], self.schema.metadata)

    def _csv_types(self, schema: Any) -> Dict[str, Any]:
        """The types with which CSV columns are read: a column that starts with whole numbers may have fractions later."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        if self._format is not _formats.Csv:
            return {}
        kinds = {column.name: column.kind for column in self.layout.features}
        types = {}
        for field in schema:
            kind = kinds.get(field.name)
            if field.name in self._folders:
                types[field.name] = pa.string()  # only compared with the folder's value
            elif kind == "any":
                types[field.name] = field.type if not pa.types.is_integer(field.type) else pa.float64()
            elif kind in ("number", "integer"):
                # As float32, 0.7 would be less than 0.7, and great whole numbers could not be compared.
                types[field.name] = pa.float64() if field.name in self._filter_columns else pa.float32()
            elif field.name in (*self._request.label, self._request.weight, *self._request.base_margin):
                types[field.name] = field.type if pa.types.is_boolean(field.type) else pa.float64()
            elif kind or field.name == self._request.qid or field.name in self._filter_columns:
                types[field.name] = field.type
        return types

    def _share(self) -> List[Slice]:
        """Returns this worker's rows. Its local files are compared with their present state from here on: no worker reads rows before all
        have looked at their files."""
        found = self.between(self.peers.rank, self.peers.rank + 1, self.peers.world)
        for number in {one.piece.file for one in found}:
            file = self.files[number]
            if not _is_remote(file) and not file.tag:
                with _about(file):
                    self.files[number] = _files.as_seen_here(file)
        return found

    def between(self, first: int, last: int, count: int) -> List[Slice]:
        """The rows of the shares from `first` up to, but not including, `last`, if there are `count` shares. With queries, reads the queries
        at both ends."""
        begin, end = (_pieces.cut(self.pieces, count, number) for number in (first, last))
        if self._request.qid is not None:
            @functools.lru_cache(maxsize=4)
            def queries_of(number: int) -> NDArray[Any]:
                return self._queries_of([Slice(self.pieces[number], number, 0, None)], filtered=False)

            def may_go_on(number: int) -> bool:
                return self.options.shuffle is None or self.pieces[number - 1].file == self.pieces[number].file

            begin, end = (_pieces.cut_between_queries(place, len(self.pieces), queries_of, may_go_on)
                          if 0 < number < count else place for number, place in ((first, begin), (last, end)))
        return _pieces.share(self.pieces, begin, end)

    @property
    def rows(self) -> Optional[int]:
        """The row count of this worker's share before filtering, or None if it is not known before the share is read."""
        if any(one.piece.rows < 0 for one in self.slices):
            return None
        return sum((one.piece.rows if one.end is None else one.end) - one.begin for one in self.slices)

    @property
    def bytes(self) -> int:
        """The approximate stored size of this worker's share, in bytes."""
        return sum(int(one.piece.size * _part(one)) for one in self.slices)

    def where(self, one: Slice, row: int = -1) -> str:
        """Describes a position for messages: the slice's piece and, if `row` is given, a row of the piece, counted from 0."""
        file = self.files[one.piece.file]
        # No open file is used, because open files belong to the reading thread.
        place = self._format.place(file, one.piece)
        return f"{_files.shown(file.uri)}, {place}" + (f", row {row}" if row >= 0 else "")

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Yields this worker's rows that pass the filters, in order; a thread reads ahead. The caller closes the generator if it is not
        exhausted."""
        return ahead(functools.partial(self._batches_of, self.slices, columns), _AHEAD)

    def batches_of_all(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Like `batches`, for the rows of all workers, in the order of the data set."""
        return ahead(functools.partial(self._batches_of, self._all_pieces(), columns), _AHEAD)

    def _all_pieces(self) -> List[Slice]:
        return [Slice(piece, number, 0, None) for number, piece in enumerate(self.pieces)]

    def _batches_of(self, slices: Sequence[Slice], columns: Sequence[str]) -> Iterator[Batch]:
        last = {one.piece.file: number for number, one in enumerate(slices)}
        for number, one in enumerate(slices):
            yield from self._batches(one, columns, filtered=True)
            if last[one.piece.file] == number:
                # Neither stores nor file systems report that a file was replaced between two reads.
                self._require_unchanged(self.files[one.piece.file])

    def _require_unchanged(self, file: _files.File) -> None:
        """Raises OSError unless the file is still the listed one, which opening it checks."""
        _files.Ranges(file, storage_options=self.options.storage_options).close()

    @contextlib.contextmanager
    def _unless_changed(self, file: _files.File) -> Iterator[None]:
        """After an error in reading a file's contents, raises an error that says that the file has changed, if it has."""
        try:
            yield
        except Exception as error:  # pylint: disable=broad-except
            if not (_is_remote(file) and isinstance(error, OSError)):  # the store's own errors have been retried
                self._require_unchanged(file)
            raise

    def queries_of_file(self, file: int) -> Optional[NDArray[Any]]:
        """The query of each run of consecutive rows with the same query in a file; None if this share contains all rows of the file, or if
        there are no queries."""
        pieces = [one for one in self._all_pieces() if one.piece.file == file]
        if self._request.qid is None or not set(pieces) - set(self.slices):
            return None
        queries = self._queries_of(pieces, filtered=True)
        found: NDArray[Any] = queries[_queries.starts(queries)]
        return found

    def _queries_of(self, slices: Sequence[Slice], filtered: bool) -> NDArray[Any]:
        """The query of each row of these slices, as numbers or words. Raises ValueError if a row has none."""
        qid = self._request.qid
        assert qid is not None
        parts = []
        for one in slices:
            for batch in self._batches(one, [qid], filtered):
                column = batch.table.column(qid)
                if column.null_count:
                    raise ValueError(f"column {qid!r}, the qid, has no value in {column.null_count} rows")
                parts += [_columns.identifiers(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.empty(0)

    def batches_of(self, one: Slice, columns: Sequence[str]) -> Iterator[Batch]:
        """Like `batches`, for one slice, without reading ahead."""
        return self._batches(one, columns, filtered=True)

    @property
    def format_name(self) -> str:
        """The format's name, such as "parquet"."""
        return str(self._format.name)

    @property
    def has_columns(self) -> bool:
        """Whether files of the format are stored by columns: not CSV."""
        return self._format is not _formats.Csv

    def _batches(self, one: Slice, columns: Sequence[str], filtered: bool) -> Iterator[Batch]:
        """Yields the rows of a slice; if `filtered`, only those that pass the filters."""
        file = self.files[one.piece.file]
        keep = self._expression(self.options.filters) if filtered else None
        needed = list(dict.fromkeys([*columns, *(self._filter_columns if filtered else [])]))
        shuffled = self.options.shuffle is not None and self._request.qid is None
        for row, table in (self._shuffled_tables if shuffled else self._tables_in_order)(one, needed):
            with _about(file, self._format.place(file, one.piece)):
                table = self._with_folder_columns(_with_common_strings(table), file, needed)
            if keep is not None:
                with _about(file, self._format.place(file, one.piece)):
                    table, row = _filtered(table, keep, {name: table.schema.field(name).type for name in self._filter_columns}), -1
            if not len(table):
                continue
            table = table.select(list(columns))
            if self._request.as_stored:
                with _about(file, self._format.place(file, one.piece)):
                    self._require_exact(table)
                    table = table.cast(self.stored_schema(columns))
            yield Batch(table, one, row)

    def _require_exact(self, table: Any) -> None:
        """Raises ValueError for a whole number of CSV that float64, as which such a column is read, cannot represent."""
        if self._format is _formats.Csv:
            for name in table.column_names:
                if name in self.schema.names and "int" in str(self.schema.field(name).type) and name in self._reading.types:
                    for chunk in table.column(name).chunks:
                        size = np.abs(_columns.numbers(chunk)) if str(chunk.type) == "double" else np.empty(0)
                        if ((size >= 2**53) & (size < 2**64)).any():  # from 2^64 on, it is not one of 64 bits
                            raise ValueError(f"column {name!r} has whole numbers from 2^53 on, which are read as float64 and would lose "
                                             "digits: leave it out with exclude=[...], or write it as words (with a letter)")

    def _stored_tables(self, piece: Piece, needed: Sequence[str]) -> Iterator[Tuple[int, Any]]:
        """Yields a piece's batches as they are stored: for each, the index of its first row within the piece, and a table with the needed
        columns that the file contains, or with any column if it contains none of them."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        file = self.files[piece.file]
        folders = {key for key, _ in file.partition} - set(self._twice.get(piece.file, ()))
        # If all needed columns are given by folders, another one is read in order to count the rows.
        stored = [name for name in needed if name not in folders] or [next(name for name in self.schema.names if name not in self._folders)]
        with _about(file), self._unless_changed(file):
            opened = self._opened(piece.file)
        row = 0
        with _about(file, self._format.place(file, piece)), self._unless_changed(file):
            for batch in opened.batches(piece, stored):
                yield row, pa.Table.from_batches([batch])
                row += len(batch)

    def _tables_in_order(self, one: Slice, needed: Sequence[str]) -> Iterator[Tuple[int, Any]]:
        """Yields the slice's rows in stored order; reads no further than its end."""
        for row, table in self._stored_tables(one.piece, needed):
            if one.end is not None and row >= one.end:
                return
            first = max(one.begin - row, 0)
            last = len(table) if one.end is None else min(one.end - row, len(table))
            if first < last:
                yield row + first, table.slice(first, last - first)

    def _shuffled_tables(self, one: Slice, needed: Sequence[str]) -> Iterator[Tuple[int, Any]]:
        """Yields the slice's rows in the piece's shuffled order. Holds the whole piece in memory."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        found = [table for _, table in self._stored_tables(one.piece, needed)]
        if not found:
            return
        assert self.options.shuffle is not None
        whole = pa.concat_tables(found)
        order = _pieces.rows_in_order(one.piece, len(whole), self.options.shuffle)[one.begin:one.end]
        for at in range(0, len(order), _formats.BATCH_ROWS):
            yield -1, whole.take(pa.array(order[at:at + _formats.BATCH_ROWS]))

    def _with_folder_columns(self, table: Any, file: _files.File, needed: Sequence[str]) -> Any:
        """Returns the table with additional columns: the needed ones whose values are in the names of the file's folders. Raises ValueError
        if the table has such a column with other values."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        for key, text in file.partition:
            if key not in needed:
                continue
            values = self._folder_value(key, text).take(pa.array(np.zeros(len(table), "int64")))
            column = values.dictionary_encode() if pa.types.is_dictionary(self._folders[key]) else values
            at = table.schema.get_field_index(key)
            if at >= 0:
                _columns.require_same(key, table.column(at), text, text == _MISSING)
            table = table.append_column(key, column) if at < 0 else table.set_column(at, key, column)
        return table

    def close(self) -> None:
        """Closes the files."""
        self._opened.close()


#: Matches a folder value that is a whole number, also with leading zeros (month=01), as for Spark and pyarrow: otherwise the type would
#: depend on the months that are read.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
#: The value in a folder's name if the folder's rows have no value in that column.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def _with_common_strings(table: Any) -> Any:
    """Returns the table with string views, which polars writes, cast to large_string, which all libraries accept."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    for at, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(at, field.name, table.column(at).cast(pa.large_string()))
    return table


def _filtered(table: Any, keep: Any, kinds: Mapping[str, Any]) -> Any:
    """Returns the rows that pass a pyarrow expression. Raises ValueError with `kinds`, the types of the columns that the filters name, if a
    filter's value cannot be compared with its column."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    try:
        return table.filter(keep)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError) as error:
        kinds_of = ", ".join(f"{name} is {kind}" for name, kind in kinds.items())
        raise ValueError(f"filters cannot be applied ({kinds_of}): give values of the columns' types; "
                         f"{str(error).splitlines()[0]}") from None


def _is_remote(file: _files.File) -> bool:
    return _files.on_disk(file.uri) is None


def shown_uri(uri: Uri) -> str:
    """The URI for messages, without passwords and keys."""
    if isinstance(uri, (str, bytes, os.PathLike)):
        return ";".join(map(_files.shown, os.fsdecode(uri).split(";")))
    return "; ".join(_files.shown(os.fsdecode(one)) for one in uri)


def _field_of_both(first: Any, other: Any) -> Any:
    """Returns a field that can hold the values of both fields. Raises ValueError if there is none; the caller prefixes the message with the
    other file's name."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    if first.equals(other):
        return first
    try:
        return pa.unify_schemas([pa.schema([first]), pa.schema([other])], promote_options="permissive").field(0)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        raise ValueError(f"column {first.name!r} is {other.type}, and {first.type} in the files before: convert one, or leave it "
                         "out with exclude=[...]") from None


def _part(one: Slice) -> float:
    """The fraction of its piece that a slice covers."""
    if one.piece.rows <= 0:
        return 1.0
    return ((one.piece.rows if one.end is None else one.end) - one.begin) / one.piece.rows


def _columns_of(filters: Optional[Sequence[Any]]) -> List[str]:
    """Returns the columns named by filters: [(column, op, value), ...], which must all hold, or a list of such lists, at least one of which
    must hold. Raises ValueError for filters of any other form."""
    found: Dict[str, None] = {}
    if filters is not None and (not isinstance(filters, (list, tuple)) or filters and isinstance(filters[0], str)):
        raise ValueError(f"filters={filters!r}: expected a list of (column, operator, value), such as [('year', '>=', 2024)]")
    for group in _groups(filters):
        if not group:
            raise ValueError(f"filters={filters!r}: a list in it is empty")
        for one in group:
            if not isinstance(one, tuple) or len(one) != 3 or not isinstance(one[0], str):
                raise ValueError(f"filters: found {one!r}, expected (column, operator, value), such as ('year', '>=', 2024)")
            found[one[0]] = None
    return list(found)


def _groups(filters: Optional[Sequence[Any]]) -> List[List[Any]]:
    """Returns the filters as a list of groups. A row passes if all conditions of at least one group hold."""
    if not filters:
        return []
    if not isinstance(filters[0], list):
        return [list(filters)]
    return [list(group) if isinstance(group, (list, tuple)) else [group] for group in filters]

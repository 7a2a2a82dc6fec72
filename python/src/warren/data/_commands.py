"""warren data inspect|validate|convert|shard: extends the commands of rabit-data, which handle text, to Parquet, Arrow and CSV."""
import argparse
import contextlib
import dataclasses
import itertools
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from warren._engine import native as _native
from warren._system.printable import printable_lines
from warren.data import _check, _files, _load, _peers, _table
from warren.data._columnar import columns as _columns
from warren.data._columnar import converter as _converter
from warren.data._columnar import formats as _formats
from warren.data._columnar.source import Source, shown_uri

_USAGE = """warren data inspect  DATA [--workers N]     rows, columns, ranges, what each of N workers would read
       warren data validate DATA [--most N]        all problems in it; exit code 1 if there are any
       warren data convert  DATA OUTPUT            the rows as one file: .parquet, .arrow, .feather, .csv, or LibSVM text (.svm, .libsvm, .txt)
       warren data shard    DATA N OUTPUT          the N workers' shares as files in the folder OUTPUT, Parquet or --to arrow, csv, libsvm"""
_TEXT_ENDINGS = (".svm", ".libsvm", ".txt")
#: The maximum number of columns of a text data set that can be converted to a table, in which every row has all columns.
_MOST_COLUMNS = 20000
_ROW_GROUP = 1 << 17


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="warren data", usage=_USAGE, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="DATA is a file, a folder or a pattern, or several of them separated by ';': paths, "
                                     "s3://, "
                                                 "gs://, abfs://, hdfs://, https:// and others.")
    parser.add_argument("command", choices=("inspect", "validate", "convert", "shard"))
    parser.add_argument("words", nargs="+", metavar="DATA", help="the data set, and the command's other arguments (see above)")
    parser.add_argument("--label", action="append", default=[], help="a column; several make several labels")
    parser.add_argument("--weight")
    parser.add_argument("--qid")
    parser.add_argument("--features", help="comma-separated columns or patterns. Default: all others")
    parser.add_argument("--exclude", help="comma-separated columns or patterns that are not features")
    parser.add_argument("--categorical", help="comma-separated columns of words or numbers that are categories")
    parser.add_argument("--format", choices=("parquet", "arrow", "csv", "libsvm", "libfm"), help="format of DATA. Default: by names and "
                        "contents")
    parser.add_argument("--delimiter", help="delimiter of CSV. Default: a tab if the name ends in .tsv, else a comma")
    parser.add_argument("--shuffle", type=int, metavar="SEED")
    parser.add_argument("--workers", type=int, default=1, help="inspect: number of workers that share it")
    parser.add_argument("--most", type=int, default=20, help="validate: most problems to show")
    parser.add_argument("--to", choices=("parquet", "arrow", "csv", "libsvm"), help="shard: format to write")
    parser.add_argument("--overwrite", action="store_true", help="convert and shard: overwrite existing files")
    return parser


def _wanted(given: argparse.Namespace, uri: str) -> _load.Wanted:
    def listed(text: Optional[str]) -> Optional[List[str]]:
        return text.split(",") if text else None
    return _load.Wanted(uri, label=given.label or None, weight=given.weight, qid=given.qid, features=listed(given.features),
                        exclude=listed(given.exclude), categorical=listed(given.categorical), format=given.format,
                        delimiter=given.delimiter, shuffle=given.shuffle)


def is_columns(words: Sequence[str]) -> bool:
    """Whether this module runs a command with these arguments: it is for files with named columns, or its arguments are invalid. Otherwise
    the native program runs it. May list the data set's files and read the first bytes of one."""
    # All options except these flags take a value, which may be the next word.
    flags = ("--overwrite", "-h", "--help")
    paths = [word for before, word in zip(words, words[1:]) if not word.startswith("-")
             and (not before.startswith("--") or "=" in before or before in flags)]
    if any(word.split("=")[0] in ("--label", "--format", "--features", "--exclude") for word in words):
        return True
    if words[:1] == ["convert"] and len(paths) > 1 and _formats.by_name(paths[1]):
        return True
    if words[:1] == ["shard"] and "--to" in words and words[words.index("--to") + 1:][:1] in (["parquet"], ["arrow"]):
        return True
    try:
        return bool(paths) and words[0] in ("inspect", "validate", "convert", "shard") and not _load.Wanted(paths[0]).is_text
    except ValueError:
        return True


def run(words: Sequence[str]) -> int:
    """Runs a command, and returns the exit code. Raises ValueError, OSError or ImportError if the command fails, and SystemExit after
    printing help or for an invalid option."""
    given = _parser().parse_args(list(words))
    wanted = _wanted(given, given.words[0])
    counts = {"inspect": 1, "validate": 1, "convert": 2, "shard": 3}
    if len(given.words) != counts[given.command]:
        raise ValueError(f"{given.command} takes {counts[given.command]} argument{'s' * (counts[given.command] > 1)}: {_USAGE}")
    if given.command == "inspect":
        return _inspect(given, wanted)
    if given.command == "validate":
        return _validate(given, wanted)
    if given.command == "convert":
        kind = _kind_of_output(given.words[1], given.to)
        if not given.overwrite and _files.existing(given.words[1], whole=True):
            raise FileExistsError(f"{_files.shown(given.words[1])}: already exists: --overwrite replaces it")
        _written(given.words[1], kind, _rows(wanted, _peers.Alone(), kind))
        return 0
    if not given.words[1].isdigit() or int(given.words[1]) < 1:
        raise ValueError(f"shard: found {given.words[1]!r}, expected a number of parts")
    return _shard(given, wanted, int(given.words[1]), given.words[2])


def _inspect(given: argparse.Namespace, wanted: _load.Wanted) -> int:
    if given.workers < 1:
        raise ValueError(f"--workers {given.workers}: expected at least 1")
    start = time.monotonic()
    found, size, categories, width = [], 0, {}, 0
    if not wanted.is_text:
        # All shares must have the same categories.
        with contextlib.closing(wanted.source(_peers.Alone())) as source:
            categories = _converter.Converter(source, None).categories.values
            size = sum(file.size for file in source.files)
            print(f"{len(source.files):,} files, {len(source.pieces):,} pieces ({source.format_name}), {size / 1e6:,.1f} MB")
        wanted.categories = categories or None
    for rank in range(given.workers):
        summary: Optional[_check.Summary] = None
        tables, empty = _tables(wanted, _peers.of(rank, given.workers))
        for table in itertools.chain([empty()], tables):
            one, width = _check.summary(table), int(table.features.shape[1])
            summary = one if summary is None else _check.added(summary, one)
        assert summary is not None
        found.append(summary)
    print(_check.report(shown_uri(wanted.uri), width, found, categories))
    seconds = time.monotonic() - start
    print(f"read in {seconds:.2f} s" + (f", {size / 1e6 / seconds:,.0f} MB/s" if size else ""))
    return 0


def _tables(wanted: _load.Wanted, peers: _peers.Peers) -> Tuple[Iterator[_table.Table], Callable[[], _table.Table]]:
    """Returns the tables of a share, and a function that makes an empty table with the same columns. Raises ValueError if text has too many
    columns for a table."""
    if wanted.is_text:
        table = wanted.text(peers)
        if table.features.shape[1] > _MOST_COLUMNS:
            raise ValueError(f"{shown_uri(wanted.uri)}: has {table.features.shape[1]:,} columns; a table has at most {_MOST_COLUMNS:,}: "
                             "keep the data as text")
        step = max(1, (64 << 20) // (8 * max(1, table.features.shape[1])))
        return (_table.cut_out(table, at, at + step) for at in range(0, len(table), step)), lambda: _table.cut_out(table, 0, 0)
    source = wanted.source(peers)
    converter = _converter.Converter(source, wanted.categories)

    def tables() -> Iterator[_table.Table]:
        with contextlib.closing(source), contextlib.closing(_load.bar(source, True)) as shown:
            for batch in source.batches(converter.layout.read()):
                yield converter.table(batch)
                shown(len(batch.table), _converter.share_of(batch))
    return tables(), converter.empty


def _validate(given: argparse.Namespace, wanted: _load.Wanted) -> int:
    """Checks the columns of all files, and then all values. Prints up to --most problems instead of only the first. Returns the exit code."""
    findings: Dict[str, None] = {}  # an ordered set, since the same problem may be found several times
    count = 0

    def note(error: Exception) -> None:
        nonlocal count
        if str(error) in findings:
            return
        count += 1
        if len(findings) < given.most:
            findings[str(error)] = None

    if wanted.is_text:
        raise ValueError("this is text: rabit-data validate")
    rows = 0
    files = _files.find(wanted.uri, storage_options=wanted.options.storage_options)

    def alone(file: _files.File) -> Source:
        """Opens a single file of the data set; its folder columns have the same types as in the whole data set."""
        return wanted.source(_peers.Alone(), files=[file], of_all=files)

    good: List[_files.File] = []
    first: Optional[_columns.Layout] = None
    for file in files:
        try:
            with contextlib.closing(alone(file)) as source:
                layout = source.layout
        except (ValueError, OSError) as error:
            note(error)
            continue
        try:
            _columns.agreed(first or layout, layout)
            first = first or layout
            good.append(file)
        except ValueError as error:
            note(ValueError(f"{_files.shown(file.uri)}: {error}"))
    if good:
        try:
            with contextlib.closing(wanted.source(_peers.Alone(), files=good, of_all=files)) as source:
                rows = _looked_through(source, note)
        except (ValueError, OSError) as error:
            note(error)
    for words in findings:
        print(printable_lines(words))
    if count > len(findings):
        print(f"and {count - len(findings)} more")
    print(f"{rows:,} rows in {len(files):,} files: {count} problem{'s' * (count != 1)} found" if count else
          f"{rows:,} rows in {len(files):,} files: no problems found")
    return 1 if count else 0


def _looked_through(source: Source, note: Callable[[Exception], None]) -> int:
    """Reads all values, and passes the first problem of each batch to `note`. After an error in reading a piece or its categories, the rest
    of the piece is not read. Returns the number of rows."""
    found: Dict[str, Dict[Any, Any]] = {name: {} for name in _converter.categorical(source)}
    readable = []
    for one in source.slices:
        try:
            for batch in source.batches_of(one, list(found)) if found else ():
                _converter.add_categories(source, batch, found)
            readable.append(one)
        except (ValueError, OSError) as error:
            note(error)
    converter = _converter.Converter(source, {name: _columns.in_order(orders) for name, orders in found.items()})
    rows = 0
    for one in readable:
        try:
            for batch in source.batches_of(one, converter.layout.read()):
                rows += len(batch.table)
                try:
                    converter.table(batch)
                except ValueError as error:
                    note(error)
        except (ValueError, OSError) as error:
            note(error)
    for file, queries in converter.own_queries().items():
        try:
            converter.require_together(file, queries)
        except ValueError as error:
            note(error)
    return rows


class _Numbering:
    """Numbers the queries of several shares one after the other. A share's tables number theirs from 0, and a query that ends a file would
    go on in the next file if that began with the same number."""

    def __init__(self) -> None:
        self._count = 0  # the number of queries of the shares so far

    def of_share(self, tables: Iterator[_table.Table]) -> Iterator[_table.Table]:
        """Yields the tables of the next share, with their queries numbered after those of the shares before it."""
        first = self._count
        for table in tables:
            if table.qid is not None and len(table):
                qid = table.qid + first
                table, self._count = dataclasses.replace(table, qid=qid), int(qid[-1]) + 1
            yield table


def _rows(wanted: _load.Wanted, peers: _peers.Peers, kind: str, numbering: Optional[_Numbering] = None) -> Iterator[Any]:
    """Yields a share as tables to be written to a file of this kind: Tables for LibSVM text, else pyarrow tables, whose columns keep their
    stored types unless the data set is text. Yields at least one table, which is empty if the share has no rows. `numbering` numbers the
    queries of LibSVM text, and of the rows of text; other tables keep their stored queries."""
    if kind == "libsvm" or wanted.is_text:
        tables, empty = _tables(wanted, peers)
        tables = (numbering or _Numbering()).of_share(tables)
        first = next(tables, None)
        for table in itertools.chain([empty() if first is None else first], tables):
            yield table if kind == "libsvm" else _arrow(table)
        return
    with contextlib.closing(wanted.source(peers, as_stored=True)) as source, contextlib.closing(_load.bar(source, True)) as shown:
        # An Arrow file has one dictionary for each dictionary column, which must be known before the first row is written.
        names = source.layout.read()
        dictionaries = _dictionaries(wanted, peers, source) if kind == "arrow" else {}
        given = False
        for batch in source.batches(names):
            given = True
            yield _with_dictionaries(batch.table, dictionaries)
            shown(len(batch.table), _converter.share_of(batch))
        if not given:
            yield _with_dictionaries(source.stored_schema(names).empty_table(), dictionaries)


def _dictionaries(wanted: _load.Wanted, peers: _peers.Peers, source: Source) -> Dict[str, Any]:
    """Returns the values of all dictionary columns of a share, sorted, as pyarrow arrays. Reads these columns once."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    kinds = {field.name: field.type for field in source.stored_schema(source.layout.read()) if pa.types.is_dictionary(field.type)}
    found: Dict[str, List[Any]] = {name: [] for name in kinds}
    if found:
        with contextlib.closing(wanted.source(peers, as_stored=True)) as again:
            for batch in again.batches(list(found)):
                for name, parts in found.items():
                    parts.extend(_columns.used(batch.table.column(name)))
    return {name: _columns.sorted_once(parts, kinds[name]) for name, parts in found.items()}


def _with_dictionaries(table: Any, dictionaries: Mapping[str, Any]) -> Any:
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    for name, values in dictionaries.items():
        kind = table.schema.field(name).type.value_type
        parts = [_columns.places(chunk, values) for chunk in table.column(name).chunks]
        column = pa.DictionaryArray.from_arrays(pa.concat_arrays(parts) if parts else pa.array([], pa.int32()), values.cast(kind))
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _shard(given: argparse.Namespace, wanted: _load.Wanted, parts: int, output: str) -> int:
    kind = given.to or "parquet"
    ending = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "libsvm": "svm"}[kind]
    if not wanted.is_text and kind == "libsvm":
        with contextlib.closing(wanted.source(_peers.Alone())) as source:
            wanted.categories = _converter.Converter(source, None).categories.values or None
    place, written = _files.on_disk(output), []
    local = place is not None
    if place is not None:
        output = place
        os.makedirs(output, exist_ok=True)
    before = _files.existing(output, whole=False)
    if before and not given.overwrite:
        raise FileExistsError(f"{_files.shown(output)}: holds parts of another run, such as {before[0]}: --overwrite replaces them")
    names = [_files.part_name(part, parts, ending) for part in range(parts)]
    stale = [name for name in before if name not in names]
    if stale and not local:
        raise FileExistsError(f"{_files.shown(output)}: holds parts of another run that this one would not replace, such as {stale[0]}: "
                              "remove them first")
    numbering = _Numbering()
    try:
        for part, name in enumerate(names):
            written.append(name)
            _written(f"{output.rstrip('/')}/{name}", kind, _rows(wanted, _peers.of(part, parts), kind, numbering))
    except BaseException:
        for name in set(written) - set(before):
            with contextlib.suppress(OSError):  # the first error is the one to show
                _files.remove(f"{output.rstrip('/')}/{name}")
        raise
    for name in set(before) - set(written) if local else ():
        os.unlink(os.path.join(output, name))
    return 0


def _kind_of_output(path: str, given: Optional[str]) -> str:
    kind = given or _formats.by_name(path) or ("libsvm" if path.endswith(_TEXT_ENDINGS) else None)
    if kind is None:
        raise ValueError(f"{path}: expected a name that ends in .parquet, .arrow, .feather, .csv, {', '.join(_TEXT_ENDINGS)}, or --to")
    if kind == "csv" and not path.endswith(".csv"):
        raise ValueError(f"{path}: CSV is written uncompressed and with commas: use a name that ends in .csv")
    return kind


def _written(path: str, kind: str, rows: Iterator[Any]) -> None:
    """Writes one file, which appears once it is complete."""
    with _files.open_output(path) as file:
        if kind == "libsvm":
            for table in rows:
                file.write(_libsvm(table).encode())
            return
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        from pyarrow import csv, parquet  # pylint: disable=import-outside-toplevel

        first = next(rows)
        make: Dict[str, Callable[[], Any]] = {
            "parquet": lambda: parquet.ParquetWriter(file, first.schema), "csv": lambda: csv.CSVWriter(file, first.schema),
            "arrow": lambda: pa.ipc.new_file(file, first.schema, options=pa.ipc.IpcWriteOptions(unify_dictionaries=True))}
        with make[kind]() as writer:
            for table in itertools.chain([first], rows):
                if kind == "csv":
                    _require_lines(path, table)
                writer.write_table(table, _ROW_GROUP)


def _require_lines(path: str, table: Any) -> None:
    """Raises ValueError for a line end in a cell or a column's name, since no reader of CSV lines would find the row again."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel
    import pyarrow.compute as pc  # pylint: disable=import-outside-toplevel

    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        types = pa.types
        text = any(is_so(column.type) for is_so in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))
        if set("\r\n") & set(name) or text and pc.any(pc.match_substring_regex(column, "[\r\n]")).as_py():  # pylint: disable=no-member
            raise ValueError(f"{_files.shown(path)}: column {name!r} has text with a line end, which CSV for Warren cannot contain: write "
                             "Parquet, or leave the column out with --exclude")


def _arrow(table: _table.Table) -> Any:
    """Returns a pyarrow table. The columns `label`, `weight`, `qid` and `base_margin` come before the features (`label_0`, `label_1`, ...
    if there are several), with `_of_row` appended to a name that is also a feature's. Missing values are null, and categorical features
    become dictionary columns."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    columns: Dict[str, Any] = {}
    for name, array in (("label", table.label), ("weight", table.weight), ("qid", table.qid), ("base_margin", table.base_margin)):
        if array is not None:
            several = array.ndim > 1
            for at in range(array.shape[1] if several else 1):
                columns[f"{name}_{at}" if several else name] = pa.array(array[:, at] if several else array)
    features = table.features
    if not isinstance(features, np.ndarray):
        features = features.tocsc()
    names = table.names or [f"f{at}" for at in range(features.shape[1])]
    taken = set(columns) & set(names)
    if taken:
        columns = {f"{name}_of_row" if name in taken else name: array for name, array in columns.items()}
    for at, name in enumerate(names):
        if isinstance(features, np.ndarray):
            values, missing = features[:, at], np.isnan(features[:, at])
        else:
            begin, end = features.indptr[at], features.indptr[at + 1]
            values, missing = np.zeros(features.shape[0], "float32"), np.ones(features.shape[0], bool)
            values[features.indices[begin:end]], missing[features.indices[begin:end]] = features.data[begin:end], False
        if name in table.categories:
            codes = pa.array(np.where(missing, 0, values).astype("int32"), mask=missing)
            columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(table.categories[name]))
        else:
            columns[name] = pa.array(values, mask=missing)
    return pa.table(columns)


def _libsvm(table: _table.Table) -> str:
    """Returns the rows as text. Categories are written as their codes, missing values are left out, and other values have enough digits to
    be read back exactly as float32."""
    import scipy.sparse  # pylint: disable=import-outside-toplevel

    if isinstance(table.features, np.ndarray):
        there = ~np.isnan(table.features)
        rows, indices = np.nonzero(there)
        values, ends = table.features[there], np.searchsorted(rows, np.arange(len(table) + 1))
    else:
        matrix = scipy.sparse.csr_matrix(table.features)
        indices, values, ends = matrix.indices, matrix.data, matrix.indptr
    lines = []
    labels = np.zeros(len(table), "float32") if table.label is None else table.label
    for row in range(len(table)):
        label = ",".join(str(value) for value in np.atleast_1d(labels[row]))
        weight = "" if table.weight is None else f":{table.weight[row]!s}"
        qid = "" if table.qid is None else f" qid:{table.qid[row]}"
        cells = "".join(f" {index}:{value!s}" for index, value in zip(indices[ends[row]:ends[row + 1]], values[ends[row]:ends[row + 1]]))
        lines.append(f"{label}{weight}{qid}{cells}\n")
    return "".join(lines)


def main(words: Sequence[str]) -> int:
    """Runs `warren data ...`, or the package's rabit-data, and returns the exit code. For text, and for the help of rabit-data, replaces this
    process with the native program."""
    try:
        of_text = os.path.basename(sys.argv[0]).startswith("rabit-data")
        asks = not words or any(word in ("-h", "--help") for word in words)
        if of_text and asks or not asks and not is_columns(words):
            _native.run("rabit-data", list(words))
        return run(words)
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"warren data: {printable_lines(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130

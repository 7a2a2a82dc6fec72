"""File formats with named columns, read by pyarrow: a class for each format, listed in FORMATS."""
import base64
import contextlib
import functools
import re
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from warren.data import _files
from warren.data._columnar.pieces import Piece

#: The number of rows that are decoded at a time.
BATCH_ROWS = 65536
#: The intended total number of ranges into which the CSV files of a data set are divided, and the limits of a range's size, which take
#: precedence: smaller ranges would be dominated by overhead, larger ones would need too much memory. The ranges, and thus the order of
#: rows, depend only on the data set.
_CSV_RANGES, _CSV_LEAST_BYTES, _CSV_MOST_BYTES = 1024, 1 << 16, 16 << 20
#: The number of bytes examined to find the columns of a CSV file.
_CSV_FIRST_BYTES = 1 << 20
#: The number of bytes of a compressed CSV file's text that are decompressed at a time, and the number of bytes of text parsed at a time.
_CSV_BLOCK_BYTES, _CSV_PARSED_BYTES = 8 << 20, 1 << 20
#: The words that mean a missing value in CSV, as for pyarrow and pandas; so does an empty cell.
CSV_MISSING = ("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a",
               "nan", "null")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Arrow files with at most this many record batches may have to be cut within a batch, for which the row counts of the batches are needed.
_FEW_BATCHES = 16


class Contents(NamedTuple):
    """A file's metadata."""

    schema: Any  #: pyarrow.Schema
    pieces: List[Piece]
    guessed: Tuple[str, ...] = ()  #: CSV columns without a value in the examined rows, whose type in `schema` is arbitrary
    hint: str = ""  #: a possible cause of an error in the columns


class Reading(NamedTuple):
    """The settings with which files are read."""

    storage_options: Optional[Mapping[str, Any]]
    delimiter: str  #: the CSV delimiter; "" chooses it by the file's name
    types: Mapping[str, Any]  #: the types of CSV columns, which the files do not contain
    csv_bytes: int  #: the size of the ranges into which CSV files are divided
    words: Tuple[str, ...] = ()  #: CSV columns that are read as text, so that 007 stays 007
    present: Tuple[Tuple[str, str], ...] = ()  #: CSV columns and words of CSV_MISSING that are not missing values in these columns
    few_files: bool = False  #: whether there are so few files per worker that cuts within Arrow's record batches are needed


def csv_range(total: int) -> int:
    """The size of the ranges of CSV files in a data set of this many bytes."""
    return min(max(total // _CSV_RANGES, _CSV_LEAST_BYTES), _CSV_MOST_BYTES)


def settled(contents: Mapping[int, Contents]) -> Dict[int, Contents]:
    """Returns the contents, by file number. A guessed column then has the type that it has in the first file in which it is not guessed. A
    pure function."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel

    if not any(one.guessed for one in contents.values()):
        return dict(contents)
    known: Dict[str, Any] = {}
    for number in sorted(contents):
        for field in contents[number].schema:
            if field.name not in contents[number].guessed:
                known.setdefault(field.name, field.type)

    def of_one(one: Contents) -> Contents:
        types = {field.name: field.type for field in one.schema}
        types.update((name, known.get(name, types[name])) for name in one.guessed)
        return one._replace(schema=pa.schema([(name, types[name]) for name in one.schema.names])) if one.guessed else one
    return {number: of_one(one) for number, one in contents.items()}


class Format:
    """An open file of some format, used by one thread. `kept` is the attribute `kept` of an earlier object for the same file, or None."""

    name = ""
    suffixes: Tuple[str, ...] = ()
    magic = b""  #: the magic number at the beginning of a file; empty if the format has none

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        self.file, self.number, self.reading = file, number, reading
        #: Data that need not be read again when the file is reopened, and their approximate size.
        self.kept: Any = kept
        self.kept_bytes = 0

    def contents(self, keep: Any) -> Contents:
        """Returns the contents. May omit pieces in which, according to the metadata, no row can pass `keep` (a pyarrow expression, or None)."""
        raise NotImplementedError

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        """Yields record batches of a piece's rows, in order."""
        raise NotImplementedError

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        """The position of a piece within its file, for messages. The file need not be open."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the file; it can no longer be read."""


class Parquet(Format):
    """Parquet files. Pieces are row groups. Dictionary columns with values other than words, which pyarrow reads as plain values, are restored
    as dictionaries."""

    name, suffixes, magic = "parquet", (".parquet", ".parq", ".pq"), b"PAR1"

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        super().__init__(file, number, reading, kept)
        self._source = _files.open_arrow(file, storage_options=reading.storage_options)
        with _closed_on_error(self._source):
            if self.kept is None:
                first = self._source.read_at(len(self.magic), 0) if file.size >= len(self.magic) else b""
                if first != self.magic:
                    raise ValueError(f"begins with {bytes(first)!r}, which no Parquet file does: leave it out with a pattern such as "
                                     "*.parquet, or give its format with format=")
                self.kept = self._reader().metadata
        self.kept_bytes = self.kept.serialized_size

    def _reader(self) -> Any:
        """Returns a new reader for each use, since a reader keeps all data that it has read ahead in memory for its whole life."""
        import pyarrow.parquet as pq  # pylint: disable=import-outside-toplevel

        # pre_buffer combines many small reads into a few large ones, which are faster with object stores.
        return pq.ParquetFile(self._source, metadata=self.kept, pre_buffer=True)

    def contents(self, keep: Any) -> Contents:
        metadata, schema = self.kept, self._reader().schema_arrow
        stored = schema
        for name, kind in self._dictionaries(schema).items():
            at = stored.get_field_index(name)
            stored = stored.set(at, stored.field(at).with_type(kind))
        numbers: Sequence[int] = range(metadata.num_row_groups)
        if keep is not None:
            import pyarrow.dataset as ds  # pylint: disable=import-outside-toplevel  # imports pandas, too

            # Folder names are not columns of the file; the conditions on them have been evaluated already.
            fragment = ds.ParquetFileFormat().make_fragment(self._source)
            numbers = [group.id for group in fragment.subset(keep, schema=schema).row_groups]
        groups = ((number, metadata.row_group(number)) for number in numbers)
        return Contents(stored, [Piece(self.number, number, group.num_rows, max(group.total_byte_size, 1))
                                 for number, group in groups])

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        reader = self._reader()
        dictionaries = self._dictionaries(reader.schema_arrow)
        for batch in reader.iter_batches(BATCH_ROWS, row_groups=[piece.place], columns=list(columns)):
            names = batch.schema.names
            if not dictionaries.keys().isdisjoint(names):
                arrays = [array.dictionary_encode() if name in dictionaries else array for name, array in zip(names, batch.columns)]
                batch = pa.RecordBatch.from_arrays(arrays, names=names)
            yield batch

    def _dictionaries(self, schema: Any) -> Dict[str, Any]:
        """The dictionary types, by name, of columns that were written as dictionaries, according to the file's metadata, but are plain in
        `schema`."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        noted = (self.kept.metadata or {}).get(b"ARROW:schema")
        try:
            written = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(noted))) if noted else ()
        except (ValueError, OSError):
            written = ()  # pyarrow reports the problem, or ignores it
        types = {field.name: field.type for field in schema}
        return {field.name: pa.dictionary(pa.int32(), types[field.name]) for field in written
                if pa.types.is_dictionary(field.type) and field.type.value_type == types.get(field.name) and schema.names.count(field.name) == 1}

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        return f"row group {piece.place}"

    def close(self) -> None:
        self._source.close()


class Arrow(Format):
    """Arrow IPC files, including Feather. Pieces are record batches, whose row counts are known only once they have been read. If there are
    few files, one column of the batches is read to find their row counts, unless the file has many batches."""

    name, suffixes, magic = "arrow", (".arrow", ".feather", ".ipc"), b"ARROW1"
    _stream_mark = b"\xff\xff\xff\xff"  #: what each message of an Arrow stream begins with

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        super().__init__(file, number, reading, kept)
        self._source = _files.open_arrow(file, storage_options=reading.storage_options)
        with _closed_on_error(self._source):
            if file.size >= 8 and bytes(self._source.read_at(len(self._stream_mark), 0)) == self._stream_mark:
                raise ValueError("is an Arrow stream, expected an Arrow file (Feather), whose batches can be read in any order: convert "
                                 "it, for example with pyarrow.feather.write_feather(pyarrow.ipc.open_stream(STREAM).read_all(), FILE)")
            self._reader = pa.ipc.open_file(self._source)
        self._columns: Tuple[str, ...] = ()
        self._reader_of_columns: Any = None

    def contents(self, keep: Any) -> Contents:
        count = self._reader.num_record_batches
        rows = [-1] * count
        if self.reading.few_files and count <= _FEW_BATCHES:
            one_column = self._reading_only(self._reader.schema.names[:1])
            rows = [one_column.get_batch(k).num_rows for k in range(count)]  # reads this column: the footer has no row counts
        ends = [self.file.size * k // count for k in range(count + 1)] if count else []
        return Contents(self._reader.schema, [Piece(self.number, k, rows[k], max(ends[k + 1] - ends[k], 1)) for k in range(count)])

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        yield self._reading_only(columns).get_batch(piece.place).select(list(columns))

    def _reading_only(self, columns: Sequence[str]) -> Any:
        """A reader that reads only the bytes of these columns. The last one made is kept."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        if self._reader_of_columns is None or self._columns != tuple(columns):
            fields = sorted(self._reader.schema.get_field_index(column) for column in columns)
            options = pa.ipc.IpcReadOptions(included_fields=fields)
            self._columns, self._reader_of_columns = tuple(columns), pa.ipc.open_file(self._source, options=options)
        return self._reader_of_columns

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        return f"record batch {piece.place}"

    def close(self) -> None:
        self._source.close()


@contextlib.contextmanager
def _closed_on_error(source: Any) -> Iterator[None]:
    try:
        yield
    except BaseException:
        source.close()
        raise


class Csv(Format):
    """CSV with a header line. Pieces are byte ranges; a range contains the rows that begin in it. A file whose first bytes show that it is
    compressed is one piece, whatever its name. Lines end with LF or CR LF. No cell contains a line end, not even a quoted one, so that a
    range can begin at any line. `kept` contains the column names, the numbers of bytes and lines up to the end of the header, and the
    compression."""

    name, suffixes = "csv", (".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".tsv", ".tsv.gz", ".tsv.zst", ".tsv.bz2")
    _endings = ("", ".gz", ".zst", ".bz2")
    #: Patterns for the magic numbers of compressed files. Text can also begin with BZh or PAR1, so more bytes of these formats are compared.
    _codecs = {rb"\x1f\x8b": "gzip", rb"\x28\xb5\x2f\xfd": "zstd", rb"BZh[1-9]1AY&SY": "bz2"}
    _others = {rb"\xfd7zXZ\x00": "compressed with xz", rb"PK\x03\x04": "a ZIP archive", rb"\x04\x22\x4d\x18": "compressed with LZ4",
               rb"PAR1\x15": "a Parquet file", rb"ARROW1\x00": "an Arrow file"}

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        super().__init__(file, number, reading, kept)
        self._ranges = _files.Ranges(file, storage_options=reading.storage_options)
        self._codec: Optional[str] = None if kept is None else kept[3]
        by_its_name = "\t" if any(_ends_with(file.uri, ".tsv" + ending) for ending in self._endings) else ","
        self._delimiter = reading.delimiter or by_its_name

    @staticmethod
    def is_compressed(piece: Piece) -> bool:
        """Whether a piece is a compressed file. The pieces of other files begin after the header line, so not at byte 0."""
        return piece.begin == 0

    def _text(self, begin: int, end: int) -> bytes:
        return self._ranges.read_at(begin, min(end, self.file.size) - begin)

    def _decompressed(self, content: bytes) -> Any:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        return pa.input_stream(pa.BufferReader(content), compression=self._codec)

    def _first(self, most: int, content: bytes = b"") -> Tuple[bytes, bool]:
        """Returns the first bytes of the file's text, and whether they are the whole text. Detects the compression. `content`: the contents of
        a compressed file, if they have been read already. Raises ValueError if the file has another format or compression."""
        first = content[:most] or self._text(0, most)
        for begin, what in self._others.items():
            if re.match(begin, first):
                raise ValueError(f"is {what}, expected CSV text, plain or compressed with gzip, zstd or bzip2")
        self._codec = next((codec for begin, codec in self._codecs.items() if re.match(begin, first)), None)
        if not self._codec:
            return first, self.file.size <= len(first)
        with self._decompressed(content or self._text(0, self.file.size)) as stream:
            first = stream.read(most)
        return first, len(first) < most

    def _parsed(self, text: bytes, types: Mapping[str, Any], columns: Optional[Sequence[str]], before: Callable[[], int], of: str) -> Any:
        """Parses whole lines, without the header line, as one pyarrow table. Raises ValueError with the line and the column's name.
        `before` returns the number of lines before the text; `of` follows a line number, such as " of this range"."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        problem, table = "", None
        try:
            # In several blocks, a quoted cell that ends a block without its closing quote would count as a row.
            table = csv.read_csv(pa.BufferReader(text),
                                 csv.ReadOptions(use_threads=False, column_names=self.kept[0], block_size=len(text) + 1),
                                 csv.ParseOptions(delimiter=self._delimiter),
                                 csv.ConvertOptions(column_types=dict(types), null_values=["", *CSV_MISSING], include_columns=columns,
                                                    strings_can_be_null=not self.reading.present))
        except pa.ArrowInvalid as error:
            problem = str(error)
        # pyarrow ends a quoted cell at a later line, or at the end of the text, without an error.
        if b'"' in text and (table is None or len(table) != rows_of(text) or unclosed(text[last_line(text):], self._delimiter)):
            line = unclosed(text, self._delimiter)
            if line:
                raise ValueError(f"line {before() + line}{of}: a quoted cell does not end on this line: a cell cannot contain a line end, "
                                 "and a quotation mark at the beginning of a cell needs another at its end: correct the line, or convert "
                                 "the file to Parquet, for example with pandas")
            problem = problem or f"found another number of rows than lines, {rows_of(text)}"
        if problem:
            raise ValueError(explained(problem, self.kept[0], text, before(), of))
        return self._with_missing_words(table) if self.reading.present else table

    def _with_missing_words(self, table: Any) -> Any:
        """Replaces words that mean a missing value by null, column by column; pyarrow's own replacement is the same for all columns."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        import pyarrow.compute as pc  # pylint: disable=import-outside-toplevel

        for at, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                words = ["", *(word for word in CSV_MISSING if (field.name, word) not in self.reading.present)]
                column = table.column(at)
                missing = pc.is_in(column, value_set=pa.array(words))  # pylint: disable=no-member
                column = pc.if_else(missing, pa.scalar(None, field.type), column)  # pylint: disable=no-member
                table = table.set_column(at, field, column)
        return table

    def _tables(self, text: bytes, types: Mapping[str, Any], columns: Sequence[str], before: Callable[[], int], of: str) -> Iterator[Any]:
        """Like `_parsed`, some lines at a time."""
        begin = 0
        while begin < len(text):
            end = text.find(b"\n", begin + _CSV_PARSED_BYTES) + 1 or len(text)
            block = text[begin:end]
            if block.strip():
                yield self._parsed(block, types, columns, functools.partial(lambda first: before() + text.count(b"\n", 0, first), begin), of)
            begin = end

    def _blocks(self, content: bytes) -> Iterator[Tuple[int, bytes]]:
        """Yields the text of a compressed file, without the header line, as blocks of whole lines with their offsets."""
        with self._decompressed(content) as stream:
            at = len(stream.read(self.kept[1]))
            parts: List[bytes] = []
            while True:
                more = stream.read(_CSV_BLOCK_BYTES)
                end = more.rfind(b"\n") + 1
                if end or not more:
                    block = b"".join([*parts, more[:end]])
                    yield at, block
                    at += len(block)
                    parts = []
                if not more:
                    return
                parts.append(more[end:])

    def _header(self, first: bytes, whole: bool) -> int:
        """Sets `kept` if it is not set yet. Returns the offset of the first row."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        if self.kept is None:
            begin, end = line_of_names(first, whole)
            if unclosed(first[begin:end], self._delimiter):
                raise ValueError("a quoted name does not end on the header line")
            found = csv.read_csv(pa.BufferReader(first[begin:end].rstrip(b"\r\n") + b"\n"),
                                 parse_options=csv.ParseOptions(delimiter=self._delimiter))
            self.kept = list(found.column_names), end, first.count(b"\n", 0, end), self._codec
        return int(self.kept[1])

    def contents(self, keep: Any) -> Contents:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        if self.file.size == 0:
            raise ValueError("is empty, expected a header line")
        first, whole = self._first(_CSV_FIRST_BYTES)
        header = self._header(first, whole)
        rows = first[header:] if whole else first[header:first.rfind(b"\n") + 1]
        if self._codec:
            pieces = [Piece(self.number, 0, -1, self.file.size)] if rows.strip() or not whole else []
        else:
            begins = range(header, self.file.size, self.reading.csv_bytes)
            pieces = [Piece(self.number, k, -1, min(self.reading.csv_bytes, self.file.size - begin), begin)
                      for k, begin in enumerate(begins)]
        words = {name: pa.string() for name in self.reading.words}
        schema = pa.schema([(name, words.get(name, pa.null())) for name in self.kept[0]])
        if rows.strip():
            schema = self._parsed(rows, words, None, lambda: int(self.kept[2]), "").schema
        # A column without values in these rows may have values later.
        guessed = tuple(field.name for field in schema if pa.types.is_null(field.type))
        return Contents(pa.schema([(field.name, pa.float64() if field.name in guessed else field.type) for field in schema]), pieces,
                        guessed, self._hint())

    def _hint(self) -> str:
        """Returns a hint if the table seems to have only one column because the delimiter is wrong, else ""."""
        names = self.kept[0]
        likely = [one for one in ",;\t|" if one != self._delimiter and one in names[0]] if len(names) == 1 else []
        return f"; the header line has no {self._delimiter!r}: did you mean delimiter={likely[0]!r}?" if likely else ""

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        content = self._text(0, self.file.size) if self.is_compressed(piece) else b""
        if not self.kept:
            first, whole = self._first(_CSV_LEAST_BYTES, content)
            if not whole and b"\n" not in first.lstrip():
                first, whole = self._first(_CSV_FIRST_BYTES, content)
            self._header(first, whole)
        if content:
            # The text is read in blocks; without types, pyarrow would infer them from each block alone.
            types = {**{name: pa.string() for name in columns}, **self.reading.types}
            for at, block in self._blocks(content):
                for table in self._tables(block, types, columns, functools.partial(self._lines_before, content, at), ""):
                    yield from table.to_batches(BATCH_ROWS)
            return
        # Reading starts one byte before the range: if that byte ends a line, a row begins at the start of the range.
        begin, end = piece.begin - 1, piece.begin + piece.size - 1
        text = self._text(begin, end)
        while end < self.file.size:
            more = self._text(end, end + _CSV_LEAST_BYTES)
            line = more.find(b"\n") + 1
            text += more[:line] if line else more
            if line:
                break
            end += len(more)
        # If the text contains no line end, no row begins in this range.
        text = text[text.find(b"\n") + 1 or len(text):]
        for table in self._tables(text, self.reading.types, columns, lambda: 0, " of this range"):
            yield from table.to_batches(BATCH_ROWS)

    def _lines_before(self, content: bytes, end: int) -> int:
        """The number of lines of a compressed file's text before an offset, for messages. Decompresses the file once more."""
        count = 0
        with self._decompressed(content) as stream:
            while end > 0:
                text = stream.read(min(end, _CSV_BLOCK_BYTES))
                count, end = count + text.count(b"\n"), end - len(text)
        return count

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        return "the file" if Csv.is_compressed(piece) else f"bytes {piece.begin} to {piece.begin + piece.size}"

    def close(self) -> None:
        self._ranges.close()


def line_of_names(first: bytes, whole: bool) -> Tuple[int, int]:
    """Returns the offsets of the beginning and end of the first line that is not blank. `first` contains the first bytes of a CSV file, or all
    of them if `whole`. Raises ValueError if `first` has no such complete line, or if lines end with CR. A pure function."""
    begin = len(_BYTE_ORDER_MARK) if first.startswith(_BYTE_ORDER_MARK) else 0
    while True:
        end = first.find(b"\n", begin) + 1
        line = first[begin:end or len(first)]
        if b"\r" in (line[:-2] if line.endswith(b"\r\n") else line):
            raise ValueError("lines end with CR: convert them to LF")
        if line.strip() and (end or whole):
            return begin, end or len(first)
        if not end:
            raise ValueError("has no header line" + ("" if whole else f" in its first {len(first)} bytes"))
        begin = end


#: Matches what ends a line, for pyarrow.
_LINE_END = re.compile(rb"\r\n|\n|\r")


def rows_of(text: bytes) -> int:
    """The number of lines that are not blank; pyarrow skips blank ones. A pure function."""
    characters = np.frombuffer(text, np.uint8)
    ends = (characters == 10) | (characters == 13)
    return int(np.count_nonzero(ends[:-1] > ends[1:])) + int(len(ends) > 0 and not ends[0])


def last_line(text: bytes) -> int:
    """The offset of the last line that is not blank. A pure function."""
    end = len(text.rstrip(b"\r\n"))
    return max(text.rfind(b"\n", 0, end), text.rfind(b"\r", 0, end)) + 1


def unclosed(text: bytes, delimiter: str) -> int:
    """The number of the first line that ends within a quoted cell, or 0. A pure function."""
    def is_unclosed(line: bytes) -> bool:
        at = 0
        while True:
            if line[at:at + 1] == b'"':
                at = line.find(b'"', at + 1)
                while at >= 0 and line[at + 1:at + 2] == b'"':
                    at = line.find(b'"', at + 2)
                if at < 0:
                    return True
            at = line.find(delimiter.encode(), at) + 1
            if not at:
                return False
    return next((number for number, line in enumerate(_LINE_END.split(text), 1) if b'"' in line and is_unclosed(line)), 0)


def explained(error: str, names: Sequence[str], text: bytes, before: int, of: str) -> str:
    """Rewrites pyarrow's error message for a CSV file with the line and the column's name. `text` is the text that was parsed, `before` the
    number of lines before it, and `of` follows a line number. A pure function."""
    found = re.match(r"(?:In CSV column #(?P<column>\d+)|CSV parse error): (?:Row #(?P<row>\d+): )?(?P<what>.*)", error,
                     re.DOTALL)
    if found is None:
        return error
    places = []
    if found["row"]:
        row = int(found["row"])
        # Blank lines are not rows.
        lines = (number for number, line in enumerate(_LINE_END.split(text), 1) if line)
        row = next((number for count, number in enumerate(lines, 1) if count == row), row)
        places.append(f"line {before + row}{of}")
    if found["column"]:
        column = int(found["column"])
        places.append(f"column {names[column]!r}" if column < len(names) else f"column {column}")
    what = re.sub(r"^CSV conversion error to (.+?): invalid value '(.*)'$", r"found '\2', expected \1", found["what"],
                  flags=re.DOTALL)
    return f"{', '.join(places)}: {what}" if places else what


FORMATS: Dict[str, Any] = {one.name: one for one in (Parquet, Arrow, Csv)}


def _ends_with(uri: str, suffixes: Any) -> bool:
    """Whether a name ends with one of the suffixes, ignoring case; in a URI, "?..." or "#..." may follow."""
    lower = uri.lower()
    return lower.endswith(suffixes) or ("://" in lower and re.split("[?#]", lower, maxsplit=1)[0].endswith(suffixes))


def by_name(uri: str) -> Optional[str]:
    """The format indicated by a path's extension, or None."""
    return next((name for name, one in FORMATS.items() if _ends_with(uri, one.suffixes)), None)


def of_file(file: _files.File, storage_options: Optional[Mapping[str, Any]]) -> Optional[str]:
    """The format indicated by a file's extension, or else by its first bytes; None if neither shows it."""
    found = by_name(file.uri)
    if found is None and file.size:
        with _files.Ranges(file, storage_options=storage_options) as ranges:
            first = ranges.read_at(0, min(8, file.size))
        found = next((name for name, one in FORMATS.items() if one.magic and first.startswith(one.magic)), None)
    return found


class Opened:
    """A cache of open files and of their metadata. If too many files are open, the least recently used one is closed; if the metadata take too
    much memory, those of the files that were opened first are dropped. Used by one thread at a time."""

    #: The maximum number of open files; each needs a descriptor.
    _MOST = 256
    #: The limit for the kept metadata of all files, measured as stored; in memory, metadata are a few times as large.
    _MOST_KEPT_BYTES = 64 << 20

    def __init__(self, files: Sequence[_files.File], kind: Any, reading: Reading) -> None:
        self._files, self._kind, self._reading = files, kind, reading
        self._opened: Dict[int, Format] = {}
        self._kept: Dict[int, Tuple[Any, int]] = {}

    def __call__(self, number: int) -> Format:
        found = self._opened.pop(number, None)
        if found is None:
            if len(self._opened) >= self._MOST:
                self._close(next(iter(self._opened)))
            found = self._kind(self._files[number], number, self._reading, self._kept.get(number, (None, 0))[0])
            self._keep(number, found)
        self._opened[number] = found
        return found

    def _keep(self, number: int, one: Format) -> None:
        self._kept.pop(number, None)
        self._kept[number] = one.kept, one.kept_bytes
        size = sum(of_one for _, of_one in self._kept.values())
        while size > self._MOST_KEPT_BYTES and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            if oldest in self._opened:
                self._close(oldest)
            size -= self._kept.pop(oldest)[1]

    def _close(self, number: int) -> None:
        one = self._opened.pop(number)
        # `kept` may have changed: the header of a CSV file may have been read since.
        self._kept[number] = one.kept, one.kept_bytes
        one.close()

    def close(self) -> None:
        """Closes all files. They can be opened again."""
        for number in list(self._opened):
            self._close(number)

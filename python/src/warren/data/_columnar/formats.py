"""Formats with named columns, read by pyarrow: one class a format, and a row in FORMATS."""
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from warren.data import _files
from warren.data._columnar.pieces import Piece

#: Rows that are decoded at a time.
BATCH_ROWS = 65536
#: A CSV file's ranges: so many in the whole data set, but neither so small that reading one is all overhead, nor so large that memory
#: is short. They depend on the data set alone, so that its rows' order does, too.
_CSV_RANGES, _CSV_LEAST_BYTES, _CSV_MOST_BYTES = 1024, 1 << 16, 16 << 20
#: What is looked at to find out the columns of a CSV file.
_CSV_FIRST_BYTES = 1 << 20

Filter = Sequence[Any]


class Contents(NamedTuple):
    """What a file says of itself."""

    schema: Any  #: pyarrow.Schema
    pieces: List[Piece]


class Reading(NamedTuple):
    """How files are read."""

    storage_options: Optional[Mapping[str, Any]]
    delimiter: str
    types: Mapping[str, Any]  #: of CSV's columns, which do not say it themselves
    csv_bytes: int  #: of a range


def csv_range(total: int) -> int:
    """How large ranges of CSV files are in a data set of so many bytes."""
    return min(max(total // _CSV_RANGES, _CSV_LEAST_BYTES), _CSV_MOST_BYTES)


class Format:
    """Opens files of one format. An object serves one file and one thread."""

    name = ""
    suffixes: Tuple[str, ...] = ()
    magic = b""  #: that files begin with

    def __init__(self, file: _files.File, number: int, reading: Reading) -> None:
        self.file, self.number, self.reading = file, number, reading

    def contents(self, keep: Any) -> Contents:
        """Without pieces in which no row passes `keep`, an expression of pyarrow or None, by what the file says of itself."""
        raise NotImplementedError

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of a piece's rows, in order."""
        raise NotImplementedError

    def where(self, piece: Piece) -> str:
        """For messages: the piece within its file."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is read any more."""


class Parquet(Format):
    """Pieces are row groups."""

    name, suffixes, magic = "parquet", (".parquet", ".parq", ".pq"), b"PAR1"

    def __init__(self, file: _files.File, number: int, reading: Reading) -> None:
        import pyarrow.parquet as pq  # pylint: disable=import-outside-toplevel

        super().__init__(file, number, reading)
        self._source = _files.open_arrow(file, storage_options=reading.storage_options)
        # Many small reads become few large ones, which is what stores are for.
        self._parquet = pq.ParquetFile(self._source, pre_buffer=True)

    def contents(self, keep: Any) -> Contents:
        import pyarrow.dataset as ds  # pylint: disable=import-outside-toplevel

        metadata = self._parquet.metadata
        numbers: Sequence[int] = range(metadata.num_row_groups)
        if keep is not None:
            # Folders' names are no columns of the file; what they say was looked at before.
            fragment = ds.ParquetFileFormat().make_fragment(self._source)
            numbers = [group.id for group in fragment.subset(keep, schema=self._parquet.schema_arrow).row_groups]
        groups = ((number, metadata.row_group(number)) for number in numbers)
        return Contents(self._parquet.schema_arrow, [Piece(self.number, number, group.num_rows, max(group.total_byte_size, 1))
                                                     for number, group in groups])

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        yield from self._parquet.iter_batches(BATCH_ROWS, row_groups=[piece.place], columns=list(columns))

    def where(self, piece: Piece) -> str:
        return f"row group {piece.place}"

    def close(self) -> None:
        self._parquet.close()
        self._source.close()


class Arrow(Format):
    """Arrow's IPC files, Feather among them: pieces are record batches. How many rows they have is known when they are read."""

    name, suffixes, magic = "arrow", (".arrow", ".feather", ".ipc"), b"ARROW1"

    def __init__(self, file: _files.File, number: int, reading: Reading) -> None:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        super().__init__(file, number, reading)
        self._source = _files.open_arrow(file, storage_options=reading.storage_options)
        self._reader = pa.ipc.open_file(self._source)

    def contents(self, keep: Any) -> Contents:
        count = self._reader.num_record_batches
        ends = [self.file.size * k // count for k in range(count + 1)] if count else []
        return Contents(self._reader.schema, [Piece(self.number, k, -1, max(ends[k + 1] - ends[k], 1)) for k in range(count)])

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        yield self._reader.get_batch(piece.place).select(list(columns))

    def where(self, piece: Piece) -> str:
        return f"record batch {piece.place}"

    def close(self) -> None:
        self._source.close()


class Csv(Format):
    """CSV with a line of names: pieces are ranges of bytes, of which the rows that begin in them are read; compressed files are
    one piece each. No cell has a line end in it."""

    name, suffixes = "csv", (".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".tsv", ".tsv.gz")
    _codecs = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

    def __init__(self, file: _files.File, number: int, reading: Reading) -> None:
        super().__init__(file, number, reading)
        self._ranges = _files.Ranges(file, storage_options=reading.storage_options)
        self._codec = next((codec for suffix, codec in self._codecs.items() if file.uri.endswith(suffix)), None)
        self._names: List[str] = []

    def _text(self, begin: int, end: int) -> bytes:
        return self._ranges.read_at(begin, min(end, self.file.size) - begin)

    def _parsed(self, text: Any, named: bool, types: Mapping[str, Any], columns: Optional[Sequence[str]] = None) -> Any:
        """A table of text that begins with the line of names where `named`."""
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        options = csv.ConvertOptions(column_types=dict(types), strings_can_be_null=True, include_columns=columns)
        return csv.read_csv(text, csv.ReadOptions(use_threads=False, column_names=None if named else self._names),
                            csv.ParseOptions(delimiter="\t" if ".tsv" in self.file.uri else self.reading.delimiter), options)

    def contents(self, keep: Any) -> Contents:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        if self.file.size == 0:
            raise ValueError("is empty, expected a line of names")
        if self._codec:
            with pa.input_stream(pa.BufferReader(self._text(0, self.file.size)), compression=self._codec) as stream:
                first = stream.read(_CSV_FIRST_BYTES)
            pieces = [Piece(self.number, 0, -1, self.file.size)]
            whole = len(first) < _CSV_FIRST_BYTES
        else:
            first = self._text(0, _CSV_FIRST_BYTES)
            whole = self.file.size <= len(first)
            header = first.find(b"\n") + 1
            if header == 0 and not whole:
                raise ValueError(f"has no line of names in its first {len(first)} bytes")
            begins = range(header or self.file.size, self.file.size, self.reading.csv_bytes)
            pieces = [Piece(self.number, k, -1, min(self.reading.csv_bytes, self.file.size - begin), begin)
                      for k, begin in enumerate(begins)]
        if not whole:
            first = first[:first.rfind(b"\n") + 1]
        schema = self._parsed(pa.BufferReader(first), True, {}).schema
        # What has only whole numbers or nothing at first may have others later.
        return Contents(pa.schema([(field.name, pa.float64() if pa.types.is_null(field.type) else field.type)
                                   for field in schema]), pieces)

    def _header(self) -> List[str]:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        first = self._text(0, _CSV_FIRST_BYTES)
        return list(self._parsed(pa.BufferReader(first[:first.find(b"\n") + 1] or first), True, {}).column_names)

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        if self._codec:
            with pa.input_stream(pa.BufferReader(self._text(0, self.file.size)), compression=self._codec) as stream:
                yield from self._parsed(stream, True, self.reading.types, columns).to_batches(BATCH_ROWS)
            return
        if not self._names:
            self._names = self._header()
        # From the byte before on: where that ends a line, a row begins with the range.
        begin, end = piece.begin - 1, piece.begin + piece.size - 1
        text = self._text(begin, end)
        while end < self.file.size:
            more = self._text(end, end + _CSV_LEAST_BYTES)
            line = more.find(b"\n") + 1
            text += more[:line] if line else more
            if line:
                break
            end += len(more)
        text = text[text.find(b"\n") + 1 or len(text):]
        if text.strip():
            yield from self._parsed(pa.BufferReader(text), False, self.reading.types, columns).to_batches(BATCH_ROWS)

    def where(self, piece: Piece) -> str:
        return "the file" if self._codec else f"bytes {piece.begin} to {piece.begin + piece.size}"

    def close(self) -> None:
        self._ranges.close()


FORMATS: Dict[str, Any] = {one.name: one for one in (Parquet, Arrow, Csv)}


def by_name(uri: str) -> Optional[str]:
    """The format that a path's ending says; None: none of these."""
    lower = uri.lower()
    return next((name for name, one in FORMATS.items() if lower.endswith(one.suffixes)), None)


def by_content(first: bytes) -> Optional[str]:
    """The format of a file that begins so; None: none of these."""
    return next((name for name, one in FORMATS.items() if one.magic and first.startswith(one.magic)), None)


class Opened:
    """The files that were opened last; the least recently used is closed when there are too many."""

    _MOST = 16

    def __init__(self, files: Sequence[_files.File], kind: Any, reading: Reading) -> None:
        self._files, self._kind, self._reading = files, kind, reading
        self._opened: Dict[int, Format] = {}

    def __call__(self, number: int) -> Format:
        found = self._opened.pop(number, None)
        if found is None:
            found = self._kind(self._files[number], number, self._reading)
            if len(self._opened) >= self._MOST:
                self._opened.pop(next(iter(self._opened))).close()
        self._opened[number] = found
        return found

    def close(self) -> None:
        """All of them."""
        for one in self._opened.values():
            one.close()
        self._opened.clear()

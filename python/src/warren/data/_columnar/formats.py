"""Formats with named columns, read by pyarrow: one class a format, and a row in FORMATS."""
import base64
import contextlib
import re
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
#: Text of compressed CSV that is parsed at a time.
_CSV_BLOCK_BYTES = 8 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: A file of so many record batches could not be shared out by them.
_FEW_BATCHES = 16


class Contents(NamedTuple):
    """What a file says of itself."""

    schema: Any  #: pyarrow.Schema
    pieces: List[Piece]
    guessed: Tuple[str, ...] = ()  #: columns of CSV in which no value was seen: their type here says nothing
    hint: str = ""  #: what may be the cause of an error about the columns


class Reading(NamedTuple):
    """How files are read."""

    storage_options: Optional[Mapping[str, Any]]
    delimiter: str  #: between the cells of CSV; "": what the file's name says
    types: Mapping[str, Any]  #: the types of CSV's columns, which do not say them themselves
    csv_bytes: int  #: the size of a range of CSV
    words: Tuple[str, ...] = ()  #: columns of CSV that are read as they are written, such as 007
    few_files: bool = False  #: fewer than several for each worker: they are cut at rows


def csv_range(total: int) -> int:
    """How large ranges of CSV files are in a data set of so many bytes."""
    return min(max(total // _CSV_RANGES, _CSV_LEAST_BYTES), _CSV_MOST_BYTES)


def settled(contents: Mapping[int, Contents]) -> Dict[int, Contents]:
    """The same, by the numbers of the files, where columns in which a file shows no value have the type that they have in the
    first file that shows one. Pure."""
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
    """Opens files of one format. An object serves one file and one thread. `kept`: what another object of the same file left."""

    name = ""
    suffixes: Tuple[str, ...] = ()
    magic = b""  #: that files begin with

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        self.file, self.number, self.reading = file, number, reading
        #: What need not be read again when the file is opened again, and about how large it is.
        self.kept: Any = kept
        self.kept_bytes = 0

    def contents(self, keep: Any) -> Contents:
        """Without pieces in which no row passes `keep`, an expression of pyarrow or None, by what the file says of itself."""
        raise NotImplementedError

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of a piece's rows, in order."""
        raise NotImplementedError

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        """For messages: the piece within its file, which need not be open."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes the file. Nothing may be read afterwards."""


class Parquet(Format):
    """Pieces are row groups. Dictionary columns of other values than words, which pyarrow reads as these values, stay dictionaries."""

    name, suffixes, magic = "parquet", (".parquet", ".parq", ".pq"), b"PAR1"

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        super().__init__(file, number, reading, kept)
        self._source = _files.open_arrow(file, storage_options=reading.storage_options)
        with _closed_on_error(self._source):
            if self.kept is None:
                first = self._source.read_at(len(self.magic), 0) if file.size >= len(self.magic) else b""
                if first != self.magic:
                    raise ValueError(f"begins with {bytes(first)!r}, as no Parquet file does: leave it out, by a pattern such as *.parquet, or say "
                                     "what it is by format=")
                self.kept = self._reader().metadata
        self.kept_bytes = self.kept.serialized_size

    def _reader(self) -> Any:
        """A new one for each use: it keeps in memory what it has read ahead, for as long as it lives."""
        import pyarrow.parquet as pq  # pylint: disable=import-outside-toplevel

        # Many small reads become few large ones, which is what stores are for.
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

            # Folders' names are no columns of the file; what they say was looked at before.
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
        """The original types of columns that were written as dictionaries and are plain in the schema, from the writer's note."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        noted = (self.kept.metadata or {}).get(b"ARROW:schema")
        try:
            written = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(noted))) if noted else ()
        except (ValueError, OSError):
            written = ()  # pyarrow says what is wrong with it, or does without
        types = {field.name: field.type for field in schema}
        return {field.name: pa.dictionary(pa.int32(), types[field.name]) for field in written
                if pa.types.is_dictionary(field.type) and field.type.value_type == types.get(field.name) and schema.names.count(field.name) == 1}

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        return f"row group {piece.place}"

    def close(self) -> None:
        self._source.close()


class Arrow(Format):
    """Arrow's IPC files, Feather among them: pieces are record batches. How many rows they have is known when they are read; where there
    are few of them, they are read for that."""

    name, suffixes, magic = "arrow", (".arrow", ".feather", ".ipc"), b"ARROW1"

    def __init__(self, file: _files.File, number: int, reading: Reading, kept: Any = None) -> None:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        super().__init__(file, number, reading, kept)
        self._source = _files.open_arrow(file, storage_options=reading.storage_options)
        with _closed_on_error(self._source):
            self._reader = pa.ipc.open_file(self._source)

    def contents(self, keep: Any) -> Contents:
        count = self._reader.num_record_batches
        rows = [-1] * count
        if self.reading.few_files and count <= _FEW_BATCHES:
            rows = [self._reader.get_batch(k).num_rows for k in range(count)]  # which reads them
        ends = [self.file.size * k // count for k in range(count + 1)] if count else []
        return Contents(self._reader.schema, [Piece(self.number, k, rows[k], max(ends[k + 1] - ends[k], 1)) for k in range(count)])

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        yield self._reader.get_batch(piece.place).select(list(columns))

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
    """CSV with a line of names: pieces are ranges of bytes, of which the rows that begin in them are read; files that begin as
    compressed ones do, whatever their names, are one piece each. Lines end with LF or CR LF, and no cell has a line end in it. What
    is kept: the names of the columns, the bytes and the lines up to the end of the line that has them, and the compression."""

    name, suffixes = "csv", (".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".tsv", ".tsv.gz", ".tsv.zst", ".tsv.bz2")
    _endings = ("", ".gz", ".zst", ".bz2")
    #: How compressed files begin. Text can begin with BZh, and with PAR1.
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
        """Whether a piece is one of compressed text: other pieces begin behind the line of names."""
        return piece.begin == 0

    def _text(self, begin: int, end: int) -> bytes:
        return self._ranges.read_at(begin, min(end, self.file.size) - begin)

    def _decompressed(self, content: bytes) -> Any:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        return pa.input_stream(pa.BufferReader(content), compression=self._codec)

    def _first(self, most: int, content: bytes = b"") -> Tuple[bytes, bool]:
        """The file's first bytes of text, and whether that is all. Finds out what it is compressed with. `content`: of a compressed
        file that was read already."""
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

    def _options(self, types: Mapping[str, Any], columns: Optional[Sequence[str]],
                 block: Optional[int] = None) -> Tuple[Any, Any, Any]:
        """For pyarrow's readers of text without the line of names."""
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        return (csv.ReadOptions(use_threads=False, column_names=self.kept[0], block_size=block),
                csv.ParseOptions(delimiter=self._delimiter),
                csv.ConvertOptions(column_types=dict(types), strings_can_be_null=True, include_columns=columns))

    def _header(self, first: bytes, whole: bool) -> int:
        """Sees to it that `kept` is there. Where the rows begin."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        if self.kept is None:
            begin, end = line_of_names(first, whole)
            found = csv.read_csv(pa.BufferReader(first[begin:end].rstrip(b"\r\n") + b"\n"),
                                 parse_options=csv.ParseOptions(delimiter=self._delimiter))
            self.kept = list(found.column_names), end, first.count(b"\n", 0, end), self._codec
        return int(self.kept[1])

    def contents(self, keep: Any) -> Contents:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        if self.file.size == 0:
            raise ValueError("is empty, expected a line of names")
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
            with self._explained(rows, self.kept[2], ""):
                schema = csv.read_csv(pa.BufferReader(rows), *self._options(words, None)).schema
        # What has nothing at first may have something later.
        guessed = tuple(field.name for field in schema if pa.types.is_null(field.type))
        return Contents(pa.schema([(field.name, pa.float64() if field.name in guessed else field.type) for field in schema]), pieces,
                        guessed, self._hint())

    def _hint(self) -> str:
        """A table of one column may be one of several between other delimiters."""
        names = self.kept[0]
        likely = [one for one in ",;\t|" if one != self._delimiter and one in names[0]] if len(names) == 1 else []
        return f"; the line of names has no {self._delimiter!r}: is delimiter={likely[0]!r} what is meant?" if likely else ""

    def batches(self, piece: Piece, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # pylint: disable=import-outside-toplevel
        from pyarrow import csv  # pylint: disable=import-outside-toplevel

        content = self._text(0, self.file.size) if self.is_compressed(piece) else b""
        if not self.kept:
            first, whole = self._first(_CSV_LEAST_BYTES, content)
            if not whole and b"\n" not in first.lstrip():
                first, whole = self._first(_CSV_FIRST_BYTES, content)
            self._header(first, whole)
        if content:
            # A block after the other, whose types have to be known: only the first one would be looked at.
            types = {**{name: pa.string() for name in columns}, **self.reading.types}
            with self._decompressed(content) as stream, self._explained(None, self.kept[2], ""):
                stream.read(self.kept[1])
                for batch in csv.open_csv(stream, *self._options(types, columns, _CSV_BLOCK_BYTES)):
                    for row in range(0, len(batch), BATCH_ROWS):
                        yield batch.slice(row, BATCH_ROWS)
            return
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
        # A header without a line end has no row behind it.
        text = text[text.find(b"\n") + 1 or len(text):]
        if text.strip():
            with self._explained(text, 0, " of this range"):
                table = csv.read_csv(pa.BufferReader(text), *self._options(self.reading.types, columns))
            yield from table.to_batches(BATCH_ROWS)

    @contextlib.contextmanager
    def _explained(self, text: Optional[bytes], before: int, of: str) -> Iterator[None]:
        """Adds lines and columns to errors of pyarrow. `text` is the lines that were parsed, or None if they are no longer in memory;
        `before` is the number of lines before them; `of` is what lines are counted from."""
        import pyarrow as pa  # pylint: disable=import-outside-toplevel

        try:
            yield
        except pa.ArrowInvalid as error:
            raise ValueError(explained(str(error), self.kept[0], text, before, of)) from None

    @staticmethod
    def place(file: _files.File, piece: Piece) -> str:
        return "the file" if Csv.is_compressed(piece) else f"bytes {piece.begin} to {piece.begin + piece.size}"

    def close(self) -> None:
        self._ranges.close()


def line_of_names(first: bytes, whole: bool) -> Tuple[int, int]:
    """Where the first line that is not blank begins and ends in the first bytes of a CSV file, which are all of it or not. Raises
    ValueError. Pure."""
    begin = len(_BYTE_ORDER_MARK) if first.startswith(_BYTE_ORDER_MARK) else 0
    while True:
        end = first.find(b"\n", begin) + 1
        line = first[begin:end or len(first)]
        if b"\r" in (line[:-2] if line.endswith(b"\r\n") else line):
            raise ValueError("lines end with CR: convert them to LF")
        if line.strip() and (end or whole):
            return begin, end or len(first)
        if not end:
            raise ValueError("has no line of names" + ("" if whole else f" in its first {len(first)} bytes"))
        begin = end


def explained(error: str, names: Sequence[str], text: Optional[bytes], before: int, of: str) -> str:
    """What pyarrow says of a CSV file, with the line and the column's name. See Csv._explained. Pure."""
    found = re.match(r"(?:In CSV column #(?P<column>\d+)|CSV parse error): (?:Row #(?P<row>\d+): )?(?P<what>.*)", error,
                     re.DOTALL)
    if found is None:
        return error
    places = []
    if found["row"]:
        row = int(found["row"])
        if text is not None:
            # Blank lines are no rows.
            lines = (number for number, line in enumerate(re.split(rb"\r\n|\n|\r", text), 1) if line)
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
    """Whether a name has one of these endings, in any case of its letters; that of a URI may have "?..." or "#..." behind it."""
    lower = uri.lower()
    return lower.endswith(suffixes) or ("://" in lower and re.split("[?#]", lower, maxsplit=1)[0].endswith(suffixes))


def by_name(uri: str) -> Optional[str]:
    """The format that a path's ending says; None: none of these."""
    return next((name for name, one in FORMATS.items() if _ends_with(uri, one.suffixes)), None)


def by_content(first: bytes) -> Optional[str]:
    """The format of a file that begins so; None: none of these."""
    return next((name for name, one in FORMATS.items() if one.magic and first.startswith(one.magic)), None)


class Opened:
    """The files that were opened last, and what they say of themselves; those that were used least recently are closed when there
    are too many of the one or too much of the other. Used by one thread at a time."""

    #: Each is a descriptor.
    _MOST = 256
    #: The limit for what is kept of all files, as stored; in memory it is a few times as much.
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
        # CSV has read its names meanwhile.
        self._kept[number] = one.kept, one.kept_bytes
        one.close()

    def close(self) -> None:
        """All of them. They can be opened again."""
        for number in list(self._opened):
            self._close(number)

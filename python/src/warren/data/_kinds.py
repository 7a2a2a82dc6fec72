"""Tables as pieces of bytes, and back: what `scatter` and `gather` send.

`flatten` takes a table of any kind apart into columns. A column has a spec, which says what it is without its rows and can be
pickled; `encode` gives the bytes of some of its rows, and a builder, which the spec makes, puts rows together again. So nobody
ever holds more than a piece besides the rows.

Kinds: NumPy arrays, SciPy CSR, pandas, polars, pyarrow; tuples, lists and dicts of them. Nothing here communicates. Packages are
imported where a table is theirs.
"""
import dataclasses
import io
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

Buffer = Any  # bytes, or a contiguous array
KINDS = ("NumPy arrays, SciPy CSR matrices, pandas, polars or pyarrow tables, or a tuple, list or dict of these with the same "
         "number of rows")


class Differs(ValueError):
    """Two ranks' rows are not of one kind: what this rank has, and what the other."""

    def __init__(self, where: str, this: str, other: str) -> None:
        super().__init__(f"{where}: {this} and {other}")
        self.where, self.this, self.other = where, this, other


def _must_equal(where: str, this: Any, other: Any, what: str = "") -> None:
    if this != other:
        raise Differs(where, f"{what}{this}", f"{what}{other}")


# --- columns: arrays of NumPy's ---


@dataclasses.dataclass(frozen=True)
class ArraySpec:
    """Rows of an array of NumPy's."""

    where: str
    dtype: Any
    row_shape: Tuple[int, ...]
    buffers = 1

    def merged(self, other: "ArraySpec") -> "ArraySpec":
        """For rows of both. Raises Differs."""
        _must_equal(self.where, self.dtype, other.dtype)
        _must_equal(self.where, self.row_shape, other.row_shape, "rows of the shape ")
        return self

    def builder(self, rows: int, entries: int) -> "ArrayBuilder":
        """Of so many rows."""
        del entries
        return ArrayBuilder(np.empty((rows, *self.row_shape), self.dtype))


class ArrayBuilder:
    """Fills an array from its begin."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self._filled = array, 0

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """The next rows."""
        into = self._array[self._filled:self._filled + rows]
        if into.size and into.dtype.itemsize:
            into[...] = np.frombuffer(buffers[0], into.dtype).reshape(into.shape)
        self._filled += rows

    def finish(self) -> NDArray[Any]:
        """The array."""
        return self._array


class ArrayColumn:
    """An array of NumPy's, of one dimension or more."""

    def __init__(self, array: NDArray[Any], where: str) -> None:
        self.spec: Any = ArraySpec(where, array.dtype, array.shape[1:])
        self.rows = len(array)
        self._array = array
        self._row_bytes = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize

    def adapt(self, spec: ArraySpec) -> None:
        """`spec` is this one's, merged with others."""
        self.spec = spec

    def entries(self, begin: int, end: int) -> int:
        """What a builder has to know of these rows besides their number."""
        del begin, end
        return 0

    def nbytes(self, begin: int, end: int) -> int:
        """About as many as `encode` gives."""
        return (end - begin) * self._row_bytes

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """These rows."""
        return [_raw(self._array[begin:end])]


def _raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes; a copy where the array is not contiguous."""
    contiguous = np.ascontiguousarray(array)
    return contiguous.reshape(-1).view(np.uint8) if contiguous.size and contiguous.dtype.itemsize else np.empty(0, np.uint8)


# --- categories of pandas: codes, and what they stand for ---


@dataclasses.dataclass(frozen=True)
class CategoricalSpec:
    """Rows of pandas' categories."""

    where: str
    categories: Any
    ordered: bool
    buffers = 1

    def _codes(self) -> "np.dtype[Any]":
        return np.dtype(np.int8 if len(self.categories) < 1 << 7 else np.int16 if len(self.categories) < 1 << 15 else np.int32)

    def merged(self, other: "CategoricalSpec") -> "CategoricalSpec":
        """With the categories of both, this one's first. Raises Differs."""
        _must_equal(self.where, self.categories.dtype, other.categories.dtype, "categories of ")
        _must_equal(self.where, self.ordered, other.ordered, "ordered=")
        if self.categories.equals(other.categories):
            return self
        if self.ordered:
            raise Differs(self.where, f"the order of categories {list(self.categories)[:10]}", f"{list(other.categories)[:10]}")
        new = other.categories[~other.categories.isin(self.categories)]
        return dataclasses.replace(self, categories=self.categories.append(new))

    def builder(self, rows: int, entries: int) -> "CategoricalBuilder":
        """Of so many rows."""
        del entries
        return CategoricalBuilder(self, np.empty(rows, self._codes()))


class CategoricalBuilder(ArrayBuilder):
    """The same for codes."""

    def __init__(self, spec: CategoricalSpec, array: NDArray[Any]) -> None:
        super().__init__(array)
        self._spec = spec

    def finish(self) -> Any:
        import pandas as pd  # pylint: disable=import-outside-toplevel
        return pd.Categorical.from_codes(self._array, categories=self._spec.categories, ordered=self._spec.ordered)


class CategoricalColumn(ArrayColumn):
    """A column of pandas' categories. The code -1 is a missing value."""

    def __init__(self, categorical: Any, where: str) -> None:
        super().__init__(np.asarray(categorical.codes), where)
        self.spec = CategoricalSpec(where, categorical.categories, bool(categorical.ordered))
        self._new_codes: Optional[NDArray[Any]] = None

    def adapt(self, spec: Any) -> None:
        codes = spec._codes()  # pylint: disable=protected-access
        if len(spec.categories) != len(self.spec.categories):
            # The last one is what the code -1 finds.
            self._new_codes = np.append(spec.categories.get_indexer(self.spec.categories), -1).astype(codes)
        self.spec, self._row_bytes = spec, codes.itemsize

    def encode(self, begin: int, end: int) -> List[Buffer]:
        codes = self._array[begin:end]
        return [_raw(codes.astype(self.spec._codes(), copy=False)  # pylint: disable=protected-access
                     if self._new_codes is None else self._new_codes[codes])]


# --- SciPy's CSR ---


@dataclasses.dataclass(frozen=True)
class CsrSpec:
    """Rows of a CSR matrix of SciPy's."""

    where: str
    name: str
    dtype: Any
    index_dtype: Any
    columns: int
    buffers = 3

    def merged(self, other: "CsrSpec") -> "CsrSpec":
        """With the wider indices. Raises Differs."""
        _must_equal(self.where, self.name, other.name)
        _must_equal(self.where, self.dtype, other.dtype)
        _must_equal(self.where, self.columns, other.columns, "columns: ")
        wider = max(self.index_dtype, other.index_dtype, key=lambda dtype: int(dtype.itemsize))
        return dataclasses.replace(self, index_dtype=wider)

    def builder(self, rows: int, entries: int) -> "CsrBuilder":
        """Of so many rows with so many entries."""
        return CsrBuilder(self, rows, entries)


class CsrBuilder:
    """Fills a CSR matrix from its first row."""

    def __init__(self, spec: CsrSpec, rows: int, entries: int) -> None:
        self._spec = spec
        self._sent = spec.index_dtype
        index_dtype = np.dtype(np.int64) if entries > np.iinfo(np.int32).max else spec.index_dtype
        self._offsets = np.zeros(rows + 1, index_dtype)
        self._indices, self._values = np.empty(entries, index_dtype), np.empty(entries, spec.dtype)
        self._rows = 0

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """The next rows."""
        begin = int(self._offsets[self._rows])
        ends, indices = np.frombuffer(buffers[0], self._sent), np.frombuffer(buffers[1], self._sent)
        self._offsets[self._rows + 1:self._rows + rows + 1] = ends.astype(self._offsets.dtype, copy=False) + begin
        self._indices[begin:begin + len(indices)] = indices
        self._values[begin:begin + len(indices)] = np.frombuffer(buffers[2], self._spec.dtype)
        self._rows += rows

    def finish(self) -> Any:
        """The matrix."""
        import scipy.sparse  # pylint: disable=import-outside-toplevel
        matrix = getattr(scipy.sparse, self._spec.name)((len(self._offsets) - 1, self._spec.columns), dtype=self._spec.dtype)
        # Given to the constructor, indices of 64 bits would become narrower ones in a copy, on some ranks only.
        matrix.data, matrix.indices, matrix.indptr = self._values, self._indices, self._offsets
        return matrix


class CsrColumn:
    """A CSR matrix of SciPy's."""

    def __init__(self, matrix: Any, where: str, name: str) -> None:
        self.spec = CsrSpec(where, name, matrix.dtype, matrix.indptr.dtype, matrix.shape[1])
        self.rows = int(matrix.shape[0])
        self._matrix = matrix

    def adapt(self, spec: CsrSpec) -> None:
        """`spec` is this one's, merged with others."""
        self.spec = spec

    def entries(self, begin: int, end: int) -> int:
        """Of these rows."""
        return int(self._matrix.indptr[end]) - int(self._matrix.indptr[begin])

    def nbytes(self, begin: int, end: int) -> int:
        """As many as `encode` gives."""
        index = int(self.spec.index_dtype.itemsize)
        return (end - begin) * index + self.entries(begin, end) * (index + int(self.spec.dtype.itemsize))

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """Where rows end, indices, values."""
        matrix = self._matrix
        first, last = matrix.indptr[begin], matrix.indptr[end]
        ends = (matrix.indptr[begin + 1:end + 1] - first).astype(self.spec.index_dtype, copy=False)
        return [_raw(ends), _raw(matrix.indices[first:last].astype(self.spec.index_dtype, copy=False)),
                _raw(matrix.data[first:last])]


# --- Arrow ---


def _arrow() -> Any:
    import pyarrow as pa  # pylint: disable=import-outside-toplevel
    import pyarrow.compute  # pylint: disable=import-outside-toplevel,unused-import
    return pa


def _stream(table: Any) -> Any:
    """A table as an Arrow stream, in memory."""
    pa = _arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _wider(pa: Any, types: Sequence[Any], values: int) -> Any:
    """A type for the codes of so many values, one of these where it is wide enough."""
    if all(kind == types[0] for kind in types) and values <= 1 << (types[0].bit_width - 1):
        return types[0]
    return pa.int32() if values < 1 << 31 else pa.int64()


@dataclasses.dataclass(frozen=True)
class ArrowSpec:
    """Rows of a table of Arrow's; columns that are dictionary-encoded with their dictionaries, which are sent once."""

    where: str
    kind: str
    schema: Any
    dictionaries: Tuple[Tuple[int, Any], ...]
    buffers = 1

    def sent_schema(self) -> Any:
        """With codes in place of values."""
        pa, schema = _arrow(), self.schema
        for place, _ in self.dictionaries:
            field = schema.field(place)
            schema = schema.set(place, pa.field(field.name, field.type.index_type, True))
        return schema

    def merged(self, other: "ArrowSpec") -> "ArrowSpec":
        """With the values of both dictionaries, this one's first. Raises Differs."""
        pa = _arrow()
        _must_equal(self.where, self.kind, other.kind)
        _must_equal(self.where, self.schema.names, other.schema.names, "columns ")
        schema, dictionaries, others = self.schema, [], dict(other.dictionaries)
        for place, (field, one) in enumerate(zip(self.schema, other.schema)):
            where = f"{self.where}, column {field.name!r}"
            if not (pa.types.is_dictionary(field.type) and pa.types.is_dictionary(one.type)):
                _must_equal(where, field.type, one.type)
                schema = schema.set(place, field.with_nullable(field.nullable or one.nullable))
        for place, values in self.dictionaries:
            field, one = schema.field(place), other.schema.field(place)
            where = f"{self.where}, column {field.name!r}"
            _must_equal(where, field.type.value_type, one.type.value_type, "a dictionary of ")
            _must_equal(where, field.type.ordered, one.type.ordered, "ordered=")
            both = values if values.equals(others[place]) else pa.compute.unique(pa.concat_arrays([values, others[place]]))
            if field.type.ordered and both is not values:
                raise Differs(where, f"the ordered values {values.to_pylist()[:10]}", f"{others[place].to_pylist()[:10]}")
            codes = _wider(pa, [field.type.index_type, one.type.index_type], len(both))
            kind = pa.dictionary(codes, field.type.value_type, field.type.ordered)
            schema = schema.set(place, pa.field(field.name, kind, field.nullable or one.nullable, field.metadata))
            dictionaries.append((place, both))
        return dataclasses.replace(self, schema=schema, dictionaries=tuple(dictionaries))

    def builder(self, rows: int, entries: int) -> "ArrowBuilder":
        """Of any number of rows."""
        del rows, entries
        return ArrowBuilder(self)


class ArrowBuilder:
    """Keeps pieces as they come: a table has a chunk for each, and nothing is copied once more. A RecordBatch and an Array have
    no chunks: to make one of several pieces takes their memory a second time."""

    def __init__(self, spec: ArrowSpec) -> None:
        self._spec, self._pieces = spec, [spec.sent_schema().empty_table()]

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """The next rows."""
        del rows
        pa = _arrow()
        # A copy: the buffer has other columns, too, and is used again.
        with pa.ipc.open_stream(pa.py_buffer(bytes(buffers[0]))) as reader:
            table, schema = reader.read_all(), self._spec.sent_schema()
        self._pieces.append(table if table.schema.equals(schema, check_metadata=True) else table.cast(schema))

    def finish(self) -> Any:
        """The table, batch or array."""
        pa, spec = _arrow(), self._spec
        table = pa.concat_tables(self._pieces[1:] if len(self._pieces) > 1 else self._pieces)
        self._pieces = []
        for place, values in spec.dictionaries:
            field = spec.schema.field(place)
            chunks = [pa.DictionaryArray.from_arrays(codes, values, ordered=field.type.ordered)
                      for codes in table.column(place).chunks]
            table = table.set_column(place, field, pa.chunked_array(chunks, field.type))
        table = table.cast(spec.schema) if table.schema != spec.schema else table
        table = table.replace_schema_metadata(spec.schema.metadata)
        if spec.kind == "Table":
            return table
        if spec.kind == "RecordBatch":
            return pa.RecordBatch.from_arrays([_one_array(pa, column) for column in table.columns], schema=table.schema)
        return table.column(0) if spec.kind == "ChunkedArray" else _one_array(pa, table.column(0))


def _one_array(pa: Any, column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


class ArrowColumn:
    """A Table, RecordBatch, ChunkedArray or Array of Arrow's."""

    def __init__(self, table: Any, where: str, kind: str) -> None:
        pa = _arrow()
        self.rows = int(table.num_rows)
        table = table.unify_dictionaries()
        dictionaries = []
        for place, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                column = table.column(place)
                values = column.chunk(0).dictionary if column.num_chunks else pa.array([], field.type.value_type)
                dictionaries.append((place, values))
        self.spec = ArrowSpec(where, kind, table.schema, tuple(dictionaries))
        sent = self.spec.sent_schema()
        for place, _ in dictionaries:
            chunks = [chunk.indices for chunk in table.column(place).chunks]
            table = table.set_column(place, sent.field(place), pa.chunked_array(chunks, sent.field(place).type))
        self._table = table.replace_schema_metadata(None)
        self._new_codes: Dict[int, Any] = {}

    def adapt(self, spec: ArrowSpec) -> None:
        """`spec` is this one's, merged with others."""
        pa = _arrow()
        for (place, own), (_, values) in zip(self.spec.dictionaries, spec.dictionaries):
            if not own.equals(values):
                self._new_codes[place] = pa.compute.index_in(own, value_set=values)
        self.spec = spec

    def entries(self, begin: int, end: int) -> int:
        """Nothing that a builder has to know."""
        del begin, end
        return 0

    def nbytes(self, begin: int, end: int) -> int:
        """Without what a stream has besides them."""
        return int(self._table.slice(begin, end - begin).nbytes)

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """These rows as an Arrow stream of its own."""
        rows = self._table.slice(begin, end - begin)
        for place, new in self._new_codes.items():
            rows = rows.set_column(place, rows.schema.field(place).name, new.take(rows.column(place)))
        return [_stream(rows)]


# --- polars ---


@dataclasses.dataclass(frozen=True)
class PolarsSpec:
    """Rows of a polars DataFrame; `empty` has none, as a stream."""

    where: str
    kind: str
    empty: bytes
    buffers = 1

    def frame(self) -> Any:
        """Without rows."""
        import polars as pl  # pylint: disable=import-outside-toplevel
        return pl.read_ipc_stream(io.BytesIO(self.empty))

    def merged(self, other: "PolarsSpec") -> "PolarsSpec":
        """The same. Raises Differs."""
        _must_equal(self.where, self.kind, other.kind)
        this, that = self.frame(), other.frame()
        _must_equal(self.where, this.columns, that.columns, "columns ")
        for name, dtype in this.schema.items():
            _must_equal(f"{self.where}, column {name!r}", dtype, that.schema[name])
        return self

    def builder(self, rows: int, entries: int) -> "PolarsBuilder":
        """Of any number of rows."""
        del rows, entries
        return PolarsBuilder(self)


class PolarsBuilder:
    """Keeps pieces as they come."""

    def __init__(self, spec: PolarsSpec) -> None:
        self._spec, self._pieces = spec, [spec.frame()]

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """The next rows."""
        del rows
        import polars as pl  # pylint: disable=import-outside-toplevel
        self._pieces.append(pl.read_ipc_stream(io.BytesIO(buffers[0])))

    def finish(self) -> Any:
        """The frame or series."""
        import polars as pl  # pylint: disable=import-outside-toplevel
        frame = pl.concat(self._pieces[1:] if len(self._pieces) > 1 else self._pieces, rechunk=False)
        return frame if self._spec.kind == "DataFrame" else frame.to_series()


class PolarsColumn:
    """A DataFrame of polars'."""

    def __init__(self, frame: Any, where: str, kind: str) -> None:
        self._frame = frame
        self.rows = int(frame.height)
        self.spec = PolarsSpec(where, kind, self._stream(frame.clear()).tobytes())
        self._row_bytes = frame.estimated_size() / max(self.rows, 1)

    def adapt(self, spec: PolarsSpec) -> None:
        """`spec` is this one's, merged with others."""
        self.spec = spec

    def entries(self, begin: int, end: int) -> int:
        """Nothing that a builder has to know."""
        del begin, end
        return 0

    def nbytes(self, begin: int, end: int) -> int:
        """If all rows were as long."""
        return int((end - begin) * self._row_bytes)

    @staticmethod
    def _stream(frame: Any) -> memoryview:
        stream = io.BytesIO()
        frame.write_ipc_stream(stream)
        return stream.getbuffer()

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """These rows as a stream of polars'."""
        return [self._stream(self._frame.slice(begin, end - begin))]


# --- tables: trees of columns ---

Column = Union[ArrayColumn, CsrColumn, ArrowColumn, PolarsColumn]


@dataclasses.dataclass(frozen=True)
class Node:
    """How a table is made of its columns: the name of a function below, what else it takes, and what it is made of."""

    make: str
    where: str
    detail: Any
    children: Tuple[Any, ...]

    def merged(self, other: "Node") -> "Node":
        """For the rows of both, those of `other` after these. Raises Differs."""
        if not isinstance(other, Node):
            raise Differs(self.where, _NAMES[self.make], _name_of(other))
        if self.make != other.make:
            raise Differs(self.where, _NAMES[self.make], _NAMES[other.make])
        detail = self.detail
        if self.make == "index":
            _must_equal(self.where, list(detail[0]), list(other.detail[0]), "an index named ")
            detail = (detail[0], _joined(detail[1], other.detail[1]))
        else:
            _must_equal(self.where, _comparable(detail), _comparable(other.detail))
        if len(self.children) != len(other.children):
            raise Differs(self.where, f"{len(self.children)} parts", f"{len(other.children)}")
        return Node(self.make, self.where, detail, tuple(merged(*pair) for pair in zip(self.children, other.children)))


def merged(this: Any, other: Any) -> Any:
    """The spec of the rows of both specs. Raises Differs where there is none."""
    if isinstance(this, type(other)):
        return this.merged(other)
    raise Differs(this.where, _name_of(this), _name_of(other))


_NAMES = {"tuple": "a tuple", "list": "a list", "dict": "a dict", "none": "None", "series": "a pandas Series",
          "frame": "a pandas DataFrame", "index": "a pandas Index", "utc": "a column of times with a zone",
          "extension": "a column of a pandas extension type"}


def _name_of(spec: Any) -> str:
    if isinstance(spec, Node):
        return _NAMES[spec.make]
    if isinstance(spec, ArraySpec):
        return f"an array of {spec.dtype}"
    return {CategoricalSpec: "categories", CsrSpec: "a CSR matrix", ArrowSpec: "an Arrow table",
            PolarsSpec: "a polars table"}[type(spec)]


def _comparable(detail: Any) -> Any:
    """pandas' names of columns are compared as lists, for an Index has no single truth."""
    return list(detail) if hasattr(detail, "tolist") else detail


def _joined(this: Optional[range], other: Optional[range]) -> Optional[range]:
    """The range of an index that goes on in another one; None: it does not."""
    if this is None or other is None or this.step != other.step:
        return None
    if not this or not other:
        return other if not this else this
    return range(this.start, other.stop, this.step) if this.start + len(this) * this.step == other.start else None


def specs_of(spec: Any) -> List[Any]:
    """Of the columns, in the order of `flatten`."""
    if isinstance(spec, Node):
        return [one for child in spec.children for one in specs_of(child)]
    return [spec]


def assemble(spec: Any, values: Iterator[Any]) -> Any:
    """The table of what its columns' builders have made, in their order."""
    if not isinstance(spec, Node):
        return next(values)
    parts = [assemble(child, values) for child in spec.children]
    return _MAKE[spec.make](spec.detail, parts)


def _make_series(detail: Any, parts: List[Any]) -> Any:
    import pandas as pd  # pylint: disable=import-outside-toplevel
    values, index = parts
    return pd.Series(values, index=index, name=detail, copy=False)


def _make_frame(detail: Any, parts: List[Any]) -> Any:
    import pandas as pd  # pylint: disable=import-outside-toplevel
    # By number at first: names may be there twice.
    frame = pd.DataFrame(dict(enumerate(parts[:-1])), index=parts[-1], copy=False)
    frame.columns = detail
    return frame


def _make_index(detail: Any, parts: List[Any]) -> Any:
    import pandas as pd  # pylint: disable=import-outside-toplevel
    names, of_range = detail
    if of_range is not None:
        return pd.RangeIndex(of_range.start, of_range.stop, of_range.step, name=names[0])
    if len(parts) == 1:
        return pd.Index(parts[0], name=names[0], copy=False)
    return pd.MultiIndex.from_arrays(parts, names=list(names))


def _make_utc(detail: Any, parts: List[Any]) -> Any:
    import pandas as pd  # pylint: disable=import-outside-toplevel
    return pd.DatetimeIndex(parts[0], tz="UTC").tz_convert(detail).array


_MAKE: Dict[str, Callable[[Any, List[Any]], Any]] = {
    "tuple": lambda _, parts: tuple(parts),
    "list": lambda _, parts: list(parts),
    "dict": lambda keys, parts: dict(zip(keys, parts)),
    "none": lambda *_: None,
    "series": _make_series,
    "frame": _make_frame,
    "index": _make_index,
    "utc": _make_utc,
    "extension": lambda dtype, parts: dtype.__from_arrow__(parts[0]),
}


def flatten(table: Any, where: str = "the table", whole_index: bool = False) -> Tuple[Any, List[Any]]:
    """A table's spec, and its columns. With `whole_index` an index of pandas that is a range is a column like others, too, since
    another rank's may be none. Raises ValueError that says where something is that cannot be sent, or that lengths differ."""
    columns: List[Any] = []
    spec = _flat(table, where, columns, whole_index)
    lengths = {column.rows: column.spec.where for column in columns}
    if len(lengths) > 1:
        (one, this), (other, that) = list(lengths.items())[:2]
        raise ValueError(f"lengths differ: {this} has {one} rows, and {that} has {other}; expected the same number of rows in "
                         "all")
    if not columns:
        raise ValueError(f"{where} has nothing in it, expected {KINDS}")
    return spec, columns


def _kind_of(table: Any) -> Tuple[str, str]:
    """The package and the name of a table's class, the nearest one that is known."""
    for kind in type(table).__mro__:
        package = kind.__module__.split(".", maxsplit=1)[0]
        if package in ("scipy", "pandas", "polars", "pyarrow"):
            return package, kind.__name__
    return "", type(table).__name__


def _flat(table: Any, where: str, columns: List[Any], whole_index: bool) -> Any:
    package, name = _kind_of(table)
    column: Any
    if isinstance(table, np.ndarray):
        column = _array(table, where)
    elif type(table) in (tuple, list, dict):
        return _container(table, where, columns, whole_index)
    elif package == "scipy":
        if getattr(table, "format", "") != "csr":
            raise ValueError(f"{where} is a {type(table).__name__} of SciPy's, expected CSR: use .tocsr()")
        column = CsrColumn(table, where, name)
    elif package == "pandas" and name in ("DataFrame", "Series"):
        return _of_pandas(table, where, columns, whole_index)
    elif package == "polars" and name in ("DataFrame", "Series"):
        column = _of_polars(table, where, name)
    elif package == "pyarrow" and (name in ("Table", "RecordBatch", "ChunkedArray") or name.endswith("Array") or name == "Array"):
        column = _of_arrow(table, where, name)
    else:
        hint = ": use .collect()" if name == "LazyFrame" else ""
        raise ValueError(f"{where} is a {type(table).__module__}.{type(table).__name__}, expected {KINDS}{hint}")
    columns.append(column)
    return column.spec


def _array(array: NDArray[Any], where: str) -> ArrayColumn:
    if isinstance(array, (np.ma.MaskedArray, np.matrix)):
        raise ValueError(f"{where} is a {type(array).__name__}, expected a plain array: use .filled() or numpy.asarray()")
    if array.ndim == 0:
        raise ValueError(f"{where} is a single value, which has no rows: use numpy.array([value])")
    if array.dtype.hasobject:
        raise ValueError(f"{where} is an array of Python objects ({array.dtype}), expected numbers: use .astype()")
    return ArrayColumn(np.asarray(array), where)


def _container(table: Any, where: str, columns: List[Any], whole_index: bool) -> Node:
    kind = type(table).__name__
    items = list(table.items()) if isinstance(table, dict) else list(enumerate(table))
    children = []
    for key, part in items:
        inside = f"[{key!r}]" if where == "the table" else f"{where}[{key!r}]"
        if part is None:
            children.append(Node("none", inside, None, ()))
        else:
            children.append(_flat(part, inside, columns, whole_index))
    return Node(kind, where, tuple(key for key, _ in items) if kind == "dict" else len(items), tuple(children))


def _of_arrow(table: Any, where: str, name: str) -> ArrowColumn:
    pa = _arrow()
    if name == "Table":
        return ArrowColumn(table, where, name)
    if name == "RecordBatch":
        return ArrowColumn(pa.Table.from_batches([table]), where, name)
    return ArrowColumn(pa.table({"": table}), where, "ChunkedArray" if name == "ChunkedArray" else "Array")


def _of_polars(table: Any, where: str, name: str) -> PolarsColumn:
    frame = table if name == "DataFrame" else table.to_frame()
    for label, dtype in frame.schema.items():
        if str(dtype).startswith("Object"):
            raise ValueError(f"{where}, column {label!r} has Python objects (polars' Object), expected one of polars' own types: "
                             "use .cast()")
    return PolarsColumn(frame, where, name)


def _of_pandas(table: Any, where: str, columns: List[Any], whole_index: bool) -> Node:
    if hasattr(table, "columns"):
        prefix = "" if where == "the table" else f"{where}, "
        children = [_pandas_values(table.iloc[:, place], f"{prefix}column {label!r}", columns)
                    for place, label in enumerate(table.columns)]
        make, detail = "frame", table.columns
    else:
        children = [_pandas_values(table, where if table.name is None else f"column {table.name!r}", columns)]
        make, detail = "series", table.name
    index, where_index = table.index, "the index" if where == "the table" else f"{where}, the index"
    of_range = range(index.start, index.stop, index.step) if type(index).__name__ == "RangeIndex" else None
    # A frame without columns has its index alone to say how many rows there are; so it is a column then.
    if of_range is not None and not whole_index and children:
        levels: List[Any] = []
    elif index.nlevels > 1:
        levels = [_pandas_values(index.get_level_values(level).to_series(index=range(len(index))),
                                 f"{where_index}, level {level}", columns) for level in range(index.nlevels)]
    else:
        levels = [_pandas_values(index.to_series(index=range(len(index))), where_index, columns)]
    return Node(make, where, detail, (*children, Node("index", where_index, (tuple(index.names), of_range), tuple(levels))))


def _pandas_values(series: Any, where: str, columns: List[Any]) -> Any:
    dtype = series.dtype
    kind = type(dtype).__name__
    column: Any
    if isinstance(dtype, np.dtype):
        if dtype.hasobject:
            raise ValueError(f"{where} has Python objects (dtype object), expected numbers, categories or strings of pandas' "
                             "own: use .astype('category') or .astype('string')")
        column = ArrayColumn(series.to_numpy(), where)
    elif kind == "CategoricalDtype":
        column = CategoricalColumn(series.array, where)
    elif kind == "DatetimeTZDtype":
        column = ArrayColumn(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), where)
        columns.append(column)
        return Node("utc", where, dtype.tz, (column.spec,))
    else:
        if not hasattr(dtype, "__from_arrow__"):
            raise ValueError(f"{where} has the dtype {dtype}, which cannot be sent: use .astype()")
        try:
            pa = _arrow()
        except ImportError as error:
            raise ImportError(f"{where} has the dtype {dtype}, and to send it pyarrow is needed, which is not there ({error}): "
                              "pip install pyarrow, or use .astype()") from error
        column = ArrowColumn(pa.table({"": pa.array(series.array, from_pandas=True)}), where, "ChunkedArray")
        columns.append(column)
        return Node("extension", where, dtype, (column.spec,))
    columns.append(column)
    return column.spec


def share(spec: Any, begin: int, end: int) -> Any:
    """The spec of some rows of a table of this spec: what its index of pandas, a range, is then."""
    if not isinstance(spec, Node):
        return spec
    children = tuple(share(child, begin, end) for child in spec.children)
    detail = (spec.detail[0], spec.detail[1][begin:end]) if spec.make == "index" and spec.detail[1] is not None else spec.detail
    return Node(spec.make, spec.where, detail, children)


# --- pieces ---


def nbytes(columns: Sequence[Any], begin: int, end: int) -> int:
    """About as many as these rows of all columns take."""
    return sum(column.nbytes(begin, end) for column in columns)


_ALIGNMENT = 8


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def encode(columns: Sequence[Any], begin: int, end: int) -> NDArray[np.uint8]:
    """These rows of all columns: the sizes of buffers, then the buffers."""
    buffers = [np.frombuffer(buffer, np.uint8) if len(memoryview(buffer)) else np.empty(0, np.uint8)
               for column in columns for buffer in column.encode(begin, end)]
    sizes = [buffer.size for buffer in buffers]
    piece = np.empty(8 * len(sizes) + sum(map(_padded, sizes)), np.uint8)
    piece[:8 * len(sizes)] = np.array(sizes, np.uint64).view(np.uint8)
    place = 8 * len(sizes)
    for buffer in buffers:
        piece[place:place + buffer.size] = buffer
        piece[place + buffer.size:place + _padded(buffer.size)] = 0
        place += _padded(buffer.size)
    return piece


def pieces(columns: Sequence[Any], begin: int, end: int, piece_bytes: int) -> Iterator[Tuple[int, NDArray[np.uint8]]]:
    """Rows `begin` to `end`, in order: (number of rows, bytes). A piece has up to `piece_bytes`, or one row."""
    if begin >= end:
        return
    if end - begin > 1 and nbytes(columns, begin, end) > piece_bytes:
        middle = (begin + end) // 2
        yield from pieces(columns, begin, middle, piece_bytes)
        yield from pieces(columns, middle, end, piece_bytes)
        return
    yield end - begin, encode(columns, begin, end)


class Builder:
    """Puts a table together out of pieces in the order of their rows."""

    def __init__(self, spec: Any, rows: int, entries: Sequence[int]) -> None:
        """`entries`: each column's."""
        self._spec, self._specs = spec, specs_of(spec)
        self._builders = [one.builder(rows, count) for one, count in zip(self._specs, entries)]

    def add(self, rows: int, piece: Any) -> None:
        """The next rows. `piece` may be used again afterwards."""
        view = memoryview(piece).cast("B")
        count = sum(spec.buffers for spec in self._specs)
        sizes = iter(np.frombuffer(view[:8 * count], np.uint64).tolist())
        place = 8 * count
        for spec, builder in zip(self._specs, self._builders):
            buffers = []
            for _ in range(spec.buffers):
                size = next(sizes)
                buffers.append(view[place:place + size])
                place += _padded(size)
            builder.add(buffers, rows)

    def finish(self) -> Any:
        """The table."""
        return assemble(self._spec, (builder.finish() for builder in self._builders))

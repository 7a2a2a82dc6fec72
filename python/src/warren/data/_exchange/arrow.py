"""The `Column` for pyarrow tables. A whole table is one Column, since Arrow's streams contain all columns of a table."""
import dataclasses
from typing import Any, Dict, List, Sequence, Tuple

from warren.data._exchange.columns import Buffer, Builder, Column, Differs, Spec, must_equal


def pyarrow() -> Any:
    """Imports pyarrow with its compute functions, and returns it."""
    import pyarrow as pa  # pylint: disable=import-outside-toplevel
    import pyarrow.compute  # pylint: disable=import-outside-toplevel,unused-import
    return pa


def _wider(pa: Any, types: Sequence[Any], values: int) -> Any:
    """Returns an integer type for the codes of this many values: the common type of `types`, if there is one and it is wide enough, else
    int32 or int64."""
    if all(kind == types[0] for kind in types) and values <= 1 << (types[0].bit_width - 1):
        return types[0]
    return pa.int32() if values < 1 << 31 else pa.int64()


@dataclasses.dataclass(frozen=True)
class ArrowSpec(Spec):
    """The spec of a table's rows. It contains the dictionaries of dictionary-encoded columns, which are sent once."""

    kind: str
    schema: Any
    dictionaries: Tuple[Tuple[int, Any], ...]
    name = "an Arrow table"

    def sent_schema(self) -> Any:
        """The schema of the rows that are sent: dictionary columns have only their codes."""
        pa, schema = pyarrow(), self.schema
        for place, _ in self.dictionaries:
            field = schema.field(place)
            schema = schema.set(place, pa.field(field.name, field.type.index_type, True))
        return schema

    def merged(self, other: "ArrowSpec") -> "ArrowSpec":
        """Returns the spec for the rows of both specs. Each dictionary has the values of both, those of `self` first. Raises Differs."""
        pa = pyarrow()
        must_equal(self.where, self.kind, other.kind)
        must_equal(self.where, self.schema.names, other.schema.names, "columns ")
        schema, dictionaries, others = self.schema, [], dict(other.dictionaries)
        for place, (field, one) in enumerate(zip(self.schema, other.schema)):
            where = f"{self.where}, column {field.name!r}"
            if not (pa.types.is_dictionary(field.type) and pa.types.is_dictionary(one.type)):
                must_equal(where, field.type, one.type)
                schema = schema.set(place, field.with_nullable(field.nullable or one.nullable))
        for place, values in self.dictionaries:
            field, one = schema.field(place), other.schema.field(place)
            where = f"{self.where}, column {field.name!r}"
            must_equal(where, field.type.value_type, one.type.value_type, "a dictionary of ")
            must_equal(where, field.type.ordered, one.type.ordered, "ordered=")
            both = values if values.equals(others[place]) else pa.compute.unique(pa.concat_arrays([values, others[place]]))
            if field.type.ordered and both is not values:
                raise Differs(where, f"the ordered values {values.to_pylist()[:10]}", f"{others[place].to_pylist()[:10]}")
            codes = _wider(pa, [field.type.index_type, one.type.index_type], len(both))
            kind = pa.dictionary(codes, field.type.value_type, field.type.ordered)
            schema = schema.set(place, pa.field(field.name, kind, field.nullable or one.nullable, field.metadata))
            dictionaries.append((place, both))
        return dataclasses.replace(self, schema=schema, dictionaries=tuple(dictionaries))

    def builder(self, rows: int, entries: int) -> "ArrowBuilder":
        return ArrowBuilder(self)


class ArrowBuilder(Builder):
    """Keeps the received pieces unchanged: they become chunks of a table, without another copy. A RecordBatch or Array has no chunks, so
    making one from several pieces takes twice the memory."""

    def __init__(self, spec: ArrowSpec) -> None:
        self._spec, self._pieces = spec, [spec.sent_schema().empty_table()]

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        pa = pyarrow()
        # The bytes are copied, since the buffer also contains other columns and is reused.
        with pa.ipc.open_stream(pa.py_buffer(bytes(buffers[0]))) as reader:
            table, schema = reader.read_all(), self._spec.sent_schema()
        self._pieces.append(table if table.schema.equals(schema, check_metadata=True) else table.cast(schema))

    def finish(self) -> Any:
        pa, spec = pyarrow(), self._spec
        table = pa.concat_tables(self._pieces[1:] or self._pieces)
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


class ArrowColumn(Column):
    """A Table, or a RecordBatch, ChunkedArray or Array converted to a Table."""

    def __init__(self, table: Any, where: str, kind: str) -> None:
        pa = pyarrow()
        table = table.unify_dictionaries()
        dictionaries = []
        for place, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                column = table.column(place)
                values = column.chunk(0).dictionary if column.num_chunks else pa.array([], field.type.value_type)
                dictionaries.append((place, values))
        super().__init__(ArrowSpec(where, kind, table.schema, tuple(dictionaries)), int(table.num_rows))
        sent = self.spec.sent_schema()
        for place, _ in dictionaries:
            chunks = [chunk.indices for chunk in table.column(place).chunks]
            table = table.set_column(place, sent.field(place), pa.chunked_array(chunks, sent.field(place).type))
        self._table = table.replace_schema_metadata(None)
        self._new_codes: Dict[int, Any] = {}

    def adapt(self, spec: ArrowSpec) -> None:
        pa = pyarrow()
        for (place, own), (_, values) in zip(self.spec.dictionaries, spec.dictionaries):
            if not own.equals(values):
                self._new_codes[place] = pa.compute.index_in(own, value_set=values)
        self.spec = spec

    def nbytes(self, begin: int, end: int) -> int:
        """The size of these rows, without the overhead of a stream."""
        return int(self._table.slice(begin, end - begin).nbytes)

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """Returns these rows as a separate Arrow stream."""
        pa, rows = pyarrow(), self._table.slice(begin, end - begin)
        for place, new in self._new_codes.items():
            rows = rows.set_column(place, rows.schema.field(place).name, new.take(rows.column(place)))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return [sink.getvalue()]


def of_arrow(table: Any, where: str, name: str) -> ArrowColumn:
    """Returns the ArrowColumn for a table, batch or array, whose class is `name`."""
    pa = pyarrow()
    if name == "Table":
        return ArrowColumn(table, where, name)
    if name == "RecordBatch":
        return ArrowColumn(pa.Table.from_batches([table]), where, name)
    return ArrowColumn(pa.table({"": table}), where, "ChunkedArray" if name == "ChunkedArray" else "Array")

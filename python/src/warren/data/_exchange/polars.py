"""The `Column` for polars tables. A whole frame is one Column, since polars' streams contain all columns of a frame."""
import dataclasses
import io
from typing import Any, List, Sequence

from warren.data._exchange.columns import Buffer, Builder, Column, Spec, must_equal


def _decoded(stream: Any) -> Any:
    import polars as pl  # pylint: disable=import-outside-toplevel
    return pl.read_ipc_stream(io.BytesIO(stream))


def _encoded(frame: Any) -> memoryview:
    stream = io.BytesIO()
    frame.write_ipc_stream(stream)
    return stream.getbuffer()


@dataclasses.dataclass(frozen=True)
class PolarsSpec(Spec):
    """The spec of a DataFrame's rows; `empty` is a stream of the frame without rows."""

    kind: str
    empty: bytes
    name = "a polars table"

    def merged(self, other: "PolarsSpec") -> "PolarsSpec":
        must_equal(self.where, self.kind, other.kind)
        this, that = _decoded(self.empty), _decoded(other.empty)
        must_equal(self.where, this.columns, that.columns, "columns ")
        for name, dtype in this.schema.items():
            must_equal(f"{self.where}, column {name!r}", dtype, that.schema[name])
        return self

    def builder(self, rows: int, entries: int) -> "PolarsBuilder":
        return PolarsBuilder(self)


class PolarsBuilder(Builder):
    """Keeps the received pieces unchanged."""

    def __init__(self, spec: PolarsSpec) -> None:
        self._kind, self._pieces = spec.kind, [_decoded(spec.empty)]

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        self._pieces.append(_decoded(buffers[0]))

    def finish(self) -> Any:
        import polars as pl  # pylint: disable=import-outside-toplevel
        frame = pl.concat(self._pieces[1:] or self._pieces, rechunk=False)
        return frame if self._kind == "DataFrame" else frame.to_series()


class PolarsColumn(Column):
    """A DataFrame, or a Series converted to a DataFrame."""

    def __init__(self, frame: Any, where: str, kind: str) -> None:
        super().__init__(PolarsSpec(where, kind, _encoded(frame.clear()).tobytes()), int(frame.height))
        self._frame = frame
        self._row_bytes = frame.estimated_size() / max(self.rows, 1)

    def nbytes(self, begin: int, end: int) -> int:
        """Returns an estimate, which assumes rows of equal size."""
        return int((end - begin) * self._row_bytes)

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """Returns these rows as a polars stream."""
        return [_encoded(self._frame.slice(begin, end - begin))]


def of_polars(table: Any, where: str, kind: str) -> PolarsColumn:
    """Returns the column for a DataFrame or Series. Raises ValueError if it holds Python objects."""
    frame = table if kind == "DataFrame" else table.to_frame()
    for label, dtype in frame.schema.items():
        if str(dtype).startswith("Object"):
            raise ValueError(f"{where}, column {label!r} has Python objects (polars' Object), expected one of polars' own types: "
                             "use .cast()")
    return PolarsColumn(frame, where, kind)

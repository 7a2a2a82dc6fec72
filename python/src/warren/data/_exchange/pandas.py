"""pandas' frames, series and indices: trees of columns, each of which may have a different type."""
import dataclasses
from typing import Any, List, Optional, Type

import numpy as np
from numpy.typing import NDArray

from warren.data._exchange.arrays import ArrayBuilder, ArrayColumn, raw
from warren.data._exchange.arrow import ArrowColumn, pyarrow
from warren.data._exchange.columns import Buffer, Column, Differs, Node, Spec, must_equal


@dataclasses.dataclass(frozen=True)
class CategoricalSpec(Spec):
    """The spec of categorical rows: codes and their categories."""

    categories: Any
    ordered: bool
    name = "categories"

    def codes(self) -> "np.dtype[Any]":
        """The type of the codes."""
        return np.dtype(np.int8 if len(self.categories) < 1 << 7 else np.int16 if len(self.categories) < 1 << 15 else np.int32)

    def merged(self, other: "CategoricalSpec") -> "CategoricalSpec":
        """Returns a spec with the categories of both, those of `self` first. Raises Differs."""
        must_equal(self.where, self.categories.dtype, other.categories.dtype, "categories of ")
        must_equal(self.where, self.ordered, other.ordered, "ordered=")
        if self.categories.equals(other.categories):
            return self
        if self.ordered:
            raise Differs(self.where, f"the order of categories {list(self.categories)[:10]}", f"{list(other.categories)[:10]}")
        new = other.categories[~other.categories.isin(self.categories)]
        return dataclasses.replace(self, categories=self.categories.append(new))

    def builder(self, rows: int, entries: int) -> "CategoricalBuilder":
        return CategoricalBuilder(self, np.empty(rows, self.codes()))


class CategoricalBuilder(ArrayBuilder):
    """Fills an array of codes."""

    def __init__(self, spec: CategoricalSpec, array: NDArray[Any]) -> None:
        super().__init__(array)
        self._spec = spec

    def finish(self) -> Any:
        import pandas as pd  # pylint: disable=import-outside-toplevel
        return pd.Categorical.from_codes(self._array, categories=self._spec.categories, ordered=self._spec.ordered)


class CategoricalColumn(Column):
    """A categorical column. The code -1 means a missing value."""

    def __init__(self, categorical: Any, where: str) -> None:
        spec = CategoricalSpec(where, categorical.categories, bool(categorical.ordered))
        super().__init__(spec, len(categorical))
        self._codes = np.asarray(categorical.codes)
        self._new_codes: Optional[NDArray[Any]] = None

    def adapt(self, spec: CategoricalSpec) -> None:
        if len(spec.categories) != len(self.spec.categories):
            # The last element is -1. The code -1, which means a missing value, indexes this element, and so stays -1.
            self._new_codes = np.append(spec.categories.get_indexer(self.spec.categories), -1).astype(spec.codes())
        self.spec = spec

    def nbytes(self, begin: int, end: int) -> int:
        return int((end - begin) * self.spec.codes().itemsize)

    def encode(self, begin: int, end: int) -> List[Buffer]:
        codes = self._codes[begin:end]
        return [raw(codes.astype(self.spec.codes(), copy=False) if self._new_codes is None else self._new_codes[codes])]


class Series(Node):
    """Values and index; the detail is the series' name."""

    name = "a pandas Series"

    def make(self, parts: List[Any]) -> Any:
        import pandas as pd  # pylint: disable=import-outside-toplevel
        values, index = parts
        return pd.Series(values, index=index, name=self.detail, copy=False)


class Frame(Node):
    """Columns and index; the detail is the columns' names, an Index."""

    name = "a pandas DataFrame"

    def make(self, parts: List[Any]) -> Any:
        import pandas as pd  # pylint: disable=import-outside-toplevel
        # The columns are first named by numbers, because a name may occur twice.
        frame = pd.DataFrame(dict(enumerate(parts[:-1])), index=parts[-1], copy=False)
        frame.columns = self.detail
        return frame

    def merged_detail(self, other: "Frame") -> Any:
        must_equal(self.where, list(self.detail), list(other.detail))  # comparing two Index objects returns an array, not a bool
        return self.detail


class Index(Node):
    """The levels of an index. The detail is the levels' names, and the range of a range index, or None. The levels of a range index are present
    only if `of_pandas` sends them as columns."""

    name = "a pandas Index"

    def make(self, parts: List[Any]) -> Any:
        import pandas as pd  # pylint: disable=import-outside-toplevel
        names, of_range = self.detail
        if of_range is not None:
            return pd.RangeIndex(of_range.start, of_range.stop, of_range.step, name=names[0])
        if len(parts) == 1:
            return pd.Index(parts[0], name=names[0], copy=False)
        return pd.MultiIndex.from_arrays(parts, names=list(names))

    def merged_detail(self, other: "Index") -> Any:
        must_equal(self.where, list(self.detail[0]), list(other.detail[0]), "an index named ")
        return self.detail[0], _joined(self.detail[1], other.detail[1])

    def shared_detail(self, begin: int, end: int) -> Any:
        names, of_range = self.detail
        return names, None if of_range is None else of_range[begin:end]


def _joined(this: Optional[range], other: Optional[range]) -> Optional[range]:
    """Returns the range of both indices if the second continues the first or one is empty, else None."""
    if this is None or other is None or this.step != other.step:
        return None
    if not this or not other:
        return other if not this else this
    return range(this.start, other.stop, this.step) if this.start + len(this) * this.step == other.start else None


class Zoned(Node):
    """Times in UTC; the detail is their time zone."""

    name = "a column of times with a zone"

    def make(self, parts: List[Any]) -> Any:
        import pandas as pd  # pylint: disable=import-outside-toplevel
        return pd.DatetimeIndex(parts[0], tz="UTC").tz_convert(self.detail).array


class Extension(Node):
    """An Arrow array; the detail is the pandas type that it becomes."""

    name = "a column of a pandas extension type"

    def make(self, parts: List[Any]) -> Any:
        return self.detail.__from_arrow__(parts[0])


def of_pandas(table: Any, where: str, columns: List[Any], whole_index: bool) -> Node:
    """Returns the tree of a DataFrame or Series, and appends its columns to `columns`. With `whole_index`, a range index is sent as a
    column, too. Raises ValueError if any part cannot be sent."""
    kind: Type[Node]
    inside = "" if where == "the table" else f"{where}, "
    if hasattr(table, "columns"):
        children = [_values(table.iloc[:, place], f"{inside}column {label!r}", columns)
                    for place, label in enumerate(table.columns)]
        kind, detail = Frame, table.columns
    else:
        children = [_values(table, where if table.name is None else f"column {table.name!r}", columns)]
        kind, detail = Series, table.name
    index, where_index = table.index, f"{inside}the index"
    of_range = range(index.start, index.stop, index.step) if type(index).__name__ == "RangeIndex" else None
    levels: List[Any] = []
    # In a frame without columns, only the index determines the number of rows, so it is sent as a column.
    if of_range is None or whole_index or not children:
        places = range(len(index))
        for level in range(index.nlevels):
            of_level, name = (index, where_index) if index.nlevels == 1 else (
                index.get_level_values(level), f"{where_index}, level {level}")
            levels.append(_values(of_level.to_series(index=places), name, columns))
    return kind(where, detail, (*children, Index(where_index, (tuple(index.names), of_range), tuple(levels))))


def _values(series: Any, where: str, columns: List[Any]) -> Any:
    """The spec of a series' values, without its index."""
    column, wrapped = _column(series, where)
    columns.append(column)
    if wrapped is None:
        return column.spec
    kind, detail = wrapped
    return kind(where, detail, (column.spec,))


def _column(series: Any, where: str) -> Any:
    """Returns the column for a series without its index, and the class and detail of the node that wraps it; None instead of these if there is
    no such node. Raises ValueError if the dtype cannot be sent, and ImportError if sending it needs pyarrow, which is missing."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.hasobject:
            raise ValueError(f"{where} has Python objects (dtype object), expected numbers, categories or strings of pandas' "
                             "own: use .astype('category') or .astype('string')")
        return ArrayColumn(series.to_numpy(), where), None
    if type(dtype).__name__ == "CategoricalDtype":
        return CategoricalColumn(series.array, where), None
    if type(dtype).__name__ == "DatetimeTZDtype":
        return ArrayColumn(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), where), (Zoned, dtype.tz)
    if not hasattr(dtype, "__from_arrow__"):
        raise ValueError(f"{where} has the dtype {dtype}, which cannot be sent: use .astype()")
    try:
        pa = pyarrow()
    except ImportError as error:
        raise ImportError(f"{where} has the dtype {dtype}, which needs pyarrow to be sent, and pyarrow is not installed ({error}): "
                          "pip install pyarrow, or use .astype()") from error
    array = pa.table({"": pa.array(series.array, from_pandas=True)})
    return ArrowColumn(array, where, "ChunkedArray"), (Extension, dtype)

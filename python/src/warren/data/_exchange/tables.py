"""Splits tables of every kind into columns: NumPy arrays, SciPy CSR, pandas, polars, pyarrow; tuples, lists and dicts of them. A library is
imported only if a table belongs to it."""
from typing import Any, List, Tuple

import numpy as np

from warren.data._exchange.arrays import of_numpy, of_scipy
from warren.data._exchange.arrow import of_arrow
from warren.data._exchange.columns import Column, Node, must_equal
from warren.data._exchange.pandas import of_pandas
from warren.data._exchange.polars import of_polars

KINDS = ("NumPy arrays, SciPy CSR matrices, pandas, polars or pyarrow tables, or a tuple, list or dict of these with the same "
         "number of rows")


class Container(Node):
    """A tuple, list or dict. The detail consists of its class, and its length or keys."""

    @property
    def name(self) -> str:
        return f"a {self.detail[0].__name__}"

    def make(self, parts: List[Any]) -> Any:
        kind, keys = self.detail
        return dict(zip(keys, parts)) if kind is dict else kind(parts)

    def merged_detail(self, other: "Container") -> Any:
        must_equal(self.where, self.name, other.name)
        must_equal(self.where, self.detail[1], other.detail[1])
        return self.detail


class Nothing(Node):
    """None as an element of a container."""

    name = "None"

    def make(self, parts: List[Any]) -> Any:
        return None


def flatten(table: Any, whole_index: bool = False) -> Tuple[Any, List[Any]]:
    """Returns a table's spec and its columns. With `whole_index`, a pandas range index is sent as a column, too, since another rank's index
    may not be a range. Raises ValueError if a part cannot be sent, if parts differ in length, or if there is no column; the message names the
    part."""
    columns: List[Any] = []
    spec = _flat(table, "the table", columns, whole_index)
    lengths = {column.rows: column.spec.where for column in columns}
    if len(lengths) > 1:
        (one, this), (other, that) = list(lengths.items())[:2]
        raise ValueError(f"lengths differ: {this} has {one} rows, and {that} has {other}; expected the same number of rows in "
                         "all")
    if not columns:
        raise ValueError(f"the table is empty, expected {KINDS}")
    return spec, columns


def _flat(table: Any, where: str, columns: List[Any], whole_index: bool) -> Any:
    package, name = _kind_of(table)
    is_frame = name in ("DataFrame", "Series")
    column: Column
    if isinstance(table, np.ndarray):
        column = of_numpy(table, where)
    elif type(table) in (tuple, list, dict):
        return _container(table, where, columns, whole_index)
    elif package == "scipy":
        column = of_scipy(table, where, name)
    elif package == "pandas" and is_frame:
        return of_pandas(table, where, columns, whole_index)
    elif package == "polars" and is_frame:
        column = of_polars(table, where, name)
    elif package == "pyarrow" and (name in ("Table", "RecordBatch", "ChunkedArray") or name.endswith("Array")):
        column = of_arrow(table, where, name)
    else:
        hint = ": use .collect()" if name == "LazyFrame" else ""
        raise ValueError(f"{where} is a {type(table).__module__}.{type(table).__name__}, expected {KINDS}{hint}")
    columns.append(column)
    return column.spec


def _kind_of(table: Any) -> Tuple[str, str]:
    """The package and the name of a table's class, or of its nearest known base class."""
    for kind in type(table).__mro__:
        package = kind.__module__.split(".", maxsplit=1)[0]
        if package in ("scipy", "pandas", "polars", "pyarrow"):
            return package, kind.__name__
    return "", type(table).__name__


def _container(table: Any, where: str, columns: List[Any], whole_index: bool) -> Node:
    keys = tuple(table) if isinstance(table, dict) else tuple(range(len(table)))
    children = []
    for key in keys:
        inside = f"[{key!r}]" if where == "the table" else f"{where}[{key!r}]"
        part = table[key]
        children.append(Nothing(inside, None, ()) if part is None else _flat(part, inside, columns, whole_index))
    return Container(where, (type(table), keys if isinstance(table, dict) else len(keys)), tuple(children))

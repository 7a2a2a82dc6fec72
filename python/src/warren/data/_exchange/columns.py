"""The parts of a table: columns, and the tree whose leaves they are.

A column has a spec, which describes it without its rows and can be pickled. `encode` returns the bytes of some of its rows, and a builder,
made by the spec, reassembles the rows. A rank thus needs memory for no more than two pieces in addition to the rows. The specs of several
ranks are merged; each column then encodes its rows for the merged spec."""
import dataclasses
from typing import Any, Iterator, List, Sequence, Tuple

Buffer = Any  # bytes, or a contiguous array


class Differs(ValueError):
    """Raised if the rows of two ranks are of different kinds; describes both."""

    def __init__(self, where: str, this: str, other: str) -> None:
        super().__init__(f"{where}: {this} and {other}")
        self.where, self.this, self.other = where, this, other


def must_equal(where: str, this: Any, other: Any, what: str = "") -> None:
    """Raises Differs unless `this` and `other` are equal."""
    if this != other:
        raise Differs(where, f"{what}{this}", f"{what}{other}")


class Builder:
    """Assembles the rows of a column."""

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """Adds the next rows. The buffers are reused afterwards."""
        raise NotImplementedError

    def finish(self) -> Any:
        """Returns the array or table."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Spec:
    """The description of a column. The same on all ranks once it is merged."""

    where: str  #: the column's place in the table, for messages
    buffers = 1  # the number of buffers that `encode` returns

    @property
    def name(self) -> str:
        """The name for messages."""
        raise NotImplementedError

    def merged(self, other: Any) -> "Spec":
        """Returns the spec for the rows of both specs, which have the same class. Raises Differs."""
        raise NotImplementedError

    def builder(self, rows: int, entries: int) -> Builder:
        """Returns a builder for this number of rows and entries."""
        raise NotImplementedError


class Column:
    """A column whose rows can be sent."""

    def __init__(self, spec: Any, rows: int) -> None:
        self.spec, self.rows = spec, rows

    def adapt(self, spec: Any) -> None:
        """Sets the spec to `spec`, this column's spec merged with those of other ranks."""
        self.spec = spec

    def entries(self, begin: int, end: int) -> int:
        """The number of entries of these rows, if a builder needs it in addition to the number of rows."""
        del begin, end
        return 0

    def nbytes(self, begin: int, end: int) -> int:
        """The approximate size, in bytes, of the buffers that `encode` returns."""
        raise NotImplementedError

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """Returns the buffers of these rows."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Node:
    """The description of a table that consists of other tables or columns; a subclass for each kind."""

    where: str
    detail: Any  #: everything except the children
    children: Tuple[Any, ...]

    @property
    def name(self) -> str:
        """The name for messages."""
        raise NotImplementedError

    def make(self, parts: List[Any]) -> Any:
        """Returns the table made of `parts`, the tables of its children."""
        raise NotImplementedError

    def merged_detail(self, other: Any) -> Any:
        """The detail for the rows of both nodes. Raises Differs."""
        must_equal(self.where, self.detail, other.detail)
        return self.detail

    def shared_detail(self, begin: int, end: int) -> Any:
        """The detail for rows `begin` to `end`."""
        del begin, end
        return self.detail

    def merged(self, other: Any) -> "Node":
        """Returns the node for the rows of both nodes, those of `other` last. Raises Differs."""
        detail = self.merged_detail(other)
        if len(self.children) != len(other.children):
            raise Differs(self.where, f"{len(self.children)} parts", f"{len(other.children)}")
        return dataclasses.replace(self, detail=detail, children=tuple(map(merged, self.children, other.children)))


def merged(this: Any, other: Any) -> Any:
    """Returns the spec for the rows of both specs. Raises Differs if they cannot be combined."""
    if type(this) is not type(other):
        raise Differs(this.where, this.name, other.name)
    return this.merged(other)


def share(spec: Any, begin: int, end: int) -> Any:
    """Returns the spec for rows `begin` to `end` of a table with this spec. The two specs differ only if the table has a pandas range index."""
    if not isinstance(spec, Node):
        return spec
    children = tuple(share(child, begin, end) for child in spec.children)
    return dataclasses.replace(spec, detail=spec.shared_detail(begin, end), children=children)


def specs_of(spec: Any) -> List[Any]:
    """The specs of the columns, in the order of the flattened table's columns."""
    if isinstance(spec, Node):
        return [one for child in spec.children for one in specs_of(child)]
    return [spec]


def assemble(spec: Any, values: Iterator[Any]) -> Any:
    """Returns the table that `spec` describes. `values` yields the results of its columns' builders, in the order of the columns."""
    return spec.make([assemble(child, values) for child in spec.children]) if isinstance(spec, Node) else next(values)

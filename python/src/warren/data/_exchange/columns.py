"""What a table is taken apart into: columns, and the tree that they are the leaves of.

A column has a spec, which says what it is without its rows and can be pickled; `encode` gives the bytes of some of its rows, and
a builder, which the spec makes, puts rows together again. So nobody ever holds more than a piece besides the rows. Specs of
several ranks are merged; a column then encodes its rows for the merged spec.
"""
import dataclasses
from typing import Any, Iterator, List, Sequence, Tuple

Buffer = Any  # bytes, or a contiguous array


class Differs(ValueError):
    """Two ranks' rows are not of one kind: what this rank has, and what the other."""

    def __init__(self, where: str, this: str, other: str) -> None:
        super().__init__(f"{where}: {this} and {other}")
        self.where, self.this, self.other = where, this, other


def must_equal(where: str, this: Any, other: Any, what: str = "") -> None:
    """Raises Differs."""
    if this != other:
        raise Differs(where, f"{what}{this}", f"{what}{other}")


class Builder:
    """Puts the rows of a column together."""

    def add(self, buffers: Sequence[memoryview], rows: int) -> None:
        """The next rows. The buffers are used again afterwards."""
        raise NotImplementedError

    def finish(self) -> Any:
        """The array or table."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a column is. Equal on all ranks once it is merged."""

    where: str  #: for messages
    buffers = 1  # how many `encode` gives

    @property
    def name(self) -> str:
        """For messages."""
        raise NotImplementedError

    def merged(self, other: Any) -> "Spec":
        """For rows of both, which are of one class. Raises Differs."""
        raise NotImplementedError

    def builder(self, rows: int, entries: int) -> Builder:
        """Of so many rows with so many entries."""
        raise NotImplementedError


class Column:
    """Rows that can be sent."""

    def __init__(self, spec: Any, rows: int) -> None:
        self.spec, self.rows = spec, rows

    def adapt(self, spec: Any) -> None:
        """`spec` is this one's, merged with others."""
        self.spec = spec

    def entries(self, begin: int, end: int) -> int:
        """What a builder has to know of these rows besides their number."""
        del begin, end
        return 0

    def nbytes(self, begin: int, end: int) -> int:
        """About as many as `encode` gives."""
        raise NotImplementedError

    def encode(self, begin: int, end: int) -> List[Buffer]:
        """These rows."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Node:
    """What a table, which is no column itself, is made of; a class for each kind."""

    where: str
    detail: Any  #: what it takes besides its children
    children: Tuple[Any, ...]

    @property
    def name(self) -> str:
        """For messages."""
        raise NotImplementedError

    def make(self, parts: List[Any]) -> Any:
        """The table, of what was made of the children."""
        raise NotImplementedError

    def merged_detail(self, other: Any) -> Any:
        """For the rows of both. Raises Differs."""
        must_equal(self.where, self.detail, other.detail)
        return self.detail

    def shared_detail(self, begin: int, end: int) -> Any:
        """For these of the rows."""
        del begin, end
        return self.detail

    def merged(self, other: Any) -> "Node":
        """For the rows of both, those of `other` after these. Raises Differs."""
        detail = self.merged_detail(other)
        if len(self.children) != len(other.children):
            raise Differs(self.where, f"{len(self.children)} parts", f"{len(other.children)}")
        return dataclasses.replace(self, detail=detail, children=tuple(map(merged, self.children, other.children)))


def merged(this: Any, other: Any) -> Any:
    """The spec of the rows of both specs. Raises Differs where there is none."""
    if type(this) is not type(other):
        raise Differs(this.where, this.name, other.name)
    return this.merged(other)


def share(spec: Any, begin: int, end: int) -> Any:
    """The spec of some rows of a table of this spec: what its index of pandas, a range, is then."""
    if not isinstance(spec, Node):
        return spec
    children = tuple(share(child, begin, end) for child in spec.children)
    return dataclasses.replace(spec, detail=spec.shared_detail(begin, end), children=children)


def specs_of(spec: Any) -> List[Any]:
    """Of the columns, in the order in which they were taken out."""
    if isinstance(spec, Node):
        return [one for child in spec.children for one in specs_of(child)]
    return [spec]


def assemble(spec: Any, values: Iterator[Any]) -> Any:
    """The table of what its columns' builders have made, in their order."""
    return spec.make([assemble(child, values) for child in spec.children]) if isinstance(spec, Node) else next(values)

"""Summarizes each worker's share of a data set in a printed table, before training starts."""
import functools
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from warren._system.printable import printable
from warren.data._peers import Peers
from warren.data._table import Table

#: The environment variable that `dmlc-submit --check-data` sets.
VARIABLE = "WARREN_CHECK_DATA"
#: The maximum number of columns that are shown; further ones are only counted.
_MOST_COLUMNS = 60


class Range(NamedTuple):
    """The range, sum and number of a column's values, without missing ones."""

    least: float
    greatest: float
    total: float
    number: int

    @staticmethod
    def of(values: NDArray[Any]) -> "Range":
        """Returns the range of `values`, in which NaN means a missing value."""
        kept = values[~np.isnan(values)] if values.dtype.kind == "f" else values
        if kept.size == 0:
            return Range(np.inf, -np.inf, 0.0, 0)
        return Range(float(kept.min()), float(kept.max()), float(kept.sum(dtype="float64")), int(kept.size))

    def joined(self, other: "Range") -> "Range":
        """The range of the values of both ranges."""
        return Range(min(self.least, other.least), max(self.greatest, other.greatest), self.total + other.total,
                     self.number + other.number)

    def shown(self) -> str:
        """Formats the range: minimum, maximum and mean."""
        return f"{self.least:g} to {self.greatest:g}, mean {self.total / self.number:.4g}" if self.number else "none"


class Summary(NamedTuple):
    """The summary of one worker's share."""

    rows: int
    label: Optional[Range]
    weight: Optional[Range]
    queries: Optional[int]
    columns: List[Tuple[str, str, Range]]  #: the name, type and range of each column; empty for text with too many columns
    entries: int  #: the number of values that are not missing


def summary(table: Table) -> Summary:
    """Returns the summary of a table. Reads all values."""
    rows, width = table.features.shape
    names = table.names or [str(column) for column in range(width)]
    types = table.types or ["q"] * width
    if isinstance(table.features, np.ndarray):
        columns = [(name, kind, Range.of(table.features[:, at])) for at, (name, kind) in enumerate(zip(names, types))]
    else:
        # A text file has a column for each feature number: usually too many to list.
        by_column = table.features.tocsc() if width <= _MOST_COLUMNS else None
        columns = [] if by_column is None else [
            (name, kind, Range.of(by_column.data[by_column.indptr[at]:by_column.indptr[at + 1]]))
            for at, (name, kind) in enumerate(zip(names, types))]
    sizes = table.group_sizes
    entries = sum(one[2].number for one in columns) if isinstance(table.features, np.ndarray) else int(table.features.nnz)
    return Summary(rows, None if table.label is None else Range.of(table.label.ravel()),
                   None if table.weight is None else Range.of(table.weight), None if sizes is None else len(sizes), columns, entries)


def added(before: Summary, more: Summary) -> Summary:
    """Returns the summary of two consecutive parts of one worker's share. A query that continues in the second part is counted twice."""
    def both(one: Optional[Range], other: Optional[Range]) -> Optional[Range]:
        return None if one is None or other is None else one.joined(other)

    return Summary(before.rows + more.rows, both(before.label, more.label), both(before.weight, more.weight),
                   None if before.queries is None or more.queries is None else before.queries + more.queries,
                   [(name, kind, found.joined(other[2])) for (name, kind, found), other in zip(before.columns, more.columns)],
                   before.entries + more.entries)


def report(uri: str, width: int, workers: List[Summary], categories: Dict[str, List[Any]]) -> str:
    """Formats the table to be printed. A pure function."""
    rows = sum(one.rows for one in workers)
    lines = [f"{uri}: {rows:,} rows, {width:,} features, {len(workers)} worker{'s' if len(workers) > 1 else ''}"]
    cells = [["worker", "rows", "share", "values", "label", "weight", "queries"]]
    for rank, one in enumerate(workers):
        cells.append([str(rank), f"{one.rows:,}", f"{100 * one.rows / rows:.1f} %" if rows else "-", f"{one.entries:,}",
                      "-" if one.label is None else one.label.shown(), "-" if one.weight is None else one.weight.shown(),
                      "-" if one.queries is None else f"{one.queries:,}"])
    lines += _aligned(cells)
    joined = functools.reduce(added, workers).columns
    cells = [["feature", "type", "missing", "range"]]
    kinds = {"q": "number", "int": "whole", "i": "yes/no", "c": "category"}
    for name, kind, found in joined[:_MOST_COLUMNS]:
        missing = f"{100 * (1 - found.number / rows):.1f} %" if rows else "-"
        values = categories.get(name)
        what = found.shown() if values is None else f"{len(values):,}: " + ", ".join(map(str, values[:5])) + (", ..." if len(values) > 5 else "")
        cells.append([name, kinds[kind], missing, what])
    if joined:
        lines += _aligned(cells)
    if len(joined) > _MOST_COLUMNS:
        lines.append(f"  and {len(joined) - _MOST_COLUMNS:,} more")
    without = [str(rank) for rank, one in enumerate(workers) if one.rows == 0]
    if without:
        lines.append(f"  without rows: worker {', '.join(without)}")
    constant = [name for name, _, found in joined if found.number and found.least == found.greatest]
    if constant:
        lines.append(f"  the same everywhere: {', '.join(constant[:12])}{' and more' if len(constant) > 12 else ''}")
    return "\n".join(map(printable, lines))


def _aligned(cells: List[List[str]]) -> List[str]:
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]


def wanted(check: Optional[bool]) -> bool:
    """Whether to print the table: `check` or, by default (None), whether the job was started with --check-data."""
    return os.environ.get(VARIABLE, "0") not in ("", "0") if check is None else check


def show(uri: str, table: Table, peers: Peers) -> None:
    """Prints the summary of a data set on rank 0's standard error; `table` is this worker's share. A collective call if `peers` are connected;
    otherwise each rank prints the summary of its own share."""
    tell(uri, int(table.features.shape[1]), summary(table), peers, table.categories)


def tell(uri: str, width: int, ours: Summary, peers: Peers, categories: Dict[str, List[Any]]) -> None:
    """Like `show`, but takes the summary of this worker's share."""
    workers = peers.allgather(ours, objects=True) if peers.connected else [ours]
    if peers.rank == 0 or not peers.connected:
        print(report(uri, width, workers, categories), file=sys.stderr, flush=True)

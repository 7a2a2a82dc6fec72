"""Which rows of a data set are whose: pure functions over what is known of its files.

A data set is a list of pieces: the row groups of Parquet files, the record batches of Arrow files, ranges of CSV files. Laid end
to end they are its rows, in an order that depends on the files and the seed alone. The list is cut into one share a worker, by
bytes; so the shares of any number of workers, one after the other, are the same rows in the same order, each of them once.
"""
import bisect
import itertools
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

#: A cut moves to the nearest end of a piece where that changes a worker's share by less than this part of it; else the piece is
#: read by the workers on both sides, each of which keeps its own rows: reading happens once, unequal shares cost time each round.
SNAP = 1 / 64


class Piece(NamedTuple):
    """What is read at a time."""

    file: int  #: its number in the list of files
    place: int  #: within the file, from 0
    rows: int  #: -1: not known before it is read
    size: int  #: in bytes
    begin: int = 0  #: of CSV: its first byte in the file


class Cut(NamedTuple):
    """Before row `row` of piece `piece`; the end of all is (number of pieces, 0)."""

    piece: int
    row: int


class Slice(NamedTuple):
    """Rows `begin` up to `end` of a piece; end None: all that follow."""

    piece: Piece
    number: int  #: of the piece in the order of the data set
    begin: int
    end: Optional[int]


def ordered(pieces: Sequence[Piece], seed: Optional[int], whole_files: bool) -> List[Piece]:
    """The pieces in the seed's order, those without rows left out. With `whole_files` files are shuffled, and each keeps its order.
    Seeds and orders are those of NumPy's RandomState, which stay the same between its versions."""
    kept = [piece for piece in pieces if piece.rows != 0]
    if seed is None:
        return kept
    units = [list(of_one) for _, of_one in itertools.groupby(kept, key=lambda piece: piece.file)] if whole_files \
        else [[piece] for piece in kept]
    order = np.random.RandomState(seed % 2**32).permutation(len(units))
    return [piece for unit in order for piece in units[unit]]


def rows_in_order(piece: Piece, rows: int, seed: int) -> NDArray[Any]:
    """The order of the rows within a shuffled piece: a permutation of 0 to rows - 1, int64."""
    return np.random.RandomState([seed % 2**32, piece.file, piece.place % 2**32]).permutation(rows)


def cut(pieces: Sequence[Piece], world: int, number: int) -> Cut:
    """Where share `number` of `world` begins (`number` = world: where the last one ends)."""
    if number <= 0:
        return Cut(0, 0)
    ends = list(itertools.accumulate(piece.size for piece in pieces))
    if number >= world or not ends:
        return Cut(len(pieces), 0)
    # Bytes times world, which are whole numbers.
    place = number * ends[-1]
    at = bisect.bisect_right(ends, place // world)
    if at == len(pieces):
        return Cut(at, 0)
    piece = pieces[at]
    before, behind = place - (ends[at] - piece.size) * world, ends[at] * world - place
    if piece.rows < 0 or min(before, behind) <= SNAP * ends[-1]:
        return Cut(at, 0) if before <= behind else Cut(at + 1, 0)
    row = round(piece.rows * before / (piece.size * world))
    return Cut(at, row) if row < piece.rows else Cut(at + 1, 0)


def cut_between_queries(place: Cut, count: int, queries_of: Callable[[int], NDArray[Any]],
                        may_go_on: Callable[[int], bool] = lambda _: True) -> Cut:
    """`place`, or where the query that it would tear begins. `queries_of`: the query of each row of a piece, by its number.
    `may_go_on(k)`: whether a query of piece k - 1 may go on in piece k (not where a shuffled file begins)."""
    piece, row = place
    while piece < count and row >= len(queries_of(piece)):
        piece, row = piece + 1, 0  # none of its rows is behind the cut
    if piece == count:
        return Cut(count, 0)
    query = queries_of(piece)[row]
    while True:
        different = np.flatnonzero(queries_of(piece)[:row] != query)
        if different.size:
            return Cut(piece, int(different[-1]) + 1)
        if piece == 0 or not may_go_on(piece):
            return Cut(piece, 0)
        before = queries_of(piece - 1)
        if len(before) and before[-1] != query:
            return Cut(piece, 0)
        piece, row = piece - 1, len(before)


def share(pieces: Sequence[Piece], begin: Cut, end: Cut) -> List[Slice]:
    """What lies between two cuts."""
    found = []
    for number in range(begin.piece, min(end.piece + 1, len(pieces))):
        first = begin.row if number == begin.piece else 0
        last = end.row if number == end.piece else None
        if last is None or first < last:
            found.append(Slice(pieces[number], number, first, last))
    return found


def group_sizes(queries: NDArray[Any]) -> Tuple[NDArray[Any], Optional[int]]:
    """How many rows each query has, uint32, in order; and the first row of a query that was there before and had ended, if
    there is one."""
    if len(queries) == 0:
        return np.empty(0, "uint32"), None
    starts = np.concatenate([[0], np.flatnonzero(queries[1:] != queries[:-1]) + 1])
    sizes = np.diff(np.concatenate([starts, [len(queries)]])).astype("uint32")
    _, first = np.unique(queries[starts], return_index=True)
    again = np.setdiff1d(np.arange(len(starts)), first)
    return sizes, int(starts[again[0]]) if again.size else None

"""Division of a data set's rows among workers: pure functions of the files' metadata.

A data set is a list of pieces: the row groups of Parquet files, the record batches of Arrow files, ranges of CSV files. Concatenated, the
pieces contain all rows, in an order that depends only on the files and the seed. The list is cut into one share for each worker, by bytes;
so the concatenated shares of any number of workers are the same rows in the same order, each row once."""
import bisect
import itertools
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

#: A cut moves to the nearest boundary of a piece if that changes a worker's share by at most this fraction, or if the piece's row count is
#: unknown. Otherwise the workers on both sides read the piece, and each keeps its own rows: the extra read happens once, whereas unequal
#: shares cost time in every round.
SNAP = 1 / 64


class Piece(NamedTuple):
    """The unit of reading."""

    file: int  #: index in the list of files
    place: int  #: index within the file
    rows: int  #: -1 if unknown until it is read
    size: int  #: in bytes
    begin: int = 0  #: for CSV: the offset of the first byte in the file


class Cut(NamedTuple):
    """A cut before row `row` of piece `piece`; the end of the data set is (number of pieces, 0)."""

    piece: int
    row: int


class Slice(NamedTuple):
    """The rows of a piece from `begin` up to, but not including, `end`; None means the end of the piece."""

    piece: Piece
    number: int  #: the index of the piece in the order of the data set
    begin: int
    end: Optional[int]


def ordered(pieces: Sequence[Piece], seed: Optional[int], whole_files: bool) -> List[Piece]:
    """Returns the pieces without empty ones, shuffled with the seed, or in the given order if it is None. With `whole_files`, files are
    shuffled, and each keeps the order of its pieces. The order comes from NumPy's RandomState, whose results do not depend on NumPy's
    version."""
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
    """The cut at which share `number` of `world` begins; for `number` = world, the end of the last share."""
    if number <= 0:
        return Cut(0, 0)
    ends = list(itertools.accumulate(piece.size for piece in pieces))
    if number >= world or not ends:
        return Cut(len(pieces), 0)
    # All positions are multiplied by `world`, which makes them whole numbers.
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
    """Returns `place`, or the start of the query that it would split. `queries_of` returns the query of each row of a piece.
    `may_go_on(k)`: whether a query of piece k - 1 may continue in piece k (not at the start of a shuffled file)."""
    piece, row = place
    while piece < count and row >= len(queries_of(piece)):
        piece, row = piece + 1, 0  # the piece has no rows after the cut
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
    """The slices between two cuts."""
    found = []
    for number in range(begin.piece, min(end.piece + 1, len(pieces))):
        first = begin.row if number == begin.piece else 0
        last = end.row if number == end.piece else None
        if last is None or first < last:
            found.append(Slice(pieces[number], number, first, last))
    return found

"""Sends pieces of rows from one rank to another. No rank needs memory for more than its rows and two pieces."""
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from warren._engine import sealed as _sealed
from warren.data import _peers
from warren.data._exchange.columns import Differs, merged, specs_of
from warren.data._exchange.pieces import Memory, pieces
from warren.data._exchange.tables import flatten

PIECE_BYTES = 64 << 20
_PLAN = "warren.data.gather"

Pieces = Iterator[Tuple[int, NDArray[np.uint8]]]


class Transfer:
    """Sends pieces from one rank to another. After an error on this rank its pieces are skipped, so that all ranks can continue and reach
    the end of the transfer."""

    def __init__(self, peers: _peers.Peers, piece_bytes: int) -> None:
        self._peers, self._piece_bytes = peers, piece_bytes
        self._memory = Memory()
        self._move_to_one: Optional[Callable[..., None]] = getattr(peers, "move", None)
        self.error: Optional[BaseException] = None

    def attempt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns the function's result, or None if this call or an earlier one has failed."""
        if self.error is None:
            try:
                return function(*arguments)
            except Exception as error:  # pylint: disable=broad-except
                self.error = error
        return None

    def agree(self) -> None:
        """A collective call. If any rank has failed, raises the error of the lowest failed rank on all ranks."""
        _peers.agree(self._peers, self.error)

    def rows(self, begin: int, end: int, source: int, to: int, columns: Sequence[Any], take: Callable[[int, Any], None]) -> None:
        """Sends rows `begin` to `end` of `columns` from rank `source` to rank `to`, where `take` is called with each piece. A collective call;
        `columns` matters only on `source`."""
        rank = self._peers.rank
        if source == to:
            if rank == to:
                for rows, piece in self._pieces(columns, begin, end):
                    self.attempt(take, rows, piece)
        elif begin < end and (rank in (source, to) or not self._move_to_one):
            if rank == source:
                self._send(self._pieces(columns, begin, end), source, to)
            else:
                self._receive(end - begin, source, to, take)

    def _pieces(self, columns: Sequence[Any], begin: int, end: int) -> Pieces:
        """Yields these rows in pieces, until an error occurs."""
        found = pieces(columns, begin, end, self._piece_bytes, self._memory)
        while (piece := self.attempt(next, found, None)) is not None:
            yield piece

    def _move(self, array: NDArray[np.uint8], source: int, to: int) -> None:
        if self._move_to_one:
            self._move_to_one(array, source, to)
        else:
            self._peers.broadcast_bytes(array, source)

    def _send(self, mine: Pieces, source: int, to: int) -> None:
        for rows, piece in mine:
            self._move(np.array([rows, piece.size], np.uint64).view(np.uint8), source, to)
            self._move(piece, source, to)
        if self.error is not None:
            self._move(np.zeros(16, np.uint8), source, to)  # zero rows: no more follow

    def _receive(self, count: int, source: int, to: int, take: Callable[[int, Any], None]) -> None:
        header = np.empty(2, np.uint64)
        while count > 0:
            self._move(header.view(np.uint8), source, to)
            rows, size = header.tolist()
            if rows == 0:
                return
            piece = self._memory.take(size)
            self._move(piece, source, to)
            if self._peers.rank == to:
                self.attempt(take, rows, piece)
            count -= rows

    def gather(self, rows: Any, root: int, begin: Callable[[Any, Sequence[int], Sequence[int]], None],
               take: Callable[[int, Any], None]) -> None:
        """Sends the rows of all ranks to the root. There, calls `begin` with the spec, the row count of each rank and the total number of
        entries of each column, and then `take` with each piece, in rank order. Calls neither if `rows` is None on all ranks. A collective call;
        call `agree` afterwards."""
        peers = self._peers
        spec, columns = (self.attempt(_flat_rows, rows) or (None, [])) if rows is not None else (None, [])
        self.agree()
        count = columns[0].rows if columns else 0
        plan = (spec, [column.entries(0, count) for column in columns])
        own = self.attempt(_sealed.seal, plan, _PLAN, peers.rank)
        self.agree()
        told = peers.allgather((count, bytes(own)))
        spec, entries = self.attempt(_merged, [plan for _, plan in told]) or (None, [])
        self.agree()
        if spec is None:
            return
        counts = [number for number, _ in told]
        self.attempt(_adapt, columns, spec)
        if peers.rank == root:
            self.attempt(begin, spec, counts, entries)
        self.agree()
        for rank, number in enumerate(counts):
            self.rows(0, number, rank, root, columns, take)


def _flat_rows(rows: Any) -> Tuple[Any, List[Any]]:
    if np.isscalar(rows):
        raise ValueError(f"gather takes rows, but {rows!r} is a single value: use numpy.array([value])")
    return flatten(rows, whole_index=True)


def _merged(plans: Sequence[bytes]) -> Tuple[Any, List[int]]:
    """Returns the spec of all ranks' rows, and the total number of entries of each column."""
    whole: Any = None
    totals: List[int] = []
    first = 0
    for rank, plan in enumerate(plans):
        spec, entries = _sealed.loads(plan, _PLAN, rank)
        if spec is None:
            continue
        if whole is None:
            whole, totals, first = spec, list(entries), rank
            continue
        try:
            whole = merged(whole, spec)
        except Differs as error:
            raise ValueError(f"rank {first} and rank {rank} differ in {error.where}: {error.this} on rank {first}, {error.other} "
                             f"on rank {rank}; expected the same on all ranks") from None
        totals = [total + count for total, count in zip(totals, entries)]
    return whole, totals


def _adapt(columns: Sequence[Any], spec: Any) -> None:
    for column, one in zip(columns, specs_of(spec)):
        column.adapt(one)

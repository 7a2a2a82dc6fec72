"""Rows that one rank has, shared out to all; and rows of all ranks, brought together on one.

Both send pieces: nobody needs memory for more than its rows and two pieces. Over Warren's communicators each rank gets its own
rows alone; others, XGBoost's among them, have broadcasts only, and each rank passes over what is not its own. Every error of one
rank is raised on all of them.
"""
import pickle
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from warren.data import _peers, _kinds

PIECE_BYTES = 64 << 20


def even_cuts(rows: int, world: int) -> List[int]:
    """Where each rank's share begins, and at last where the last one ends: contiguous shares in rank order, the first ones longer
    by a row where it does not come out even."""
    return [rank * (rows // world) + min(rank, rows % world) for rank in range(world + 1)]


def group_cuts(sizes: NDArray[Any], world: int) -> Tuple[List[int], List[int]]:
    """The same for rows in groups that stay whole: cuts as rows, and as groups. Each cut is the end of a group nearest to where
    it would be between rows, the earlier one of two."""
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    wanted = np.array(even_cuts(int(ends[-1]), world), np.int64)
    after = np.searchsorted(ends, wanted)
    before = np.maximum(after - 1, 0)
    groups = np.where(wanted - ends[before] <= ends[after] - wanted, before, after)
    groups[0], groups[-1] = 0, len(sizes)
    return [int(row) for row in ends[groups]], [int(group) for group in groups]


def _checked_group(group: Any, rows: int) -> NDArray[Any]:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" and sizes.size:
        raise ValueError(f"group is an array of {sizes.dtype} with {sizes.ndim} dimensions, expected the number of rows of "
                         "each query")
    sizes = sizes.astype(np.int64)
    if sizes.size and sizes.min() < 0:
        raise ValueError(f"group[{int(sizes.argmin())}] is {int(sizes.min())}, expected a number of rows")
    if sizes.sum() != rows:
        raise ValueError(f"group has queries of {int(sizes.sum())} rows together, and the table has {rows} rows")
    return sizes


def _checked_bytes(piece_bytes: Any) -> int:
    if isinstance(piece_bytes, bool) or not isinstance(piece_bytes, (int, np.integer)) or piece_bytes < 1:
        raise ValueError(f"piece_bytes is {piece_bytes!r}, expected a number of bytes from 1 on")
    return int(piece_bytes)


def _agree_on_root(peers: _peers.Peers, root: Any, what: str, given: bool, piece_bytes: Any) -> None:
    """All ranks raise the same ValueError, or none does."""
    error: Optional[BaseException] = None
    try:
        _peers.check_root(root, peers.world)
        _checked_bytes(piece_bytes)
    except ValueError as found:
        error = found
    _peers.agree(peers, error)
    said = peers.allgather((int(root), given))
    roots = [one for one, _ in said]
    if len(set(roots)) > 1:
        other = next(rank for rank, one in enumerate(roots) if one != roots[0])
        raise ValueError(f"{what}: rank 0 has root={roots[0]}, and rank {other} has root={roots[other]}; expected the same one")
    for rank, (_, gives) in enumerate(said):
        if what == "scatter" and gives != (rank == root):
            raise ValueError(f"scatter: rank {rank} gives a table, and the root is rank {root}; expected None" if gives else
                             f"scatter: rank {rank} is the root and gives None; expected a table")


Pieces = Iterator[Tuple[int, NDArray[np.uint8]]]


class Transfer:
    """Pieces from one rank to another. After an error of this rank its pieces are passed over, so that the others go on, and all
    come to the end."""

    def __init__(self, peers: _peers.Peers) -> None:
        self._peers = peers
        self._move: Optional[Callable[..., Any]] = getattr(peers, "move", None)
        self.error: Optional[BaseException] = None

    def attempt(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result; None after an error, this one's or one before."""
        if self.error is None:
            try:
                return function(*arguments)
            except Exception as error:  # pylint: disable=broad-except
                self.error = error
        return None

    def agree(self) -> None:
        """Raises the first error of any rank on all. A collective call."""
        _peers.agree(self._peers, self.error)

    def _moved(self, piece: Any, size: int, source: int, to: int) -> Any:
        return self._move(piece, size, source, to) if self._move else self._peers.broadcast_bytes(piece, size, source)

    def rows(self, count: int, source: int, to: int, mine: Optional[Pieces], take: Callable[[int, Any], None]) -> None:
        """`count` rows from `source`, whose pieces `mine` are, to `to`, which takes them. All ranks call it."""
        rank = self._peers.rank
        if source == to:
            if rank == to:
                for rows, piece in self._produced(mine):
                    self.attempt(take, rows, piece)
        elif count and (rank in (source, to) or not self._move):
            if rank == source:
                self._send(mine, source, to)
            else:
                self._receive(count, source, to, take)

    def _produced(self, mine: Optional[Pieces]) -> Pieces:
        """`mine` up to an error."""
        assert mine is not None
        while (found := self.attempt(next, mine, None)) is not None:
            yield found

    def _send(self, mine: Optional[Pieces], source: int, to: int) -> None:
        for rows, piece in self._produced(mine):
            self._moved(np.array([rows, piece.size], np.uint64).view(np.uint8).data, 16, source, to)
            self._moved(piece.data, piece.size, source, to)
            del piece
        if self.error is not None:
            self._moved(bytes(16), 16, source, to)  # no rows: there will be none

    def _receive(self, count: int, source: int, to: int, take: Callable[[int, Any], None]) -> None:
        while count > 0:
            rows, size = np.frombuffer(self._moved(None, 16, source, to), np.uint64).tolist()
            if rows == 0:
                return
            piece = self._moved(None, size, source, to)
            if self._peers.rank == to:
                self.attempt(take, rows, piece)
            count -= rows
            del piece

    def gather(self, rows: Any, root: int, piece_bytes: int, begin: Callable[[Any, Sequence[int], Sequence[int]], None],
               take: Callable[[int, Any], None]) -> Any:
        """All ranks' rows to the root, which is told of what comes (`begin`: spec, rows of each rank, entries of each column),
        and then takes the pieces in rank order. All ranks call it, and `agree` afterwards. Returns the spec; None: no rank has
        rows, and nothing comes."""
        peers = self._peers
        spec, columns = (self.attempt(_flat_rows, rows) or (None, [])) if rows is not None else (None, [])
        self.agree()
        count = columns[0].rows if columns else 0
        own = pickle.dumps((spec, [column.entries(0, count) for column in columns]), protocol=pickle.HIGHEST_PROTOCOL)
        told = peers.allgather((count, own))
        spec, entries = self.attempt(_merged, [plan for _, plan in told]) or (None, [])
        self.agree()
        if spec is None:
            return None
        counts = [number for number, _ in told]
        self.attempt(_adapt, columns, spec)
        if peers.rank == root:
            self.attempt(begin, spec, counts, entries)
        self.agree()
        for rank, number in enumerate(counts):
            mine = _kinds.pieces(columns, 0, number, piece_bytes) if peers.rank == rank else None
            self.rows(number, rank, root, mine, take)
        return spec


def scatter(table: Any, root: int = 0, *, group: Any = None, piece_bytes: int = PIECE_BYTES) -> Any:
    """This rank's share of the rows that rank `root` has. A collective call of the job that this process is in; outside of one,
    all.

    Rank `root` gives the table, others None: a NumPy array of one dimension or more and any dtype without objects (rows are along
    the first axis), a CSR matrix of SciPy's, a DataFrame or Series of pandas or polars, a Table, RecordBatch or array of pyarrow,
    or a tuple, list or dict of these (and of None) with the same number of rows: `X, y = scatter((X, y))`. Shares are of the same
    kind, with columns, dtypes and categories; they are contiguous, in rank order, and differ by at most a row. With fewer rows
    than ranks the last ranks get none: an empty table of that kind.

    `group`, on the root: the number of rows of each query, in order. Queries then stay whole, balanced by rows, and the result is
    a pair: this rank's rows, and an int64 array of the sizes of its queries.

    Sent in pieces of up to `piece_bytes` (or of a row that is longer): no rank needs memory for more than its share and two
    pieces. Raises on all ranks, in the same words: ValueError for what cannot be sent (Python objects, lengths that differ), for
    a `root` that ranks do not agree on, or a table on another rank. RuntimeError when a rank was lost. Not thread safe.
    """
    peers = _peers.current()
    _agree_on_root(peers, root, "scatter", table is not None, piece_bytes)
    transfer = Transfer(peers)
    columns: List[Any] = []
    plan = b""
    if peers.rank == root:
        columns, plan = transfer.attempt(_plan, table, group, peers.world) or ([], b"")
    transfer.agree()
    # As bytes: a rank that lacks a package cannot load it, and has to be able to say so.
    sent = peers.broadcast(plan, root)
    loaded = transfer.attempt(_begun, sent, peers.rank)
    transfer.agree()
    cuts, sizes, builder = loaded
    for rank, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        mine = _kinds.pieces(columns, begin, end, piece_bytes) if peers.rank == root else None
        transfer.rows(end - begin, root, rank, mine, builder.add)
    result = transfer.attempt(builder.finish)
    transfer.agree()
    return result if sizes is None else (result, sizes)


def _plan(table: Any, group: Any, world: int) -> Tuple[List[Any], bytes]:
    """On the root: the columns, and what the others have to know."""
    spec, columns = _kinds.flatten(table)
    rows = columns[0].rows
    sizes: Sequence[Any] = [None] * world
    if group is None:
        cuts = even_cuts(rows, world)
    else:
        of_queries = _checked_group(group, rows)
        cuts, groups = group_cuts(of_queries, world)
        sizes = [of_queries[begin:end] for begin, end in zip(groups, groups[1:])]
    entries = [[column.entries(begin, end) for column in columns] for begin, end in zip(cuts, cuts[1:])]
    return columns, pickle.dumps((spec, cuts, entries, sizes), protocol=pickle.HIGHEST_PROTOCOL)


def _begun(plan: bytes, rank: int) -> Tuple[List[int], Optional[NDArray[Any]], _kinds.Builder]:
    spec, cuts, entries, sizes = pickle.loads(plan)
    begin, end = cuts[rank], cuts[rank + 1]
    return cuts, sizes[rank], _kinds.Builder(_kinds.share(spec, begin, end), end - begin, entries[rank])


def gather(rows: Any, root: int = 0, *, piece_bytes: int = PIECE_BYTES) -> Any:
    """All ranks' rows in rank order, on rank `root`; None elsewhere. A collective call of the job that this process is in;
    outside of one, the rows.

    The kinds are those of `scatter`. All ranks give the same kind, columns and dtypes; a rank without rows may give None, and
    where all do the result is None. Categories (pandas, dictionaries of Arrow) are unified: those of the lowest rank first. An
    index of pandas that is a range on all ranks, each going on where the one before ended, stays one.

    Sent in pieces, as by `scatter`: the root needs memory for all rows and two pieces. Raises on all ranks, in the same words:
    ValueError for what differs between ranks, with rank and column, for what cannot be sent, and for a single value, which has no
    rows. RuntimeError when a rank was lost. Not thread safe.
    """
    peers = _peers.current()
    builder: List[_kinds.Builder] = []

    def begin(spec: Any, counts: Sequence[int], entries: Sequence[int]) -> None:
        builder.append(_kinds.Builder(spec, sum(counts), entries))

    _agree_on_root(peers, root, "gather", rows is not None, piece_bytes)
    transfer = Transfer(peers)
    transfer.gather(rows, root, piece_bytes, begin, lambda count, piece: builder[0].add(count, piece))
    result = transfer.attempt(builder[0].finish) if builder else None
    transfer.agree()
    return result


def _flat_rows(rows: Any) -> Tuple[Any, List[Any]]:
    if np.isscalar(rows):
        raise ValueError(f"gather takes rows, and {rows!r} is a single value: use numpy.array([value])")
    return _kinds.flatten(rows, whole_index=True)


def _merged(plans: Sequence[bytes]) -> Tuple[Any, List[int]]:
    """The spec of all ranks' rows, and how many entries the columns have together."""
    whole: Any = None
    totals: List[int] = []
    first = 0
    for rank, plan in enumerate(plans):
        spec, entries = pickle.loads(plan)
        if spec is None:
            continue
        if whole is None:
            whole, totals, first = spec, list(entries), rank
            continue
        try:
            whole = _kinds.merged(whole, spec)
        except _kinds.Differs as error:
            raise ValueError(f"rank {first} and rank {rank} differ in {error.where}: {error.this} on rank {first}, {error.other} "
                             f"on rank {rank}; expected the same on all ranks") from None
        totals = [total + count for total, count in zip(totals, entries)]
    return whole, totals


def _adapt(columns: Sequence[Any], spec: Any) -> None:
    for column, one in zip(columns, _kinds.specs_of(spec)):
        column.adapt(one)

"""Distributes one rank's rows to all ranks, and collects the rows of all ranks on one rank.

Over Warren's communicators each rank receives only its own rows. Other communicators, including XGBoost's, only have broadcasts: each rank
receives all rows, and skips those of other ranks. An error on any rank is raised on all of them."""
from typing import Any, List, Optional, Sequence, Tuple

from numpy.typing import NDArray

from warren._engine import sealed as _sealed
from warren.data import _peers
from warren.data._exchange.columns import share
from warren.data._exchange.pieces import TableBuilder
from warren.data._exchange.shares import check_piece_bytes, checked_group, even_cuts, group_cuts
from warren.data._exchange.tables import flatten
from warren.data._exchange.transfer import PIECE_BYTES, Transfer

_SCATTER = "warren.data.scatter"


def _agree_on_root(peers: _peers.Peers, root: Any, what: str, given: bool, piece_bytes: Any) -> None:
    """A collective call. Raises the same ValueError on all ranks if `root` or `piece_bytes` is invalid on any rank, if ranks differ in `root`,
    or if, for scatter, the root gives no table or another rank gives one."""
    def check() -> None:
        _peers.check_root(root, peers.world)
        check_piece_bytes(piece_bytes)

    _peers.together(peers, check)
    said = peers.allgather((int(root), given))
    roots = [one for one, _ in said]
    if len(set(roots)) > 1:
        other = next(rank for rank, one in enumerate(roots) if one != roots[0])
        raise ValueError(f"{what}: rank 0 has root={roots[0]}, and rank {other} has root={roots[other]}; expected the same one")
    for rank, (_, gives) in enumerate(said):
        if what == "scatter" and gives != (rank == root):
            raise ValueError(f"scatter: rank {rank} gave a table, but the root is rank {root}; expected None" if gives else
                             f"scatter: rank {rank} is the root, but gave None; expected a table")


def scatter(table: Any, root: int = 0, *, group: Any = None, piece_bytes: int = PIECE_BYTES) -> Any:
    """Returns this rank's share of the rows that rank `root` has. A collective call of the job that this process is in; outside a job,
    returns all rows.

    Rank `root` passes the table, the others None: a NumPy array of one or more dimensions and any dtype without objects (rows are along the
    first axis), a SciPy CSR matrix, a pandas or polars DataFrame or Series, a pyarrow Table, RecordBatch or array, or a tuple, list or dict
    of these (and of None) with the same number of rows: `X, y = scatter((X, y))`. Shares are of the same kind, with the same columns,
    dtypes and categories; they are contiguous, in rank order, and differ by at most one row. If there are fewer rows than ranks, the last
    ranks get an empty table of that kind.

    `group`, on the root: the number of rows of each query, in order. Queries are then never split, shares are balanced by rows, and the
    result is a pair: this rank's rows, and an int64 array of the sizes of its queries.

    Rows are sent in pieces of up to `piece_bytes` (or of one longer row): no rank needs memory for more than its share and two pieces.
    Raises on all ranks, with the same text: ValueError for anything that cannot be sent (Python objects, different lengths), for a `root`
    that ranks do not agree on, or for a table on another rank. Raises the communicator's error if a rank was lost (RuntimeError;
    XGBoostError over XGBoost's communicator), and RuntimeError if the description of the rows is not sealed with the job's token; in a job
    without a token it is a pickle, and the other ranks are trusted. Not thread-safe."""
    peers = _peers.current()
    _agree_on_root(peers, root, "scatter", table is not None, piece_bytes)
    transfer = Transfer(peers, piece_bytes)
    columns: List[Any] = []
    plan = b""
    if peers.rank == root:
        columns, plan = transfer.attempt(_plan, table, group, root, peers.world) or ([], b"")
    transfer.agree()
    # The plan is sent as bytes, because a rank that lacks a package cannot load the plan, and must be able to report this.
    sent = peers.broadcast(plan, root)
    loaded = transfer.attempt(_begun, sent, root, peers.rank)
    transfer.agree()
    cuts, sizes, builder = loaded
    for rank, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        transfer.rows(begin, end, root, rank, columns, builder.add)
    result = transfer.attempt(builder.finish)
    transfer.agree()
    return result if sizes is None else (result, sizes)


def _plan(table: Any, group: Any, root: int, world: int) -> Tuple[List[Any], bytes]:
    """Returns the columns, and the sealed plan that all ranks need to receive their rows. Called on the root only."""
    spec, columns = flatten(table)
    rows = columns[0].rows
    sizes: Sequence[Any] = [None] * world
    if group is None:
        cuts = even_cuts(rows, world)
    else:
        of_queries = checked_group(group, rows)
        cuts, groups = group_cuts(of_queries, world)
        sizes = [of_queries[begin:end] for begin, end in zip(groups, groups[1:])]
    entries = [[column.entries(begin, end) for column in columns] for begin, end in zip(cuts, cuts[1:])]
    return columns, bytes(_sealed.seal((spec, cuts, entries, sizes), _SCATTER, root))


def _begun(plan: bytes, root: int, rank: int) -> Tuple[List[int], Optional[NDArray[Any]], TableBuilder]:
    spec, cuts, entries, sizes = _sealed.loads(plan, _SCATTER, root)
    begin, end = cuts[rank], cuts[rank + 1]
    return cuts, sizes[rank], TableBuilder(share(spec, begin, end), end - begin, entries[rank])


def gather(rows: Any, root: int = 0, *, piece_bytes: int = PIECE_BYTES) -> Any:
    """Returns the rows of all ranks in rank order, on rank `root`; None on the other ranks. A collective call of the job that this process
    is in; outside a job, returns the rows.

    Takes the same kinds of tables as `scatter`. All ranks pass the same kind, columns and dtypes; a rank without rows may pass None; the
    result is None if all ranks do. Categories (pandas categoricals or Arrow dictionaries) are merged, those of the lowest rank first. If all
    ranks have pandas range indices, each of which continues the previous one, the result has a range index.

    Rows are sent in pieces, as by `scatter`: the root needs memory for all rows and two pieces. Raises on all ranks, with the same text:
    ValueError for differences between ranks, with rank and column, for anything that cannot be sent, and for a single value, which has no
    rows. Other errors are as for `scatter`. Not thread-safe."""
    peers = _peers.current()
    builder: List[TableBuilder] = []

    def begin(spec: Any, counts: Sequence[int], entries: Sequence[int]) -> None:
        builder.append(TableBuilder(spec, sum(counts), entries))

    _agree_on_root(peers, root, "gather", rows is not None, piece_bytes)
    transfer = Transfer(peers, piece_bytes)
    transfer.gather(rows, root, begin, lambda count, piece: builder[0].add(count, piece))
    result = transfer.attempt(builder[0].finish) if builder else None
    transfer.agree()
    return result

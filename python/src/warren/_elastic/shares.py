"""Assigns the rows of a data set to workers, with pure functions.

A data set is divided into `count` shares of about equal size, in the order of its rows."""
from typing import List, NamedTuple, Sequence, Set

from warren.data._exchange.shares import even_cuts


class Range(NamedTuple):
    """The shares from `first` up to, but not including, `last`."""

    first: int
    last: int


def ranges_of(shares: Sequence[int]) -> List[Range]:
    """Returns the shares as ranges in ascending order; adjacent shares are in one range."""
    found: List[Range] = []
    for share in sorted(shares):
        if found and found[-1].last == share:
            found[-1] = Range(found[-1].first, share + 1)
        else:
            found.append(Range(share, share + 1))
    return found


def dealt(held: Sequence[Sequence[int]], count: int) -> List[List[int]]:
    """Returns the shares assigned to each worker. `held`: each worker's current shares. All lists are in order of acquisition. Each share is
    assigned to exactly one worker, the workers' numbers of shares differ by at most one, and no more shares move than necessary: after a
    loss, no share moves between survivors; a new worker that replaces a lost one receives exactly the lost worker's shares; a worker with too
    many shares gives up those that it received last. If no worker holds any share, worker k receives the k-th part of the data set."""
    world = len(held)
    taken: Set[int] = set()
    mine: List[List[int]] = []
    for shares in held:
        kept = [share for share in shares if share < count and share not in taken]
        taken.update(kept)
        mine.append(kept)
    least, more = divmod(count, world)
    if not taken:
        cuts = even_cuts(count, world)
        return [list(range(begin, end)) for begin, end in zip(cuts, cuts[1:])]
    # `more` workers hold one share more than the others: first those that already have it, then those that have to read most in any case.
    first = sorted(range(world), key=lambda worker: (len(mine[worker]) <= least, len(mine[worker]), worker))
    target = {worker: least + (place < more) for place, worker in enumerate(first)}
    free = sorted(set(range(count)) - taken)
    for worker in range(world):
        surplus = len(mine[worker]) - target[worker]
        if surplus > 0:
            free += mine[worker][-surplus:]
            del mine[worker][-surplus:]
    free.sort()
    for worker in range(world):
        lacking = target[worker] - len(mine[worker])
        mine[worker] += free[:lacking]
        del free[:lacking]
    return mine

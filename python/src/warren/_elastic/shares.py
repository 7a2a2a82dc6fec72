"""Which worker holds which rows: pure functions.

The rows of a data set are `count` shares of about equal size, in the order of the data set."""
from typing import List, NamedTuple, Sequence, Set


class Range(NamedTuple):
    """The shares from `first` up to, but not including, `last`."""

    first: int
    last: int


def ranges_of(shares: Sequence[int]) -> List[Range]:
    """The shares, in ascending order, as ranges without gaps between them."""
    found: List[Range] = []
    for share in sorted(shares):
        if found and found[-1].last == share:
            found[-1] = Range(found[-1].first, share + 1)
        else:
            found.append(Range(share, share + 1))
    return found


def dealt(held: Sequence[Sequence[int]], count: int) -> List[List[int]]:
    """Returns the shares that each worker is to hold; `held` are those that each holds now, in the order in which it got them, as are those
    returned. Each share is held once, workers differ by one share at most, and no more shares move than that needs: nothing moves from one
    survivor to another, a new worker that takes a lost worker's place takes exactly its shares, and a survivor first gives back what it got
    last. If nobody holds anything, worker k takes the k-th part of the data set."""
    world = len(held)
    taken: Set[int] = set()
    mine: List[List[int]] = []
    for shares in held:
        kept = [share for share in shares if share < count and share not in taken]
        taken.update(kept)
        mine.append(kept)
    least, more = divmod(count, world)
    if not taken:
        ends = [(worker + 1) * least + min(worker + 1, more) for worker in range(world)]
        return [list(range(begin, end)) for begin, end in zip([0, *ends], ends)]
    # `more` workers hold one share more than the others: those that have it already, and then those that must read most anyway.
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

"""Connects the ranks of a process group, which find each other through the store that torch.distributed provides."""
import datetime
import struct
import weakref
import zlib
from typing import Any, List, Optional, Sequence

from warren import collectives
from warren._engine.rendezvous import Allgather
from warren.torch._process_group import ProcessGroup

#: The default group, if it has this backend.
_default: "Optional[weakref.ref[ProcessGroup]]" = None


def _over(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Allgather:
    """Returns an allgather over the store. Rank 0 collects the records, so that the store is accessed only a few times for each rank."""
    round_number = 0
    # The store may have served an earlier group of this name.
    meeting = f"warren/{store.add(f'warren/meetings/{rank}', 1)}"

    def allgather(record: bytes) -> Sequence[bytes]:
        nonlocal round_number
        name, round_number = f"{meeting}/{round_number}", round_number + 1
        if rank != 0:
            store.set(f"{name}/{rank}", record)
            store.wait([name], timeout)
            return _unpack(store.get(name), size)
        records = [record]
        for other in range(1, size):
            try:
                store.wait([f"{name}/{other}"], timeout)
            except RuntimeError as error:
                raise RuntimeError(f"rank {other} of {size} did not join within {timeout.total_seconds():.0f} s: {error}") from error
            records.append(store.get(f"{name}/{other}"))
        store.set(name, b"".join(struct.pack("<Q", len(one)) + one for one in records))
        return records

    return allgather


def _unpack(data: bytes, count: int) -> List[bytes]:
    records, at = [], 0
    for _ in range(count):
        (length,) = struct.unpack_from("<Q", data, at)
        records.append(data[at + 8:at + 8 + length])
        at += 8 + length
    return records


def create(options: Any, _: Any = None) -> ProcessGroup:
    """Returns a new group. Called by torch.distributed on the group's ranks, with the store that they share."""
    global _default  # pylint: disable=global-statement
    rank, size, timeout = options.group_rank, options.group_size, options.timeout
    ranks = list(options.global_ranks_in_group)
    allgather = _over(options.store, rank, size, timeout)
    world = _default() if _default is not None else None
    if ranks and world is not None and world.communicator:
        communicator = world.communicator.group(ranks, options.group_id, allgather)
        return ProcessGroup(communicator, options.store, timeout, world.mailbox, ranks, zlib.crc32(options.group_id.encode()))
    communicator = collectives.meet(rank, size, allgather)
    group = ProcessGroup(communicator, options.store, timeout, communicator.mailbox(), range(size), 0)
    if not ranks:
        _default = weakref.ref(group)
    return group

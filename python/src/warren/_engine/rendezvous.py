"""Lets ranks without a communicator find each other through an allgather that the program provides."""
import contextlib
import ctypes
from typing import Any, Callable, Iterator, List, Sequence

from warren._engine import c_api as _c
from warren._engine.calls import c_int_of

#: A function that takes this rank's record and returns the records of all ranks, in rank order.
Allgather = Callable[[bytes], Sequence[bytes]]


@contextlib.contextmanager
def rendezvous(rank: int, size: int, allgather: Allgather) -> Iterator[Any]:
    """Yields the rendezvous in the form that the functions of warren/c_api.h take. If `allgather` raises an error, that error replaces the
    one that these functions report."""
    failure: List[BaseException] = []

    def exchange(record: int, count: int, give: Any, records: int, *_: Any) -> int:
        try:
            for one in allgather(ctypes.string_at(record, count)):
                give(records, one, len(one))
            return 0
        except BaseException as error:  # pylint: disable=broad-except
            failure.append(error)
            return 1

    function = _c.ALLGATHER(exchange)
    try:
        yield ctypes.byref(_c.Rendezvous(ctypes.sizeof(_c.Rendezvous), c_int_of(rank, "rank"), c_int_of(size, "size"), function,
                                         None))
    except RuntimeError:
        if failure:
            raise failure[0]
        raise

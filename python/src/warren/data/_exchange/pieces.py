"""Encodes rows of columns as bytes, and decodes them. A piece consists of the sizes of its buffers, 8 bytes each, and the buffers, each padded to
a multiple of 8 bytes; all in the order of the columns."""
from typing import Any, Iterator, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from warren.data._exchange.columns import assemble, specs_of

_ALIGNMENT = 8


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class Memory:
    """Reusable memory for one piece at a time; each piece overwrites the previous one."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        """Returns `size` uninitialized bytes."""
        if self._bytes.size < size:
            self._bytes = np.empty(0, np.uint8)  # freed before more is allocated
            self._bytes = np.empty(size, np.uint8)
        return self._bytes[:size]


def encode(columns: Sequence[Any], begin: int, end: int, memory: Memory) -> NDArray[np.uint8]:
    """Returns the rows of all columns from `begin` up to, but not including, `end` as one piece, in `memory`."""
    buffers = [np.frombuffer(buffer, np.uint8) if len(memoryview(buffer)) else np.empty(0, np.uint8)
               for column in columns for buffer in column.encode(begin, end)]
    sizes = [buffer.size for buffer in buffers]
    piece = memory.take(8 * len(sizes) + sum(map(_padded, sizes)))
    piece[:8 * len(sizes)] = np.array(sizes, np.uint64).view(np.uint8)
    place = 8 * len(sizes)
    for buffer in buffers:
        piece[place:place + buffer.size] = buffer
        piece[place + buffer.size:place + _padded(buffer.size)] = 0
        place += _padded(buffer.size)
    return piece


def pieces(columns: Sequence[Any], begin: int, end: int, piece_bytes: int, memory: Memory) -> Iterator[Tuple[int, NDArray[np.uint8]]]:
    """Yields the rows from `begin` up to, but not including, `end` as pieces, in order: (number of rows, bytes). A piece has at most about
    `piece_bytes`, or one row. It is in `memory`, and valid only until the next piece is requested."""
    if begin >= end:
        return
    if end - begin > 1 and sum(column.nbytes(begin, end) for column in columns) > piece_bytes:
        middle = (begin + end) // 2
        yield from pieces(columns, begin, middle, piece_bytes, memory)
        yield from pieces(columns, middle, end, piece_bytes, memory)
        return
    yield end - begin, encode(columns, begin, end, memory)


class TableBuilder:
    """Assembles a table from pieces, in the order of their rows."""

    def __init__(self, spec: Any, rows: int, entries: Sequence[int]) -> None:
        """`entries`: the number of entries of each column."""
        self._spec, self._specs = spec, specs_of(spec)
        self._builders = [one.builder(rows, count) for one, count in zip(self._specs, entries)]

    def add(self, rows: int, piece: Any) -> None:
        """Adds the next rows. `piece` may be reused afterwards."""
        view = memoryview(piece).cast("B")
        count = sum(spec.buffers for spec in self._specs)
        sizes = iter(np.frombuffer(view[:8 * count], np.uint64).tolist())
        place = 8 * count
        for spec, builder in zip(self._specs, self._builders):
            buffers = []
            for _ in range(spec.buffers):
                size = next(sizes)
                buffers.append(view[place:place + size])
                place += _padded(size)
            builder.add(buffers, rows)

    def finish(self) -> Any:
        """Returns the table."""
        return assemble(self._spec, (builder.finish() for builder in self._builders))

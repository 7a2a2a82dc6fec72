"""Data sets as arrays, divided among the workers of a job. See docs/how-to/data.md.

`load` returns this worker's share of Parquet, Arrow, CSV, LibSVM or libfm files, wherever they are stored; `batches` yields the share some
rows at a time. `read` reads text formats only. `scatter` distributes rows that one worker has, and `gather` collects rows from all
workers."""
import sys
from typing import NoReturn

from warren._frameworks.same_rows import SameRowsWarning
from warren.data._exchange import gather, scatter
from warren.data._load import Wanted, batches, load
from warren.data._peers import current as current_peers
from warren.data._table import Table
from warren.data._text import Rows, read

__all__ = ["Rows", "SameRowsWarning", "Table", "Wanted", "batches", "current_peers", "gather", "load", "main", "read", "scatter"]


def main() -> NoReturn:
    """The entry point of `rabit-data`. Handles files with named columns in this process, and exits; for text, and for help, the native
    program replaces this process."""
    from warren.data import _commands  # pylint: disable=import-outside-toplevel

    sys.exit(_commands.main(sys.argv[1:]))

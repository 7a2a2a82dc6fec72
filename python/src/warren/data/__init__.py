"""Data sets as arrays, shared out over the workers of a job. See docs/data.md for what a data set's name can say.

`read` is Warren's reader of LibSVM, libfm and CSV text.
"""
import sys
from typing import NoReturn

from warren import _native
from warren.data._text import Rows, read

__all__ = ["Rows", "main", "read"]


def main() -> NoReturn:
    """Becomes rabit-data with this process's arguments."""
    _native.run("rabit-data", sys.argv[1:])

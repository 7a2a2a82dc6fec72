"""Where the programs and libraries are that come with this package."""
import ctypes
import functools
import os
import pathlib
import sys
from typing import NoReturn, Sequence


def folder() -> pathlib.Path:
    """With `bin` and `lib` in it: that of the wheel, or of a build tree that WARREN_NATIVE names."""
    named = os.environ.get("WARREN_NATIVE")
    return pathlib.Path(named) if named else pathlib.Path(__file__).parent / "_native"


def program(name: str) -> str:
    """The path of a program. Raises FileNotFoundError that says what to do."""
    path = folder() / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: install Warren's wheel (pip install ./python), or set "
                                "WARREN_NATIVE to a build folder")
    return str(path)


def run(name: str, arguments: Sequence[str]) -> NoReturn:
    """Becomes the program."""
    path = program(name)
    sys.stdout.flush()
    os.execv(path, [name, *arguments])


@functools.lru_cache(maxsize=None)
def library(name: str) -> ctypes.CDLL:
    """Raises OSError when it cannot be loaded."""
    return ctypes.CDLL(str(folder() / "lib" / name))

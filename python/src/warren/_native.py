"""Where the programs and libraries are that come with this package."""
import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from types import ModuleType
from typing import NoReturn, Optional, Sequence


def folder() -> pathlib.Path:
    """With `bin` and `lib` in it: that of the wheel, or of a build tree that WARREN_NATIVE names."""
    named = os.environ.get("WARREN_NATIVE")
    return pathlib.Path(named) if named else pathlib.Path(__file__).parent / "_native"


def program(name: str) -> str:
    """The path of a program. Raises FileNotFoundError that says what to do."""
    path = folder() / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there: install Warren's wheel (pip install warren-train), or set "
                                "WARREN_NATIVE to a build folder")
    return str(path)


def run(name: str, arguments: Sequence[str]) -> NoReturn:
    """Becomes the program."""
    path = program(name)
    sys.stdout.flush()
    os.execv(path, [name, *arguments])


def library_file(name: str) -> pathlib.Path:
    """Where a library is that is called `name` in a build: in a wheel it is librabit.so.0.1, beside which librabit.so is a script for
    the linker; on macOS librabit.dylib."""
    with_version = f"{name}.*"
    if sys.platform == "darwin":
        name, with_version = name.replace(".so", ".dylib"), name.replace(".so", ".*.dylib")
    plain = folder() / "lib" / name
    return min(plain.parent.glob(with_version), default=plain)


@functools.lru_cache(maxsize=None)
def library(name: str) -> ctypes.CDLL:
    """Raises OSError when it cannot be loaded."""
    if sys.platform == "darwin" and name == "librabit_xgboost.so":
        raise OSError("librabit_xgboost is not there on macOS: leave XGBoost's communication to XGBoost, with WARREN_XGBOOST_ENGINE=own")
    return ctypes.CDLL(str(library_file(name)))


def extension(name: str) -> Optional[ModuleType]:
    """Loads a module in C++. Returns None if there is none: before CPython 3.11, or if Python's headers were missing in the build.
    Everything works without it, more slowly."""
    path = folder() / "lib" / f"{name}.abi3.so"
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11) or not path.exists():
        return None
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    specification = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module

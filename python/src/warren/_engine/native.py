"""The locations of the programs and libraries of this package."""
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
    """The folder that contains `bin` and `lib`: the one in the wheel, or the build folder named by WARREN_NATIVE."""
    named = os.environ.get("WARREN_NATIVE")
    return pathlib.Path(named) if named else pathlib.Path(__file__).parent.parent / "_native"


def program(name: str) -> str:
    """Returns the path of a program. Raises FileNotFoundError, with a message that explains how to install it, if it does not exist."""
    path = folder() / "bin" / name
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: install Warren's wheel (pip install warren-train), or set "
                                "WARREN_NATIVE to a build folder")
    return str(path)


def run(name: str, arguments: Sequence[str]) -> NoReturn:
    """Replaces this process with the program. Raises FileNotFoundError if the program does not exist."""
    path = program(name)
    if sys.stdout is not None:  # None if this process was started with its standard output closed
        sys.stdout.flush()
    os.execv(path, [name, *arguments])


def library_file(name: str) -> pathlib.Path:
    """Returns the path of a library. `name` is its name in a build on Linux, such as librabit.so. A file with a version, such as
    librabit.so.0.1, is preferred, since librabit.so is a linker script in a wheel. On macOS, .dylib replaces .so."""
    with_version = f"{name}.*"
    if sys.platform == "darwin":
        name, with_version = name.replace(".so", ".dylib"), name.replace(".so", ".*.dylib")
    plain = folder() / "lib" / name
    return min(plain.parent.glob(with_version), default=plain)


@functools.lru_cache(maxsize=None)
def library(name: str) -> ctypes.CDLL:
    """Loads a library. Raises OSError if that fails."""
    if sys.platform == "darwin" and name == "librabit_xgboost.so":
        raise OSError("librabit_xgboost is not available on macOS: let XGBoost do its own communication, with WARREN_XGBOOST_ENGINE=own")
    return ctypes.CDLL(str(library_file(name)))


def extension(name: str) -> Optional[ModuleType]:
    """Loads a C++ extension module. Returns None if this Python is not CPython 3.11 or later, or if Python's headers were missing during
    the build. Everything works without the module, only slower."""
    path = folder() / "lib" / f"{name}.abi3.so"
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11) or not path.exists():
        return None
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    specification = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module

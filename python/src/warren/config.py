"""The folders needed to compile a C or C++ program with the librabit of this package:

    cmake -Dwarren_DIR=$(python -m warren.config --cmakedir) ...      # find_package(warren REQUIRED COMPONENTS rabit)
    export PKG_CONFIG_PATH=$(python -m warren.config --pkgconfigdir)
    g++ program.cc $(pkg-config --cflags --libs rabit) ...
    library=$(python -m warren.config --libdir)                       # without CMake or pkg-config
    g++ program.cc -I$(python -m warren.config --includedir) -L$library -lrabit -Wl,-rpath,$library ..."""
import argparse
import pathlib
import sys

import warren
from warren._engine import native as _native


def cmake_dir() -> pathlib.Path:
    """The folder of warrenConfig.cmake."""
    return lib_dir() / "cmake" / "warren"


def include_dir() -> pathlib.Path:
    """The folder that contains rabit/, warren/ and dmlc/."""
    return _native.folder() / "include"


def lib_dir() -> pathlib.Path:
    """The folder that contains librabit and librabit_xgboost."""
    return _native.folder() / "lib"


def pkg_config_dir() -> pathlib.Path:
    """The folder of rabit.pc."""
    return lib_dir() / "pkgconfig"


def main() -> int:
    """Prints the requested folder; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m warren.config",
                                     description="Prints a folder that is needed to compile programs with librabit.")
    what = parser.add_mutually_exclusive_group(required=True)
    for option, function in (("--cmakedir", cmake_dir), ("--includedir", include_dir), ("--libdir", lib_dir),
                             ("--pkgconfigdir", pkg_config_dir)):
        what.add_argument(option, dest="folder", action="store_const", const=function, help=function.__doc__)
    what.add_argument("--version", action="version", version=warren.__version__)
    folder = parser.parse_args().folder()
    print(folder)
    if folder.is_dir():
        return 0
    print("warren.config: that folder does not exist: install the wheel (pip install warren-train)", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

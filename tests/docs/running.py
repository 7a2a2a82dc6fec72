"""Runs what a page of Markdown says is run (marked.py), as its reader would: in one folder, one block after the other."""

import os
import pathlib
import subprocess
import sys
from typing import Callable, Dict, List, Optional

import marked
from warren_testing import BIN, SOURCE

LIMIT_S = 300
#: Beside the programs: an environment of PyPI's packages that the pages use.
ENVIRONMENT = BIN.parent / "interop/venv-docs"
DEBIAN = "Debian's packages"
PACKAGES = ["xgboost-cpu==3.2.0", "lightgbm==4.7.0", "scipy", "scikit-learn", "pyarrow", "dask[distributed,array,dataframe]"]


def prepare() -> None:
    """Makes the environment, where it is not there yet."""
    if not (ENVIRONMENT / "ready").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([ENVIRONMENT / "bin/python", "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (ENVIRONMENT / "ready").touch()


def make_programs(folder: pathlib.Path) -> None:
    """What an installed Warren puts on PATH, for the package of the tree; `warren` is none of the build's programs."""
    folder.mkdir()
    warren = folder / "warren"
    warren.write_text(f'#!/bin/sh\nexec python3 -m warren "$@"\n', encoding="utf-8")
    warren.chmod(0o755)


def environment(programs: pathlib.Path, packages: bool) -> Dict[str, str]:
    """Of a command; without packages its Python is Debian's. Nothing that this shell sets for Python reaches it: with PYTHONUNBUFFERED a
    line is written in pieces, and those of two processes mix."""
    ours = ("DMLC_", "RABIT_", "WARREN_", "rabit_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    python = f":{ENVIRONMENT / 'bin'}" if packages else ""
    path = f"{programs}:{BIN}{python}:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**clean, "PATH": path, "PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent), "LC_ALL": "C.UTF-8",
            "LIBRARY_PATH": str(BIN.parent / "lib"), "WARREN_SOURCE": str(SOURCE)}


def run(page: pathlib.Path, folder: pathlib.Path, enter: Callable[[List[str]], List[str]] = lambda command: command,
        more: Optional[Dict[str, str]] = None) -> int:
    """How many commands were run, with `more` in their environment. `enter` makes a command into one that is started elsewhere. Raises
    AssertionError with the place in the page."""
    programs = folder / "programs"
    if not programs.exists():
        make_programs(programs)
    place = place_of(page)
    work = folder / "pages" / page.stem
    work.mkdir(parents=True)
    count = 0

    def command(line: int, text: str, code: int) -> List[str]:
        nonlocal count
        count += 1
        done = subprocess.run(enter(["bash", "-euo", "pipefail", "-c", text]), cwd=work, check=False,
                              env={**environment(programs, place != DEBIAN), **(more or {})},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
        printed = done.stdout.decode()
        if done.returncode != code:
            raise AssertionError(f"{page}:{line}: exit code {done.returncode}, expected {code}: {text}\n{printed}")
        return printed.splitlines()

    for block in marked.blocks(page.read_text(encoding="utf-8")):
        if block.kind == "before":
            command(block.line, block.text, 0)
        elif block.kind == "file":
            path = work / block.rest
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.kind == "run" and block.language == "python":
            (work / "block.py").write_text(block.text, encoding="utf-8")
            command(block.line, "python block.py", block.code)
        elif block.kind == "run":
            for one in marked.commands(block):
                printed = command(one.line, one.text, block.code)
                wrong = marked.missing(one.expected, printed, block.any_order)
                if wrong:
                    raise AssertionError("\n".join([f"{page}:{one.line}: {one.text}", wrong, "all that was printed:", *printed]))
    return count


def place_of(page: pathlib.Path) -> str:
    """Where the page's commands run: a cluster, DEBIAN, or "" for this machine with packages of PyPI."""
    found = [block.text for block in marked.blocks(page.read_text(encoding="utf-8")) if block.kind == "page runs on"]
    return found[0] if found else ""


if __name__ == "__main__":  # a page by hand, in a folder that stays
    prepare()
    print(run(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()), "commands")

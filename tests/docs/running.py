"""Runs the marked blocks of a Markdown page (marked.py) as its reader would: in one folder, one block after the other."""

import os
import pathlib
import subprocess
import sys
from typing import Callable, Dict, List, Optional, Tuple

import marked
from warren_testing import BIN, SOURCE

LIMIT_S = 300
#: The exit code of a command, and its output.
Done = Tuple[int, str]
#: A virtual environment with the PyPI packages that the pages use.
ENVIRONMENT = BIN.parent / "interop/venv-docs"
DEBIAN = "Debian's packages"
#: Settings that Open MPI needs only in tests, where it runs as root, with more processes than cores, on this host only.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
           "OMPI_MCA_plm": "isolated"}
PACKAGES = ["xgboost-cpu==3.2.0", "lightgbm==4.7.0", "scipy", "scikit-learn", "pyarrow", "dask[distributed,array,dataframe]",
            "cloudpickle", "nbclient", "ipykernel"]


def prepare() -> None:
    """Creates ENVIRONMENT if it does not exist."""
    if not (ENVIRONMENT / "ready").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([ENVIRONMENT / "bin/python", "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (ENVIRONMENT / "ready").touch()


def make_programs(folder: pathlib.Path) -> None:
    """Makes a folder for PATH that stands in for an installed Warren, with the program `warren`, which the build does not have. Next to it,
    `native` stands in for the wheel's programs, libraries and headers."""
    folder.mkdir()
    warren = folder / "warren"
    warren.write_text('#!/bin/sh\nexec python3 -m warren "$@"\n', encoding="utf-8")
    warren.chmod(0o755)
    native = folder.with_name("native")
    native.mkdir()
    for name, place in (("bin", BIN), ("lib", BIN.parent / "lib"), ("include", SOURCE / "rabit_engine/include")):
        (native / name).symlink_to(place)


def environment(programs: pathlib.Path, packages: bool) -> Dict[str, str]:
    """The environment of a command; if not `packages`, its Python is Debian's. This shell's settings for jobs and for Python are removed:
    with PYTHONUNBUFFERED, lines are written in pieces, and pieces of two processes mix."""
    ours = ("DMLC_", "RABIT_", "WARREN_", "rabit_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    python = f":{ENVIRONMENT / 'bin'}" if packages else ""
    path = f"{programs}:{BIN}{python}:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**clean, "PATH": path, "PYTHONPATH": str(SOURCE / "python/src"), "LC_ALL": "C.UTF-8",
            "WARREN_NATIVE": str(programs.with_name("native")), **AS_ROOT}


def run(page: pathlib.Path, folder: pathlib.Path, enter: Callable[[List[str]], List[str]] = lambda command: command,
        more: Optional[Dict[str, str]] = None, place: str = "") -> int:
    """Runs the page's commands for `place`, by default the page's own place, with `more` in their environment; returns the number of
    commands. `enter` changes a command so that it runs in that place. If one fails or prints something else, raises AssertionError
    with the page's line."""
    programs = folder / "programs"
    if not programs.exists():
        make_programs(programs)
    place = place or place_of(page)
    environs = {**environment(programs, DEBIAN not in (place, place_of(page))), **(more or {})}
    work = folder / "pages" / page.parent.name / page.stem
    work.mkdir(parents=True)
    state = work.with_suffix(".shell")
    count = 0

    def execute(text: str) -> Done:
        nonlocal count
        count += 1
        return shell(enter, text, work, environs, state)

    type_in(page, work, execute, place)
    return count


def shell(enter: Callable[[List[str]], List[str]], text: str, work: pathlib.Path, environs: Dict[str, str],
          state: pathlib.Path) -> Done:
    """Runs a command with bash in `work`; returns its exit code and output. The file `state` keeps the variables that the command sets, so
    that the next command sees them as if both were typed into one shell."""
    text = f"[ ! -e {state} ] || . {state}\nset -a\ntrap 'export -p >{state}' EXIT\n{text}"
    done = subprocess.run(enter(["bash", "-euo", "pipefail", "-c", text]), cwd=work, check=False, env=environs,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
    return done.returncode, done.stdout.decode()


def type_in(page: pathlib.Path, work: pathlib.Path, execute: Callable[[str], Done], place: str, new_system: bool = False) -> None:
    """Runs the page's blocks for `place` in order, without installations unless `new_system`. Raises AssertionError if a command has
    another exit code or other output than the page."""
    def command(line: int, text: str, wanted: int) -> List[str]:
        code, printed = execute(text)
        if code != wanted:
            raise AssertionError(f"{page}:{line}: exit code {code}, expected {wanted}: {text}\n{printed}")
        return printed.splitlines()

    for block in marked.blocks(page.read_text(encoding="utf-8")):
        if block.kind == "before":
            command(block.line, block.text, 0)
        elif block.kind == "after":
            begun = page.with_name(block.text)
            for other in marked.blocks(begun.read_text(encoding="utf-8")):
                if other.kind == "file":
                    write(work / other.rest, other.text)
                elif other.in_a_new_system and new_system:
                    for one in marked.commands(other):
                        command(other.line, one.text, 0)
        elif block.kind == "file":
            write(work / block.rest, block.text)
        elif block.kind != "run" or block.in_a_new_system and not new_system or (block.place or place_of(page)) != place:
            continue
        elif block.language == "python":
            write(work / "block.py", block.text)
            command(block.line, "python block.py", block.code)
        else:
            for one in marked.commands(block):
                printed = command(one.line, one.text, block.code)
                wrong = marked.missing(one.expected, printed, block.any_order, block.allowances)
                if wrong:
                    raise AssertionError("\n".join([f"{page}:{one.line}: {one.text}", wrong, "all that was printed:", *printed]))


def write(path: pathlib.Path, text: str) -> None:
    """Writes a file; creates its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def place_of(page: pathlib.Path) -> str:
    """Returns the place where the page's commands run: a cluster, DEBIAN, or "" for this machine with PyPI packages."""
    found = [block.text for block in marked.blocks(page.read_text(encoding="utf-8")) if block.kind == "page runs on"]
    return found[0] if found else ""


def has_something_for(page: pathlib.Path, place: str) -> bool:
    """Whether any of the page's blocks are run in `place`."""
    found = marked.blocks(page.read_text(encoding="utf-8"))
    return any(block.kind == "run" and not block.in_a_new_system and (block.place or place_of(page)) == place for block in found)


if __name__ == "__main__":  # PAGE FOLDER [PLACE]: runs a page by hand, in a folder that is kept
    prepare()
    print(run(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), place=" ".join(sys.argv[3:])), "commands")

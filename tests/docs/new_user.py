"""new_user.py PAGE FOLDER: types all commands of a page, including installations, in a system without Warren, which from_nothing creates.
If the page needs a cluster, its servers are started first. The last line of output is JSON: each command with its duration in seconds."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import List, Tuple

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
# The modules of the tests need these variables, although this program uses no build.
os.environ.update(WARREN_BIN="/nowhere/bin", WARREN_SOURCE=str(SOURCE))
sys.path.insert(0, str(SOURCE / "tests"))
import places  # noqa: E402
import running  # noqa: E402

running.LIMIT_S = 1500  # PyTorch is large


def main() -> None:
    page, folder = map(pathlib.Path, sys.argv[1:])
    work, programs, state = folder / "page", folder / "programs", folder / "shell"
    programs.mkdir(parents=True)
    if page.name == "README.md":
        subprocess.run(["git", "clone", "--quiet", str(SOURCE), str(work)], check=True)
    else:
        work.mkdir()
    place = running.place_of(page)
    seconds: List[Tuple[str, float]] = []
    with contextlib.ExitStack() as until:
        transcript = until.enter_context(open(folder / "transcript", "w", buffering=1, encoding="utf-8"))
        enter, more = places.here, {}
        if place == "kubernetes":
            enter, more = places.kubernetes(folder, programs, until, f"{work}/warren/bin")
        elif place in ("ssh", "slurm"):
            enter, more = getattr(places, place)(folder, programs, until)
        environs = {**os.environ, **more, **running.AS_ROOT, "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        for name in ("WARREN_BIN", "WARREN_SOURCE", "PYTHONDONTWRITEBYTECODE"):
            environs.pop(name, None)

        def execute(text: str) -> running.Done:
            begin = time.monotonic()
            # PyPI cannot be reached from the network of the ssh hosts.
            done = running.shell(places.here if "pip install" in text else enter, text, work, environs, state)
            seconds.append((text, time.monotonic() - begin))
            transcript.write(f"$ {text}\n{done[1]}")
            return done

        if "-m venv" not in page.read_text(encoding="utf-8") and "<!-- after " not in page.read_text(encoding="utf-8"):
            execute("python3 -m venv environment && . environment/bin/activate")
        running.type_in(page, work, execute, place, new_system=True)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()

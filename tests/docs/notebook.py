"""notebook.py [--write]: runs docs/tutorials/notebook.ipynb in a kernel, and compares the output of its cells with the output stored in the
notebook; --write stores the new output. Text that differs from run to run, such as times, ports, process IDs and tokens, is not
compared."""
import pathlib
import re
import socket
import sys
from typing import List

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "docs/tutorials/notebook.ipynb"
LIMIT_S = 300


def shown(cell: nbformat.NotebookNode) -> List[str]:
    """The lines of a cell's output, sorted, without text that differs from run to run."""
    text = []
    for output in cell.outputs:
        if output.output_type == "stream":
            text.append(re.sub(r"[^\n]*\r", "", output.text))  # without the live line
        elif output.output_type == "error":
            text.append(f"{output.ename}: {output.evalue}")
        else:
            text.append(output.data.get("text/plain", ""))
    # Whether the other process is still running when one fails depends on timing.
    whole = "\n".join(text).replace("; the other process was stopped", "")
    lines = re.sub(r"\d\d:\d\d:\d\d|\d+ of \d+ cores|(?<=OMP_NUM_THREADS=)\d+|(?<=:)\d{4,}|(?<=token=)[0-9a-f]+|\d+\.\d+ s|pid \d+|(?<=host )[\w.-]+", "N", whole)
    return sorted(line for line in lines.splitlines() if line.strip())


def main() -> int:
    """Returns the number of cells that differ, or 0 with --write."""
    kept = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(run, timeout=LIMIT_S, allow_errors=True, kernel_name="python3").execute()
    if "--write" in sys.argv:
        for cell in run.cells:
            cell.metadata.pop("execution", None)
        run.metadata.pop("language_info", None)
        text = nbformat.writes(run).replace(str(NOTEBOOK.parents[2]), "~/warren")
        NOTEBOOK.write_text(re.sub(rf"\b{re.escape(socket.gethostname())}\b", "node1", text) + "\n", encoding="utf-8")
        return 0
    different = 0
    for old, new in zip(kept.cells, run.cells):
        if old.cell_type == "code" and shown(old) != shown(new):
            different += 1
            print("The cell", old.source, "has shown", *shown(old), "and shows", *shown(new), sep="\n")
    return different


if __name__ == "__main__":
    sys.exit(main())

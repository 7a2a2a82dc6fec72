"""Each table of figures in README says at which commit they were measured: figures without one are believed for ever."""

import os
import pathlib
import re
import unittest

README = pathlib.Path(os.environ["WARREN_SOURCE"]) / "README.md"
COMMIT = re.compile(r"\bcommit [0-9a-f]{7,40}\b")
FIGURE = re.compile(r"[<~]?[-0-9.,]*[0-9][0-9.,]*( ?(s|ms|us|µs|x|%|MB|GB|MB/s|GB/s|Ki|Mi))?")


def tables(text):
    """Each table with what stands between it and what was before: another table, or a heading."""
    before, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(line)
        elif rows:
            yield "\n".join(before), rows
            before, rows = [], []
        if not line.startswith("|"):
            before = [] if line.startswith("#") else [*before, line]


def has_figures(rows):
    """Half of its cells are numbers, leaving out the first of each row."""
    cells = [cell.strip() for row in rows[2:] for cell in row.strip("|").split("|")[1:]]
    return 2 * sum(bool(FIGURE.fullmatch(cell)) for cell in cells) >= len(cells)


class Docs(unittest.TestCase):
    def test_tables_of_figures_name_a_commit(self):
        found = [(before, rows) for before, rows in tables(README.read_text(encoding="utf-8")) if has_figures(rows)]
        self.assertGreaterEqual(len(found), 3)
        for before, rows in found:
            self.assertRegex(before, COMMIT, f"README.md: no commit before the table that begins with {rows[0]}")


if __name__ == "__main__":
    unittest.main()

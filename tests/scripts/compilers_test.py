"""bench/compilers: the rows of its table, and updating one of them."""

import pathlib
import sys
import tempfile
import unittest

from warren_testing import SOURCE, load_script

sys.path.insert(0, str(SOURCE / "bench"))
compilers = load_script("bench/compilers")


def cells(suite, compiler, library, *others):
    return [suite, compiler, library, *others, *["x"] * (len(compilers.COLUMNS) - compilers.KEYS - len(others))]


class Table(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.table = pathlib.Path(folder.name, "compilers.md")

    def rows(self):
        """The rows of the table in order, without the cells that are the same in all rows."""
        lines = [line for line in self.table.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
        self.assertEqual(lines[0], f"| {' | '.join(compilers.COLUMNS)} |")
        return [line.strip("| ").replace(" | x", "") for line in lines[1:]]

    def test_a_row_that_is_run_again_takes_its_own_place_and_the_others_stay(self):
        compilers.write(self.table, cells("sid", "g++-16", "libstdc++", "first"))
        compilers.write(self.table, cells("trixie", "clang++-19", "libc++", "", "**FAILED**: a \\| b"))
        compilers.write(self.table, cells("trixie", "clang++-19", "libstdc++", "third"))
        compilers.write(self.table, cells("sid", "g++-16", "libstdc++", "again"))
        self.assertEqual(self.rows(), ["trixie | clang++-19 | libstdc++ | third", "trixie | clang++-19 | libc++ |  | **FAILED**: a \\| b",
                                       "sid | g++-16 | libstdc++ | again"])

    def test_a_row_of_a_compiler_that_is_not_built_with_any_more_goes(self):
        compilers.write(self.table, cells("sid", "g++-16", "libstdc++"))
        self.table.write_text(self.table.read_text(encoding="utf-8").replace("g++-16", "g++-7"), encoding="utf-8")
        compilers.write(self.table, cells("sid", "g++-15", "libstdc++"))
        self.assertEqual(self.rows(), ["sid | g++-15 | libstdc++"])

    def test_a_row_is_named_as_it_is_listed_or_by_how_it_begins(self):
        for word, names in (("trixie/clang++-19", ["trixie/clang++-19"]), ("trixie/clang++-19/libc++", ["trixie/clang++-19/libc++"]),
                            ("trixie/clang++-19/", ["trixie/clang++-19/libc++"]), ("trixie/g++", ["trixie/g++-13", "trixie/g++-14"])):
            self.assertEqual([row.name for row in compilers.rows_chosen([word])], names)
        self.assertEqual(compilers.rows_chosen(["bullseye"]), [])
        self.assertEqual(len({row.name for row in compilers.rows_chosen([])}), sum(map(len, compilers.COMPILERS.values())))


if __name__ == "__main__":
    unittest.main()

"""The table of environment variables (wire/variables.cc) lists exactly the WARREN_ variables that occur in the sources, and the sources do
not use the variables' former names."""

import os
import re
import unittest
from pathlib import Path

SOURCE = Path(os.environ["WARREN_SOURCE"])
TABLE = SOURCE / "wire/variables.cc"
NAME = re.compile(r"\b(?:WARREN|RABIT)_[A-Z_]+\b")
# The exceptions: (old name, file that sets the variable under both names), for workers whose librabit supports only the old name.
SET_TWICE = {("RABIT_TLS", "tracker/environment.cc"), ("RABIT_TLS", "python/src/warren/tracker.py")}


def sources():
    """Yields (path from the top of the tree, text) of the files that read and set variables."""
    for folder in ("rabit_engine", "data", "tls", "tracker", "submit", "python/src"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".cu", ".py", ".sh"):
                yield str(path.relative_to(SOURCE)), path.read_text()


class VariablesTest(unittest.TestCase):
    def setUp(self):
        rows = re.findall(r'\{k\w+,\s*"(\w+)",\s*(?:nullptr|"(\w+)")', TABLE.read_text())
        self.names = {name for name, _ in rows if name.startswith("WARREN_")}
        self.former_names = {former for _, former in rows if former}
        self.assertGreater(len(self.names), 20)

    def test_the_table_has_the_variables_that_stand_in_the_sources_and_no_others(self):
        used = {name for _, text in sources() for name in re.findall(r'"(WARREN_[A-Z_]+)"', text)}
        self.assertEqual(used, self.names)

    def test_the_sources_use_the_new_names(self):
        old = {(name, path) for path, text in sources() for name in NAME.findall(text) if name in self.former_names}
        self.assertEqual(old, SET_TWICE)


if __name__ == "__main__":
    unittest.main()

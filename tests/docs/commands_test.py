"""What README and docs say is run is run, and prints what they say it prints."""

import pathlib
import subprocess
import tempfile
import unittest

import marked
import running
from warren_testing import BIN, SOURCE


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running.prepare()

    def test_pages_print_what_they_say(self):
        count = 0
        for page in marked.pages(SOURCE):
            for place in ("", running.DEBIAN):
                if running.has_something_for(page, place):
                    with self.subTest(page.name), tempfile.TemporaryDirectory() as folder:
                        count += running.run(page, pathlib.Path(folder), place=place)
        self.assertGreater(count, 30)

    def test_the_page_of_the_environment_is_what_dmlc_submit_writes(self):
        reference = SOURCE / "docs/reference"
        if "`--help-environment`" not in (reference / "options.md").read_text(encoding="utf-8"):
            self.skipTest("this dmlc-submit does not write it")
        done = subprocess.run([BIN / "dmlc-submit", "--help-environment"], capture_output=True, text=True, check=True)
        self.assertEqual((reference / "environment.md").read_text(encoding="utf-8"), done.stdout,
                         "write it anew: dmlc-submit --help-environment > docs/reference/environment.md")


if __name__ == "__main__":
    unittest.main()

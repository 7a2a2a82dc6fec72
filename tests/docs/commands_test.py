"""What README and docs say is run is run, and prints what they say it prints."""

import pathlib
import tempfile
import unittest

import marked
import running
from warren_testing import SOURCE


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running.prepare()

    def test_pages_print_what_they_say(self):
        count = 0
        for page in marked.pages(SOURCE):
            if running.place_of(page) not in ("", running.DEBIAN):
                continue
            with self.subTest(page.name), tempfile.TemporaryDirectory() as folder:
                count += running.run(page, pathlib.Path(folder))
        self.assertGreater(count, 30)


if __name__ == "__main__":
    unittest.main()

"""Runs the commands in the README and the docs, and compares their output with the pages."""

import pathlib
import subprocess
import tempfile
import unittest

import marked
import running
from warren_testing import BIN, SOURCE, at_night

#: Pages with commands for this machine: those that new users read first, and those that take a few seconds.
BY_DAY = ("README.md", "docs/reference/exit-codes.md", "docs/tutorials/laptop.md", "docs/tutorials/rabit-2016.md", "docs/how-to/install.md",
          "docs/how-to/job-files.md", "docs/how-to/python.md", "docs/how-to/restarts.md", "docs/how-to/submit.md", "docs/how-to/tracker.md",
          "docs/how-to/warren.md", "docs/how-to/watching.md",
          "docs/migration/dmlc-core.md", "docs/migration/horovod.md", "docs/migration/mpirun.md")
#: The other pages with commands for this machine, which together take another minute.
BY_NIGHT = ("docs/tutorials/dask-spark.md", "docs/tutorials/pytorch.md", "docs/how-to/data.md", "docs/how-to/frameworks.md",
            "docs/how-to/elastic.md", "docs/how-to/experiment-trackers.md", "docs/how-to/lightgbm.md", "docs/how-to/xgboost.md",
            "docs/tutorials/lost-worker.md", "docs/migration/lightgbm.md", "docs/migration/xgboost-tracker.md")
PLACES = ("", running.DEBIAN)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running.prepare()

    def print_what_they_say(self, names):
        for name in names:
            page = SOURCE / name
            for place in (place for place in PLACES if running.has_something_for(page, place)):
                with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                    self.assertGreater(running.run(page, pathlib.Path(folder), place=place), 0)

    def test_pages_print_what_they_say(self):
        self.print_what_they_say(BY_DAY)

    @at_night
    def test_pages_that_take_longer_print_what_they_say(self):
        self.print_what_they_say(BY_NIGHT)

    def test_the_notebook_prints_what_it_shows(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = pathlib.Path(folder, "programs")
            running.make_programs(programs)
            done = subprocess.run([running.ENVIRONMENT / "bin/python", SOURCE / "tests/docs/notebook.py"], cwd=folder, capture_output=True,
                                  text=True, env=running.environment(programs, True), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_page_with_something_to_run_is_in_one_of_the_lists(self):
        pages = [str(page.relative_to(SOURCE)) for page in marked.pages(SOURCE)
                 if any(running.has_something_for(page, place) for place in PLACES)]
        self.assertEqual(sorted(BY_DAY + BY_NIGHT), sorted(pages))

    def test_the_page_of_the_environment_is_what_dmlc_submit_writes(self):
        done = subprocess.run([BIN / "dmlc-submit", "--help-environment"], capture_output=True, text=True, check=True)
        self.assertEqual((SOURCE / "docs/reference/environment.md").read_text(encoding="utf-8"), done.stdout,
                         "write it anew: dmlc-submit --help-environment > docs/reference/environment.md")


if __name__ == "__main__":
    unittest.main()

"""scripts/nightly: the order of the steps, the steps left out for lack of time, and the table."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from warren_testing import load_script

nightly = load_script("scripts/nightly")

ROWS = {"build": 60, "last week": 600, "yesterday": 30, "long": 7200}
DATES = {"build": "2026-03-02", "last week": "2026-02-23", "yesterday": "2026-03-01", "long": "2026-02-20"}


class Nightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.table = pathlib.Path(folder.name, "nightly.md")
        self.table.write_text("\n".join([*nightly.HEAD, *(f"| {name} | passed | {seconds} | {DATES[name]} | abc | M |"
                                                          for name, seconds in ROWS.items())]) + "\n", encoding="utf-8")
        self.steps = [nightly.Step(name, [["true"]]) for name in ("build", "yesterday", "new", "last week", "long")]
        self.steps.append(nightly.Step("broken", [["true"], ["sh", "-c", "exit 3"], ["sh", "-c", "echo not reached"]]))

    def run_nightly(self, *words):
        """Runs scripts/nightly; returns its exit code and the printed lines."""
        said = io.StringIO()
        with mock.patch.object(nightly, "steps", lambda *_: self.steps), mock.patch.object(sys, "argv", ["nightly", *words, "--output", str(self.table)]), \
                mock.patch.object(nightly, "LOGS", self.table.parent / "logs"), contextlib.redirect_stdout(said):
            return nightly.main(), said.getvalue().splitlines()

    def test_everything_runs_in_its_order_and_a_failure_stops_nothing(self):
        code, said = self.run_nightly()
        self.assertEqual(code, 1)
        self.assertEqual([line for line in said if line.endswith("...")], [f"{step.name} ..." for step in self.steps])
        self.assertIn("broken: **FAILED** (3)", said)
        self.assertNotIn("not reached", (self.table.parent / "logs/broken.log").read_text(encoding="utf-8").split("$ ")[-1])
        self.assertEqual(list(nightly.rows_of(self.table)), [step.name for step in self.steps])

    def test_with_a_limit_what_never_ran_comes_first_then_what_ran_longest_ago(self):
        code, said = self.run_nightly("--minutes", "30")
        self.assertEqual(code, 1)
        self.assertEqual([line for line in said if line.endswith("...")], [f"{name} ..." for name in ("build", "new", "broken", "last week", "yesterday")])
        self.assertIn("long: skipped, too little time left", said)
        self.assertIn(DATES["long"], nightly.rows_of(self.table)["long"])

    def test_the_list_shows_when_each_ran_last(self):
        code, said = self.run_nightly("--list")
        self.assertEqual((code, [line.split("  ")[-1] for line in said]), (0, ["new", "broken", "long", "last week", "yesterday", "build"]))
        self.assertIn("2026-02-20     7200 s  long", said)

    def test_some_are_named_by_how_they_begin_and_the_other_rows_stay(self):
        code, said = self.run_nightly("--only", "last,new")
        self.assertEqual((code, said), (0, [f"{name}{word}" for name in ("build", "new", "last week") for word in (" ...", ": passed")]))
        self.assertIn(DATES["yesterday"], nightly.rows_of(self.table)["yesterday"])
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_nightly("--only", "nothing")

    def test_tests_that_were_skipped_are_named_and_a_step_without_tests_fails(self):
        def ctest(*names, skipped):
            lines = [f"100% tests passed, 0 tests failed out of {len(names)}", "The following tests did not run:",
                     *(f"\t{number:>3} - {name} (Skipped)" for number, name in enumerate(skipped))]
            return nightly.Step("+".join(names), [["printf", "%s\n", *lines]])

        self.steps = [ctest("a", "b", skipped=[]), ctest("a", "c", skipped=["a"]), ctest("a", skipped=["a"]),
                      ctest(*"abcdefg", skipped=list("abcdef"))]
        code, said = self.run_nightly()
        self.assertEqual((code, said[1::2]), (1, ["a+b: passed", "a+c: passed, skipped: a", "a: **NOTHING RAN** (skipped: a)",
                                                  "a+b+c+d+e+f+g: passed, skipped: a, b, c, d and 2 more"]))
        without = nightly.Step("no tests", [nightly.ctest("release", "--tests-regex", "^no such test$")])
        self.steps = [without]
        self.assertEqual(self.run_nightly()[0], 1)

    def test_a_short_benchmark_leaves_the_table_of_the_full_one(self):
        def outputs(measure):
            return {step.name: str(command[-1]) for step in nightly.steps(1, pathlib.Path("archives"), measure) for command in step.commands
                    if command[0].startswith("bench/") and "--output" in command and "compilers" not in command[0]}

        self.assertGreater(len(outputs(True)), 10)
        self.assertEqual([name for name, place in outputs(True).items() if not place.startswith("bench/results/")], [])
        self.assertEqual([name for name, place in outputs(False).items() if not place.startswith(str(nightly.LOGS))], [])


if __name__ == "__main__":
    unittest.main()

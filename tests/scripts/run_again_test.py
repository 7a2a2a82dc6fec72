"""scripts/test reruns one or two failed tests alone, unless one is a unit test, and reports it. ctest and the build are stand-ins."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from warren_testing import SOURCE

CTEST = r"""#!/usr/bin/env bash
# In place of ctest: FAILED are the tests that fail beside others, UNIT those of them that are unit tests, ALONE those that fail alone, too;
# BROKEN: it fails without a test that did.
mkdir -p build
case "$*" in
  *--show-only*--tests-regex*) for name in $UNIT; do echo "  Test #1: $name"; done ;;
  *--show-only*) echo "  Test #7: long_one" ;;
  *--tests-regex*) echo "alone: $*"; [ -z "$ALONE" ] ;;
  *) { echo '<testsuite><testcase name="fine"/>'
       for name in $FAILED; do
         echo "<testcase name=\"$name\"><failure message=\"\"/><system-out>why it &lt;failed&gt;</system-out></testcase>"
       done
       echo '</testsuite>'; } >build/tests.xml
     [ -z "$FAILED$BROKEN" ] ;;
esac
"""


class RunAgain(unittest.TestCase):
    def run_tests(self, failed="", unit="", alone="", broken=""):
        """Runs scripts/test; returns its exit code and output."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/test", folder / "scripts/test")
        for name, text in (("scripts/install-packages", "#!/bin/sh\n"), ("scripts/build", "#!/bin/sh\n"), ("ctest", CTEST)):
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        done = subprocess.run([folder / "scripts/test"], capture_output=True, text=True, check=False,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "FAILED": failed, "UNIT": unit, "ALONE": alone,
                                   "BROKEN": broken})
        return done.returncode, done.stdout + done.stderr

    def test_nothing_is_run_again_where_nothing_failed(self):
        code, said = self.run_tests()
        self.assertEqual(code, 0, said)
        self.assertNotIn("alone", said.lower())
        self.assertIn("Run by scripts/nightly only: long_one\n", said)

    def test_one_or_two_that_pass_alone_are_named_with_what_they_said_first(self):
        for failed in ("engine_x", "engine_x submit_y"):
            code, said = self.run_tests(failed)
            self.assertEqual(code, 0, said)
            for name in failed.split():
                self.assertIn(f"== failed: {name}\nwhy it <failed>\n", said)
            self.assertIn(f"--no-tests=error --tests-regex ^({failed.replace(' ', '|')})$", said)
            self.assertIn(f"== PASSED ONLY WHEN RUN ALONE, please investigate: {failed}\n", said)

    def test_everything_else_fails(self):
        for ways in ({"failed": "a b c"}, {"failed": "a_test.Case.Name", "unit": "a_test.Case.Name"}, {"failed": "a", "alone": "a"}):
            code, said = self.run_tests(**ways)
            self.assertEqual(code, 1, said)
            self.assertIn("why it <failed>", said)
            self.assertNotIn("PASSED ONLY WHEN RUN ALONE", said)
        self.assertEqual(self.run_tests(broken="yes")[0], 1)


if __name__ == "__main__":
    unittest.main()

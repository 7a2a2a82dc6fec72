"""A program that links both librabit and libxgboost: neither affects the other, in either link order."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from api_testing import BIN, alone, job

PROGRAMS = ("api-rabit-before-xgboost", "api-xgboost-before-rabit", "api-xgboost-before-static-rabit")


class BesideXgboost(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.chdir(self.folder.name)
        self.addCleanup(os.chdir, "/")

    def test_xgboost_trains_the_same_model_and_our_collectives_work_around_it(self):
        done = alone(BIN / "api-xgboost-alone", "expected.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = pathlib.Path("expected.json").read_bytes()
        for program in PROGRAMS:
            with self.subTest(program):
                done = job(2, BIN / program, f"{program}.")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                for rank in range(2):
                    self.assertEqual(pathlib.Path(f"{program}.{rank}.json").read_bytes(), expected)

    def test_no_symbol_of_rabit_in_the_program_is_one_of_libxgboosts(self):
        for program in PROGRAMS:
            libraries = subprocess.run(["ldd", BIN / program], capture_output=True, text=True, check=True).stdout
            xgboost = re.search(r"libxgboost\S* => (\S+)", libraries).group(1)
            theirs = subprocess.run(["nm", "-D", "--defined-only", "--format=just-symbols", xgboost],
                                    capture_output=True, text=True, check=True).stdout.split()
            ours = subprocess.run(["nm", "--format=just-symbols", BIN / program], capture_output=True, text=True,
                                  check=True).stdout.split()
            ours = {name.split("@")[0] for name in ours if "5rabit" in name}
            self.assertTrue(ours)
            self.assertFalse(ours & set(theirs))


if __name__ == "__main__":
    unittest.main()

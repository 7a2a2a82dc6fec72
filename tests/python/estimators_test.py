"""Warren's estimators for XGBoost and LightGBM: fits with workers, on arrays, tables and files."""
import os
import re
import subprocess
import unittest

from warren_testing import BIN, SOURCE

PYTHON = os.environ.get("WARREN_ARROW_PYTHON", "")


class Estimators(unittest.TestCase):
    def check(self, program, *arguments, same):
        """Runs a program that compares estimators; checks that it succeeds and reports `same` equal results and no difference."""
        ended = subprocess.run([PYTHON, str(SOURCE / program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "WARREN_NATIVE": str(BIN.parent)}, check=False)
        if re.search("No module named '(sklearn|xgboost|lightgbm|pandas)'", ended.stdout):
            self.skipTest("SKIPPED: the packages of tests/python/arrow_environment.sh are missing")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertNotIn("DIFFERENT", ended.stdout)
        self.assertNotIn("trains on this thread's rows alone", ended.stdout)
        self.assertEqual(len(re.findall("^same ", ended.stdout, re.M)), same, ended.stdout)

    def test_xgboosts_on_tables_and_files_are_those_of_the_library_alone(self):
        self.check("tests/interop/same_model/on_workers.py", "tables", same=14)

    def test_lightgbms_with_one_worker_are_those_of_the_library_alone_and_with_two_as_good(self):
        self.check("tests/python/lightgbm_estimators.py", same=19)

    def test_they_pass_scikit_learns_checks_that_the_librarys_own_pass(self):
        # A sample; scripts/nightly runs all checks.
        self.check("tests/python/estimator_checks.py", "XGBRegressor", "check_regressor_data_not_an_array", "check_dict_unchanged", same=2)
        self.check("tests/python/estimator_checks.py", "LGBMRegressor", "check_dtype_object", same=1)


if __name__ == "__main__":
    unittest.main()

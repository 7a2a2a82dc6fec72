"""XGBoost's estimators with workers, on tables of pandas, polars and Arrow, and on files."""
import os
import re
import subprocess
import unittest

from warren_testing import SOURCE

PYTHON = os.environ.get("WARREN_ARROW_PYTHON", "")


class Estimators(unittest.TestCase):
    def test_tables_and_files_give_the_models_of_the_library_alone(self):
        ended = subprocess.run([PYTHON, str(SOURCE / "tests/interop/same_model/on_workers.py"), "tables"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
        if re.search("No module named '(sklearn|xgboost)'", ended.stdout):
            self.skipTest("SKIPPED: no scikit-learn or XGBoost from PyPI")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertNotIn("DIFFERENT", ended.stdout)
        self.assertEqual(len(re.findall("^same ", ended.stdout, re.M)), 14, ended.stdout)


if __name__ == "__main__":
    unittest.main()

"""Any number of workers train the model of one process from Parquet, Arrow and CSV files. Needs pyarrow in XGBOOST_PYTHON."""
import subprocess
import sys
import unittest

from any_xgboost_test import PYTHON, environment
from same_model_test import Compared
from warren_testing import AT_NIGHT

#: The numbers of workers to test with each form of files.
FILES = {"parquet": (2, 3, 9), "arrow": (4,), "csv": (3,)} if AT_NIGHT else {"parquet": (2, 5), "csv": (3,)}


class SameModelOfFiles(Compared):
    def test_columns_give_the_model_of_one_process(self):
        for form, several in FILES.items():
            self.check(form, several, .5)


if __name__ == "__main__":
    if subprocess.run([PYTHON, "-c", "import pyarrow.parquet"], capture_output=True, env=environment(), check=False).returncode != 0:
        print("SKIPPED: XGBOOST_PYTHON has no pyarrow")
        sys.exit(77)
    unittest.main()

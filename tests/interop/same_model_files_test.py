"""The model of one process from files of columns, with any number of workers. Needs XGBOOST_PYTHON with pyarrow."""
import subprocess
import sys
import unittest

from any_xgboost_test import PYTHON, environment
from same_model_test import Compared
from warren_testing import AT_NIGHT

#: The forms of files, and the numbers of workers that read them.
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

"""The model and the evaluations of one process, with any number of workers: warren.xgboost.train(..., reproducible=True).
tests/interop/matrix runs this file for each version of XGBoost, as any_xgboost_test.py describes."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from any_xgboost_test import PYTHON, VERSION, environment
from warren_testing import AT_NIGHT, BIN

WORKER = pathlib.Path(__file__).parent / "same_model/worker.py"
#: The seeds of the random trainings for each form of data: the first, and how many.
FIRST_CASE = int(os.environ.get("WARREN_FIRST_MODEL", "0"))
CASES = int(os.environ.get("WARREN_SAME_MODELS", "300" if AT_NIGHT else "40"))
#: The forms of files, and the numbers of workers that read them.
FILES = {"parquet": (2, 3, 9), "arrow": (4,), "csv": (3,)} if AT_NIGHT else {"parquet": (2, 5), "csv": (3,)}
#: tests/interop/same_model/table reads from this file how many models were compared.
REPORT = os.environ.get("WARREN_SAME_MODELS_REPORT", os.devnull)
#: The most trainings of one job.
CASES_AT_ONCE = 100
LIMIT_S = 300
FIRST = (2, 1)


def has_arrow() -> bool:
    return subprocess.run([PYTHON, "-c", "import pyarrow.parquet"], capture_output=True, env=environment(), check=False).returncode == 0


@unittest.skipIf(VERSION < FIRST, "needs XGBoost 2.1")
class SameModel(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def job(self, workers, form, first, last):
        """Runs a job, and returns its results by the seeds of the cases."""
        worker = [PYTHON, str(WORKER), form, str(first), str(last), str(self.folder)]
        job = [str(BIN / "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(workers), "--quiet", "--"]
        done = subprocess.run([*job, *worker], capture_output=True, text=True, timeout=LIMIT_S, env=environment(), check=False)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-4000:])
        return json.loads((self.folder / f"{form}-{first}-{workers}.json").read_text(encoding="utf-8"))

    def check(self, form, several, fewest):
        """Compares jobs of several workers with jobs of one. `fewest`: the least fraction of cases that must have been trained."""
        for first in range(FIRST_CASE, FIRST_CASE + CASES, CASES_AT_ONCE):
            last = min(first + CASES_AT_ONCE, FIRST_CASE + CASES)
            alone = self.job(1, form, first, last)
            for workers in several:
                found = self.job(workers, form, first, last)
                self.assertGreaterEqual(len(found), fewest * (last - first))
                # Compared as text, in which NaN is equal to NaN.
                different = [seed for seed, result in found.items() if json.dumps(result) != json.dumps(alone[seed])]
                with open(REPORT, "a", encoding="utf-8") as report:
                    report.write(json.dumps({"form": form, "models": len(found), "different": different}) + "\n")
                with self.subTest(form=form, workers=workers, first=first):
                    self.assertEqual(different, [], f"these seeds differ: {[(alone[seed], found[seed]) for seed in different[:2]]}")

    def test_00_what_depends_on_the_number_of_workers_is_refused(self):
        done = subprocess.run([PYTHON, str(WORKER.with_name("refused.py"))], capture_output=True, text=True, env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_01_rows_in_memory_give_the_model_of_one_process(self):
        self.check("rows", (2, 3, 7), .7)

    def test_02_text_gives_the_model_of_one_process(self):
        self.check("libsvm", (2, 5), .2)

    def test_03_columns_give_the_model_of_one_process(self):
        if not has_arrow():
            self.skipTest("pyarrow is not installed")
        for form, several in FILES.items():
            self.check(form, several, .5)

    def test_04_exact_sums_give_the_same_model(self):
        self.check("exact", (2, 3, 7) if AT_NIGHT else (3,), .4)

    def test_05_sums_on_the_grid_are_exact_in_any_order(self):
        done = subprocess.run([PYTHON, str(WORKER.with_name("exact_sums.py"))], capture_output=True, text=True, env=environment(), check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_06_rounded_sums_are_reported_and_avoided(self):
        job = [str(BIN / "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", "3", "--quiet", "--"]
        said = {}
        for how in ("True", "exact"):
            done = subprocess.run([*job, PYTHON, str(WORKER.with_name("large_gradients.py")), how], capture_output=True, text=True,
                                  timeout=LIMIT_S, env={**environment(), "WARREN_CHECK_SUMS": "1"}, check=False)
            said[how] = done.stdout + done.stderr
            self.assertEqual(done.returncode, 0, said[how])
        self.assertRegex(said["True"], "in [1-9][0-9]* of 5 rounds sums may have been rounded: they need up to [1-9][0-9]* bits")
        self.assertRegex(said["exact"], "all sums of 5 rounds were exact: they need at most (4[0-9]|5[0-3]) of 53 bits")

    def test_07_estimators_give_the_model_of_one_process(self):
        said = {}
        for workers in (1, 3):
            job = [str(BIN / "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(workers), "--quiet", "--"]
            done = subprocess.run([*job, PYTHON, str(WORKER.with_name("estimators.py"))], capture_output=True, text=True, timeout=LIMIT_S,
                                  env=environment(sklearn=True), check=False)
            said[workers] = done.stdout
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("subsample=0.5", done.stdout)
        models = {workers: re.findall(r"\] model .*", text) for workers, text in said.items()}
        self.assertEqual(len(models[1]), 5, said[1])
        self.assertEqual(models[3], models[1])
        self.assertIn("rank 0 has rows of 0, and rank 1 of 1", said[3])


if __name__ == "__main__":
    unittest.main()

"""warren.xgboost.train(..., reproducible=True) gives the model and the evaluations of one process with any number of workers.
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

FOLDER = pathlib.Path(__file__).parent / "same_model"
#: The first seed of the random training runs for each form of data, and the number of seeds.
FIRST_CASE = int(os.environ.get("WARREN_FIRST_MODEL", "0"))
CASES = int(os.environ.get("WARREN_SAME_MODELS", "300" if AT_NIGHT else "40"))
#: The file for the numbers of compared models and the seeds that differ, which tests/interop/same_model/table reads.
REPORT = os.environ.get("WARREN_SAME_MODELS_REPORT", os.devnull)
#: The maximum number of training runs in one job.
CASES_AT_ONCE = 100
LIMIT_S = 300
FIRST = (2, 1)


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_program(self, name, *arguments, workers=0, sklearn=False, cwd=None, **variables):
        """Runs a program of the folder same_model in the folder `cwd`, in a job unless `workers` is 0, and returns its output."""
        job = [str(BIN / "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(workers), "--quiet", "--"]
        done = subprocess.run([*(job if workers else []), PYTHON, str(FOLDER / name), *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S, env={**environment(sklearn), **variables}, cwd=cwd, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        return done.stdout


@unittest.skipUnless(VERSION < FIRST, "of XGBoost before 2.1")
class VersionsBefore(Jobs):
    def test_00_the_model_of_one_process_is_refused_with_the_version_that_has_it(self):
        self.run_program("refused_version.py")


class Compared(Jobs):
    """Compares jobs of several workers with jobs of one worker."""

    def job(self, workers, form, first, last):
        """Runs a job, and returns its results by case seed. Three workers communicate over XGBoost's own links, seven over
        TCP, others over shared memory."""
        how = {3: {"WARREN_XGBOOST_ENGINE": "own"}, 7: {"WARREN_SHARED_MEMORY": "off"}}.get(workers, {})
        self.run_program("worker.py", form, first, last, self.folder, workers=workers, **how)
        return json.loads((self.folder / f"{form}-{first}-{workers}.json").read_text(encoding="utf-8"))

    def check(self, form, several, fewest):
        """Compares jobs of several workers with jobs of one. `fewest`: the minimum fraction of cases that must have been trained."""
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

    def check_program(self, name, count, **how):
        """Compares the models that a program prints with 1 and 3 workers; there must be at least `count`. Returns the outputs, by number of
        workers."""
        said = {workers: self.run_program(name, workers=workers, **how) for workers in (1, 3)}
        models = {workers: re.findall(r"\] model .*", text) for workers, text in said.items()}
        self.assertGreaterEqual(len(models[1]), count, said[1])
        self.assertEqual(models[3], models[1])
        return said


@unittest.skipIf(VERSION < FIRST, "needs XGBoost 2.1")
class SameModel(Compared):
    def test_00_what_depends_on_the_number_of_workers_is_refused(self):
        self.run_program("refused.py")

    def test_00b_errors_of_the_library_and_of_a_metric_are_the_same_on_all_workers(self):
        self.run_program("errors.py", workers=2)

    def test_01_rows_in_memory_give_the_model_of_one_process(self):
        self.check("rows", (2, 3, 7), .7)

    def test_02_text_gives_the_model_of_one_process(self):
        self.check("libsvm", (2, 5), .2)

    def test_04_exact_sums_give_the_same_model(self):
        self.check("exact", (2, 3, 7) if AT_NIGHT else (3,), .4)

    def test_05_sums_on_the_grid_are_exact_in_any_order(self):
        self.run_program("exact_sums.py")

    def test_06_rounded_sums_are_reported_and_avoided(self):
        said = {how: self.run_program("large_gradients.py", how, workers=3, WARREN_CHECK_SUMS="1") for how in ("True", "exact")}
        self.assertRegex(said["True"], "in [1-9][0-9]* of 5 rounds sums may have been rounded: they need up to [1-9][0-9]* bits")
        self.assertRegex(said["exact"], "all sums of 5 rounds were exact: they need at most (4[0-9]|5[0-3]) of 53 bits")

    def test_07_estimators_give_the_model_of_one_process(self):
        said = self.check_program("estimators.py", 6, sklearn=True)
        self.assertIn("subsample=0.5 with booster='dart'", said[1])
        self.assertIn("rank 0 has rows of 0, and rank 1 of 1", said[3])

    def test_08_other_trainings_give_the_model_of_one_process(self):
        self.check_program("trainings.py", 7)

    def test_09_rows_are_drawn_as_one_process_draws_them(self):
        self.check_program("sampled.py", 18)

    def test_10_estimators_that_fit_in_a_job_are_those_that_fit_alone(self):
        said = self.run_program("on_workers.py", sklearn=True)
        self.assertNotIn("DIFFERENT", said)
        self.assertEqual((len(re.findall("^same ", said, re.M)), len(re.findall("^refused ", said, re.M))), (11, 8), said)

    def test_11_arguments_that_differ_between_workers_are_named(self):
        self.run_program("different.py", workers=2, cwd=self.folder)


if __name__ == "__main__":
    unittest.main()

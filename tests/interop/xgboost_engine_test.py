"""XGBoost 1.7 trains the same models over our engine as over its own communication.

xgb-train is linked with librabit_xgboost; Python gets it with LD_PRELOAD. Debian's xgboost program has XGBoost built
into it, where nothing can take the place of its communication: there the library has to do no harm.
Two ranks add two numbers, in whatever order: then models have to be equal bit for bit. With more ranks each engine has
an order of its own, and the last bits of a sum may differ.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from warren_testing import BIN, SOURCE

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
PYTHON = "/usr/bin/python3"
SEAM = pathlib.Path(os.environ["WARREN_LIB"]) / "librabit_xgboost.so"
SAME = 1e-5


class Engines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chdir(cls.folder.name)
        with open(HEART) as heart, open("heart.txt", "w") as out:
            out.writelines(re.sub(r"^-1 ", "0 ", line) for line in heart)
        cls.make("mushroom.train", "--features", 126, "--density", 0.175, "--binary-features", "--rows", 6513)
        cls.make("mushroom.test", "--features", 126, "--density", 0.175, "--binary-features", "--rows", 1611,
                 "--first-row", 6513)
        cls.make("smooth.train", "--features", 20, "--density", 1, "--rows", 6000)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.folder.cleanup()

    @classmethod
    def make(cls, path, *options):
        subprocess.run([BIN / "make_libsvm", *map(str, options), "--output", path], check=True)

    def train(self, engine, workers, command, ours):
        """Trains; returns the evaluations. The choice of algorithms that our engine prints shows who is at work."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DMLC_")}
        environment.update(OMP_NUM_THREADS="1", PYTHONPATH="", RABIT_PRINT_CHOICE="1", WARREN_XGBOOST_ENGINE=engine)
        done = subprocess.run([BIN / "dmlc-submit", "--num-workers", str(workers), "--port", "0",
                               *(str(word) for word in command)],
                              capture_output=True, text=True, timeout=200, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual("rabit: allreduce of" in done.stderr, ours, done.stderr)
        lines = re.findall(r"\[\d+\](\t\S+:\S+.*)$", done.stdout + done.stderr, re.MULTILINE)
        return [float(value) for line in lines for value in re.findall(r":([-+.e\d]+)", line)]

    def assert_engines_agree(self, rounds, command, model_argument, model, reachable=True):
        for workers in (2, 3, 4):
            found = {}
            for engine in ("warren", "own"):
                path = f"{engine}-{workers}-{model}"
                found[engine] = self.train(engine, workers, [*command, model_argument(path)],
                                           reachable and engine == "warren")
                self.assertGreaterEqual(len(found[engine]), rounds)
                with open(path, "rb") as file:
                    found[engine, "model"] = file.read()
            self.assertEqual(len(found["warren"]), len(found["own"]))
            for left, right in zip(found["warren"], found["own"]):
                self.assertAlmostEqual(left, right, delta=SAME)
            if workers == 2:
                self.assertEqual(found["warren", "model"], found["own", "model"])

    def test_xgb_train_with_hist_and_approx(self):
        for method in ("hist", "approx"):
            self.assert_engines_agree(
                10, [BIN / "xgb-train", SOURCE / "examples/xgboost/heart.conf", f"tree_method={method}",
                     "objective=binary:logistic", "eval_metric=logloss", "data=heart.txt", "eval[heart]=heart.txt"],
                "model_out={}".format, f"{method}.json")

    def test_xgb_train_when_quantiles_are_merged_from_sketches(self):
        self.assert_engines_agree(
            5, [BIN / "xgb-train", "objective=binary:logistic", "eval_metric=logloss", "tree_method=hist", "nthread=1",
                "data=smooth.train?format=libsvm", "eval_train=1", "num_round=5"],
            "model_out={}".format, "smooth.json")

    def test_the_xgboost_program_of_debian_which_cannot_be_reached(self):
        self.assert_engines_agree(
            2, ["env", f"LD_PRELOAD={SEAM}", "xgboost", SOURCE / "examples/xgboost/mushroom.conf", "tree_method=hist"],
            "model_out={}".format, "mushroom.model", reachable=False)

    def test_the_python_script(self):
        self.assert_engines_agree(
            5, ["env", f"LD_PRELOAD={SEAM}", PYTHON, SOURCE / "examples/xgboost/train.py", "--data", HEART, "--rounds",
                5, "--param", "tree_method=hist", "--param", "eval_metric=logloss"],
            "--model={}".format, "python.json")


if __name__ == "__main__":
    unittest.main(warnings="ignore")

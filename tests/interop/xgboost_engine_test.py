"""XGBoost 1.7 trains the same models over our engine as over its own communication.

xgb-train is linked with librabit_xgboost; Python scripts preload it. Debian's xgboost program has XGBoost built in, so its communication
cannot be replaced: with this program, the library must do no harm. With two ranks, all sums have two operands, and the models must be
equal bit for bit. With more ranks, the engines add in different orders, so the last bits of sums may differ."""

import os
import pathlib
import re
import unittest

from training import HEART, PYTHON, TrainingCase
from warren_testing import BIN, SOURCE

SEAM = pathlib.Path(os.environ["WARREN_LIB"]) / "librabit_xgboost.so"
SAME = 1e-5


class Engines(TrainingCase):
    def train(self, engine, workers, command, ours):
        """Trains and returns the evaluations. Checks that our engine, which prints its choice of algorithms, was in use if and only if
        `ours`."""
        output = self.distributed(workers, command, WARREN_PRINT_CHOICE="1", WARREN_XGBOOST_ENGINE=engine)
        self.assertEqual("rabit: allreduce of" in output, ours, output)
        lines = re.findall(r"\[\d+\](\t\S+:\S+.*)$", output, re.MULTILINE)
        return [float(value) for line in lines for value in re.findall(r":([-+.e\d]+)", line)]

    def assert_engines_agree(self, rounds, command, model_argument, model, reachable=True):
        for workers in (2, 3, 4):
            found = {}
            for engine in ("warren", "own"):
                path = f"{engine}-{workers}-{model}"
                found[engine] = self.train(engine, workers, [*command, model_argument(path)],
                                           reachable and engine == "warren")
                self.assertGreaterEqual(len(found[engine]), rounds)
                found[engine, "model"] = self.read(path)
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

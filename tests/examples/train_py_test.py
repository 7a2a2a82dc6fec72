"""examples/xgboost/train.py in one process, with Debian's python3-xgboost."""
import json
import os
import sys
import unittest

from programs import ProgramTest

TRAIN_PY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/xgboost/train.py")
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"

try:
    import xgboost
except ImportError:
    xgboost = None


@unittest.skipIf(xgboost is None, "python3-xgboost is not installed")
@unittest.skipIf(not os.path.exists(HEART), "liblinear-tools is not installed")
class TrainPy(ProgramTest):
    def test_trains_alone_and_saves_a_whole_model(self):
        text = self.run_well(sys.executable, TRAIN_PY, "--rounds", "3", "--model", "m.json")
        self.assertRegex(text, r"(?m)^\[0\]\ttrain-logloss:0\.55")
        self.assertRegex(text, r"(?m)^\[2\]\ttrain-logloss:0\.41")
        self.assertEqual(self.files(), ["m.json"])
        trees = json.loads(self.read("m.json"))["learner"]["gradient_booster"]["model"]["trees"]
        self.assertEqual(len(trees), 3)

    def test_a_model_that_could_not_be_saved_is_known_before_the_first_round(self):
        os.mkdir(self.path("folder.json"))
        for model, code, words in (("no/such/m.json", 1, "the model could not be saved in a folder that does not exist"),
                                   ("folder.json", 1, "the model would replace a folder"),
                                   ("m.model", 2, "expected a name that ends in .json or .ubj")):
            with self.subTest(model=model):
                done = self.run_program(sys.executable, TRAIN_PY, "--rounds", "1", "--model", model)
                self.assertEqual(done.returncode, code)
                self.assertIn(words, done.stderr.decode())
                self.assertNotIn("train-logloss", (done.stdout + done.stderr).decode())
        self.assertEqual(self.files(), ["folder.json"])

    def test_passes_parameters_on(self):
        self.run_well(sys.executable, TRAIN_PY, "--rounds", "1", "--model", "m.json", "--param", "eta=0.125")
        self.assertAlmostEqual(xgboost.Booster(model_file=self.path("m.json")).num_boosted_rounds(), 1)
        self.assertRegex(self.run_well(sys.executable, TRAIN_PY, "--rounds", "1", "--param", "eta=0"),
                         r"train-logloss:0\.693")


if __name__ == "__main__":
    unittest.main()

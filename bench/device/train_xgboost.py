"""Trains XGBoost on the numbers in a file, for scripts/gpu-check, and prints the duration of the rounds in seconds. Trains one more round
than it measures, because the first round also copies the binned rows to the device."""

import json
import sys
import time

import numpy
import xgboost


class Ends(xgboost.callback.TrainingCallback):
    def __init__(self):
        super().__init__()
        self.times = []

    def after_iteration(self, model, epoch, evals_log):
        self.times.append(time.monotonic())
        return False


path, features, device, depth, bins, rounds, threads = sys.argv[1:]
table = numpy.fromfile(path, numpy.float32).reshape(-1, int(features) + 1)
parameters = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": int(depth), "max_bin": int(bins), "eta": 0.3,
              "lambda": 1, "base_score": 0.5, "nthread": int(threads)}
if int(xgboost.__version__.split(".")[0]) >= 2:
    parameters["device"] = device
elif device != "cpu":
    sys.exit(f"XGBoost {xgboost.__version__} is older than 2.0")
rows = xgboost.QuantileDMatrix(table[:, 1:], table[:, 0], max_bin=int(bins))
del table
ends = Ends()
trained = xgboost.train(parameters, rows, int(rounds) + 1, callbacks=[ends])
if "device" in parameters:
    used = json.loads(trained.save_config())["learner"]["generic_param"]["device"]
    if not used.startswith(device):
        sys.exit(f"XGBoost trained on {used} instead")
print("rounds in", ends.times[-1] - ends.times[0])

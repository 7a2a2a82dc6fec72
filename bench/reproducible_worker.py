"""A worker of bench/reproducible: trains on Parquet files, and prints a line of JSON.

    reproducible_worker.py WAY FOLDER ROUNDS [MODEL]

WAY: `usual` trains with xgboost.train, `reproducible` and `exact` with warren.xgboost.train(..., reproducible=True or "exact"). Without
MODEL, the rounds after the first are timed twice, without and with an evaluation of the training rows. With MODEL, the model is written
there."""
import json
import os
import resource
import sys
import time

import xgboost

import warren.xgboost

PARAMS = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 6, "eval_metric": "logloss",
          "nthread": int(os.environ.get("OMP_NUM_THREADS", "0"))}


class Clock(xgboost.callback.TrainingCallback):
    """Records the time after each round."""

    def __init__(self):
        self.times = []

    def after_iteration(self, model, epoch, evals_log):
        self.times.append(time.time())
        return False


def main():
    way, folder, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    reproducible = {"usual": False, "reproducible": True}.get(way, way)

    def train(matrix, **options):
        clock = Clock()
        if reproducible:
            model = warren.xgboost.train(PARAMS, matrix, rounds, reproducible=reproducible, callbacks=[clock], verbose_eval=False, **options)
        else:
            model = xgboost.train(PARAMS, matrix, rounds, callbacks=[clock], verbose_eval=False, **options)
        return model, clock.times

    with warren.xgboost.communicator():
        matrix = warren.xgboost.load_dmatrix(folder, label="y", quantile=True, reproducible=bool(reproducible), progress=False)
        model, times = train(matrix)
        told = {"first": times[0], "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}
        if len(sys.argv) > 4:
            if warren.xgboost.get_rank() == 0:
                model.save_model(sys.argv[4])
        else:
            _, evaluated = train(matrix, evals=[(matrix, "train")])
            told.update(round_s=(times[-1] - times[0]) / (rounds - 1), evaluated_s=(evaluated[-1] - evaluated[0]) / (rounds - 1))
        print("told " + json.dumps(told), flush=True)


main()

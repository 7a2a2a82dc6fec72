"""A worker of bench/elastic: trains on Parquet files, and records the time after each round.

    elastic_worker.py WAY FOLDER ROUNDS NOTES

WAY: `elastic` and `reproducible` call warren.xgboost.train, `checkpoints` calls train_with_checkpoints on a reproducible matrix. Each
process appends lines to NOTES/TASK: its process ID, the round, and the time."""
import os
import pathlib
import sys
import time

WAY, FOLDER, ROUNDS, NOTES = sys.argv[1], sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4])

# pylint: disable=wrong-import-position
import xgboost  # noqa: E402

import warren.xgboost  # noqa: E402

PARAMS = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 8, "nthread": int(os.environ.get("OMP_NUM_THREADS", "0"))}


class Notes(xgboost.callback.TrainingCallback):
    """Records the time after each round."""

    def __init__(self):
        self.file = (NOTES / os.environ["DMLC_TASK_ID"]).open("a", encoding="ascii")

    def after_iteration(self, model, epoch, evals_log):
        """Writes the process ID, the round and the time. Returns False, so that training continues."""
        self.file.write(f"{os.getpid()} {model.num_boosted_rounds()} {time.time()}\n")
        self.file.flush()
        return False


def main():
    """Trains in the way that WAY names."""
    with warren.xgboost.communicator():
        how = {"callbacks": [Notes()], "verbose_eval": False}
        data = warren.xgboost.Data(FOLDER, label="y", progress=False)
        if WAY == "checkpoints":
            matrix = warren.xgboost.load_dmatrix(FOLDER, label="y", quantile=True, reproducible=True, progress=False)
            warren.xgboost.train_with_checkpoints(PARAMS, matrix, ROUNDS, NOTES / "checkpoint.json", **how)
        else:
            warren.xgboost.train(PARAMS, data, ROUNDS, elastic=WAY == "elastic", reproducible=True, **how)


main()

"""A worker that trains briefly with stock XGBoost and its own collectives. With the argument `stops`, worker 1 stops itself with SIGSTOP."""

import os
import signal
import sys
import time

import numpy as np
import xgboost

if hasattr(xgboost, "rabit"):  # XGBoost up to 1.7
    xgboost.rabit.init([f"{name}={value}".encode() for name, value in os.environ.items() if name.startswith("DMLC_")])
    finish = xgboost.rabit.finalize
else:
    arguments = {name: os.environ[name] for name in ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID")}
    xgboost.collective.init(**arguments)
    finish = xgboost.collective.finalize
task = int(os.environ["DMLC_TASK_ID"])
random = np.random.default_rng(task)
rows = random.random((500, 4))
data = xgboost.DMatrix(rows, rows.sum(axis=1))


class Stop(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        time.sleep(0.3)
        if sys.argv[1:] == ["stops"] and task == 1 and epoch == 3:
            os.kill(os.getpid(), signal.SIGSTOP)
        return False


xgboost.train({"tree_method": "hist", "max_depth": 2}, data, 12, evals=[(data, "train")], callbacks=[Stop()])
finish()

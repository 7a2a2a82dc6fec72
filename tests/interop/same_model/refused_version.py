"""Checks that warren.xgboost rejects reproducible=True if XGBoost is older than 2.1."""
import numpy as np

import warren.xgboost

DATA = warren.xgboost.Data(np.zeros((2, 1), "float32"), label=[0, 1])


def estimators():
    with warren.xgboost.reproducible():
        pass


for work in (lambda: warren.xgboost.train({}, DATA, 1, reproducible=True), estimators,
             lambda: warren.xgboost.load_dmatrix("missing.svm", reproducible=True)):
    try:
        work()
    except RuntimeError as error:
        assert "needs XGBoost 2.1 or later" in str(error), error
    else:
        raise AssertionError("nothing was refused")

"""Checks the errors that rank 0 raises alone for all workers: XGBoost's own, and those of the caller's metric."""
import numpy as np
import xgboost

import warren.xgboost


def bad(_, matrix):
    raise {}[matrix.num_row()]  # the line that the errors name


def bad_value(_, matrix):
    raise ValueError("bad")


def error_of(kind, data, **options):
    """The error of this class that a training raises."""
    try:
        warren.xgboost.train(PARAMS, data, 2, reproducible=True, verbose_eval=False, **options)
    except kind as error:
        return error
    raise AssertionError("no error")


PARAMS = {"objective": "binary:logistic", "nthread": 1}
with warren.xgboost.communicator():
    features = np.arange(20, dtype="float32").reshape(10, 2)
    wrong = error_of(xgboost.core.XGBoostError, warren.xgboost.Data(features, label=features[:, 0]))
    assert str(wrong).startswith("rank 0: "), wrong
    rows = warren.xgboost.Data(features, label=features[:, 0] % 4 / 2)
    for kind, metric, words in ((RuntimeError, bad, "KeyError: 20"), (ValueError, bad_value, "bad")):
        found = error_of(kind, rows, evals=[(rows, "rows")], custom_metric=metric)
        line = metric.__code__.co_firstlineno + 1
        assert str(found) == f"rank 0: {words} (in {metric.__name__}, {__file__}:{line})", found
        assert (found.__cause__ is not None) == (warren.xgboost.get_rank() == 0), found.__cause__

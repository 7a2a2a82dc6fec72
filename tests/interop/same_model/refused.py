"""Checks what warren.xgboost refuses with reproducible=True, in one process."""
import warnings

import numpy as np
import xgboost

import warren.xgboost

#: Parameters that are refused, and what the error must name besides the parameter.
REFUSED = [({"tree_method": "approx"}, "hist"), ({"tree_method": "exact"}, "hist"), ({"booster": "gblinear"}, "gbtree"),
           ({"updater": "grow_colmaker"}, "hist"), ({"process_type": "update"}, "leave it out"), ({"device": "cuda"}, "cpu"),
           ({"sampling_method": "gradient_based"}, "leave it out"),
           ({"objective": "reg:absoluteerror"}, "reg:pseudohubererror"), ({"objective": "reg:quantileerror"}, "reg:pseudohubererror"),
           ({"objective": "survival:cox"}, "survival:aft"), ({"lambdarank_pair_method": "mean"}, "topk"),
           ({"lambdarank_unbiased": True}, "leave it out")]


def error_of(work):
    """The message of the error that `work` raises."""
    try:
        work()
    except (ValueError, TypeError, xgboost.core.XGBoostError) as error:
        return str(error)
    raise AssertionError("nothing was refused")


def main():
    warnings.simplefilter("ignore")
    features = np.arange(20, dtype="float32").reshape(10, 2)
    data = warren.xgboost.Data(features, label=features[:, 0])
    for params, remedy in REFUSED:
        text = error_of(lambda params=params: warren.xgboost.train(params, data, 1, reproducible=True))
        (name, value), = params.items()
        assert f"{name}={value!r}" in text and remedy in text and "number of workers" in text, text
    for params in ({"subsample": 1}, {"subsample": .5}, {"tree_method": "hist"}, {"lambdarank_unbiased": False}, {"device": "cpu"}):
        warren.xgboost.train(params, data, 1, reproducible=True)

    for params in ({"num_parallel_tree": 2}, {"objective": "multi:softprob", "num_class": 10}, {"objective": "binary:hinge"}, {"objective": "rank:ndcg"},
                   {"booster": "dart"}, *([{"colsample_bytree": .5, "seed_per_iteration": 1}] if warren.xgboost.VERSION >= (3, 3) else [])):
        text = error_of(lambda params=params: warren.xgboost.train({"subsample": 0.5, **params}, data, 1, reproducible=True))
        name, value = next(iter(params.items()))
        assert f"subsample=0.5 with {name}={value!r}" in text and "number of workers" in text, text
    several = warren.xgboost.Data(features, label=features)
    assert "several labels" in error_of(lambda: warren.xgboost.train({"subsample": 0.5}, several, 1, reproducible="exact"))
    queries = warren.xgboost.Data(features, label=features[:, 0], qid=np.arange(10))
    assert "queries" in error_of(lambda: warren.xgboost.train({"subsample": 0.5}, queries, 1, reproducible=True))

    def of_classes(predictions, _):
        return np.ones_like(predictions), np.ones_like(predictions)

    assert "3 trees in a round" in error_of(lambda: warren.xgboost.train({"subsample": 0.5, "num_class": 3, "base_score": 0.}, data, 1, obj=of_classes,
                                                                         reproducible="exact"))
    for name, value in (("subsample", .5), ("sampling_method", "gradient_based"), ("seed", 3)):
        class Sets(xgboost.callback.TrainingCallback):
            def before_iteration(self, model, epoch, evals_log, name=name, value=value):
                if epoch == 1:
                    model.set_param({name: value})
                return False
        if name == "seed" and warren.xgboost.VERSION >= (3, 3):
            continue
        text = error_of(lambda: warren.xgboost.train({"subsample": 0.5} if name == "seed" else {}, data, 3, callbacks=[Sets()], reproducible="exact"))
        assert name in text and "number of workers" in text, text
    for value in (1.5, -.5):
        assert "subsample" in error_of(lambda value=value: warren.xgboost.train({"subsample": value}, data, 1, reproducible="exact"))

    sampled = xgboost.train({"subsample": 0.5}, xgboost.QuantileDMatrix(features, label=features[:, 0]), 1)
    if warren.xgboost.VERSION < (3, 3):
        assert "subsample='0.5'" in error_of(lambda: warren.xgboost.train({}, data, 1, xgb_model=sampled, reproducible=True))
    median = xgboost.train({"objective": "reg:absoluteerror"}, xgboost.QuantileDMatrix(features, label=features[:, 0]), 1)
    assert "reg:absoluteerror" in error_of(lambda: warren.xgboost.train({}, data, 1, xgb_model=median.save_raw(), reproducible=True))

    usual = xgboost.QuantileDMatrix(features, label=features[:, 0])
    assert "load_dmatrix" in error_of(lambda: warren.xgboost.train({}, usual, 1, reproducible=True))
    evals = [(usual, "named")]
    assert "'named'" in error_of(lambda: warren.xgboost.train({}, data, 1, evals=evals, reproducible=True))
    rows = xgboost.DMatrix(features, label=features[:, 0])
    warren.xgboost.train({}, data, 1, evals=[(rows, "rows")], reproducible=True, verbose_eval=False)

    assert "cuts of ref" in error_of(lambda: warren.xgboost.Data(features, label=features[:, 0], ref=usual).load(reproducible=True))
    assert "cuts of ref" in error_of(lambda: warren.xgboost.load_dmatrix("missing.svm", ref=usual, reproducible=True))
    assert "missing=-1" in error_of(lambda: warren.xgboost.load_dmatrix("missing.svm", missing=-1, reproducible=True))
    for objective, wrong in (("binary:logistic", 0.5 + features[:, 0]), ("reg:gamma", -features[:, 0])):
        text = error_of(lambda objective=objective, wrong=wrong: warren.xgboost.train(
            {"objective": objective, "base_score": 0.5}, warren.xgboost.Data(features, label=wrong), 1, reproducible="exact"))
        assert "label" in text, text
    for method in ("approx", "exact"):
        warren.xgboost.train({"tree_method": method, "max_bin": 8}, data, 1, evals=[(data, "same"), (
            warren.xgboost.Data(features, label=features[:, 0]), "other")], verbose_eval=False)

    assert "array of numbers" in error_of(lambda: warren.xgboost.Data(np.array([["a"]])).load())
    assert "int" in error_of(lambda: warren.xgboost.Data(3).load())
    assert "10 rows" in error_of(lambda: warren.xgboost.Data(features, label=[1]).load())
    assert "query 0 are not together" in error_of(lambda: warren.xgboost.Data(features, qid=[0, 0, 1, 1, 1, 1, 1, 1, 1, 0]).load())


main()

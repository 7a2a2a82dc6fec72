"""A worker that trains with options that cases.py does not draw, and prints digests of the models."""
import hashlib
import warnings

import numpy as np
import xgboost

import warren.xgboost

ROWS = 3000


def mean(predictions, _):
    """A metric whose value shows whether it is given probabilities or margins."""
    return "mean", float(predictions.mean())


def main():
    warnings.simplefilter("ignore")
    random = np.random.RandomState(0)
    features = random.randn(ROWS, 6).astype("float32")
    label = (features[:, 0] + random.randn(ROWS)).astype("float32")
    several, classes = np.stack([label, -2 * label], axis=1), np.digitize(label, [-1, 1])
    with warren.xgboost.communicator():
        rank, workers = warren.xgboost.get_rank(), warren.xgboost.get_world_size()
        mine = slice(rank * ROWS // workers, (rank + 1) * ROWS // workers)

        def train(what, params, labels, rows=features, rounds=5, how=True, missing=None, **options):
            data, found = warren.xgboost.Data(rows[mine], label=labels[mine], missing=missing), {}
            model = warren.xgboost.train({"nthread": 1, **params}, data, rounds, reproducible=how, evals=[(data, "train")], verbose_eval=False,
                                         evals_result=found, **options)
            if rank == 0:
                print("model", what, hashlib.sha256(bytes(model.save_raw("json"))).hexdigest(), found, flush=True)
            return model, found.get("train")

        first, _ = train("first", {}, label)
        train("continued", {}, label, xgb_model=first)
        train("trees of several outputs", {"multi_strategy": "multi_output_tree"}, several)
        train("trees of several classes", {"objective": "multi:softprob", "num_class": 3, "multi_strategy": "multi_output_tree"}, classes)
        train("no rounds", {}, label, rounds=0)
        train("values that are missing", {}, label, rows=np.where(features < -1, -999, features).astype("float32"), missing=-999.)
        logistic, usual = train("a classifier", {"objective": "binary:logistic", "scale_pos_weight": 3}, classes > 1, custom_metric=mean)
        _, continued = train("a classifier, continued without its objective", {}, classes > 1, xgb_model=logistic)
        assert list(continued) == ["logloss"], continued
        _, exact = train("a classifier, exact", {"objective": "binary:logistic", "scale_pos_weight": 3}, classes > 1, how="exact",
                         custom_metric=mean)
        _, more = train("a classifier, continued exactly", {}, classes > 1, how="exact", xgb_model=logistic)
        _, weighted = train("squared error with weighted ones", {"scale_pos_weight": 5}, classes > 1)
        _, grid = train("squared error with weighted ones, exact", {"scale_pos_weight": 5}, classes > 1, how="exact")
        for one, other in ((usual, exact), (continued, more), (weighted, grid)):
            for name, values in one.items():
                assert np.allclose(values, other[name], rtol=1e-4), (name, values, other[name])
        try:
            warren.xgboost.Data(features[mine], label=label[mine], qid=np.arange(ROWS)[mine] // 700).load(reproducible=True)
            assert workers == 1
        except ValueError as error:
            assert workers > 1 and "goes on there" in str(error), error
        try:
            queries = {"qid": np.arange(ROWS)[mine]} if xgboost.collective.get_rank() == 0 else {}
            warren.xgboost.Data(features[mine], label=label[mine], **queries).load(reproducible=True)
            assert workers == 1
        except ValueError as error:
            assert workers > 1 and "rank 1 has no qid" in str(error), error
        train("several labels", {"objective": "binary:logistic"}, (several > 0).astype("float32"))
        train("interactions", {"interaction_constraints": "[[0, 1], [2, 3, 4]]"}, label)
        train("learning rates", {}, label, callbacks=[xgboost.callback.LearningRateScheduler(lambda epoch: 0.3 / (epoch + 1))])
        if warren.xgboost.VERSION >= (3, 3):
            train("expectiles", {"objective": "reg:expectileerror", "expectile_alpha": [0.2, 0.5]}, label)


main()

"""A worker that fits XGBoost's scikit-learn estimators on random parts of the same rows, and prints digests of their models."""
import hashlib
import warnings

import numpy as np
import xgboost

import warren.xgboost

warnings.simplefilter("ignore")


def split(rows, workers, starts=None):
    """Random row numbers at which the workers' parts begin, followed by the row count. `starts`: the rows at which queries begin; if given,
    no query is split."""
    random = np.random.RandomState(workers)
    inner = np.sort(random.choice(np.arange(1, rows) if starts is None else starts[1:], workers - 1, replace=False))
    return [0, *inner.tolist(), rows]


def main():
    random = np.random.RandomState(1)
    features = random.randn(3000, 5).astype("float32")
    features[random.rand(3000, 5) < .1] = -999
    label, weight = features[:, 0] + random.randn(3000), random.rand(3000)
    query = np.repeat(np.arange(300), 10)
    with warren.xgboost.communicator(), warren.xgboost.reproducible():
        rank, workers = warren.xgboost.get_rank(), warren.xgboost.get_world_size()
        how = {"n_estimators": 5, "n_jobs": 1, "missing": -999.}
        fits = {
            "XGBRegressor": lambda X, y, w, _: xgboost.XGBRegressor(**how).fit(X, y, sample_weight=w, eval_set=[(X, y)], verbose=False),
            "XGBClassifier": lambda X, y, w, _: xgboost.XGBClassifier(**how, eval_metric="auc", early_stopping_rounds=2).fit(
                X, y > 0, eval_set=[(X, y > 0)], verbose=False),
            "three classes": lambda X, y, w, _: xgboost.XGBClassifier(**how, max_bin=32).fit(X, np.digitize(y, [-1, 1]), sample_weight=w),
            "XGBRanker": lambda X, y, _, q: xgboost.XGBRanker(**how).fit(X, np.digitize(y, [-1, 1]), qid=q),
            "XGBRegressor with subsample": lambda X, y, w, _: xgboost.XGBRegressor(**how, subsample=.6, random_state=4).fit(X, y, sample_weight=w),
            "XGBRFRegressor": lambda X, y, w, _: xgboost.XGBRFRegressor(n_estimators=3, n_jobs=1, subsample=1, missing=-999.).fit(X, y)}
        for name, fit in fits.items():
            cuts = split(3000, workers, np.arange(0, 3000, 10) if name == "XGBRanker" else None)
            mine = slice(cuts[rank], cuts[rank + 1])
            found = fit(features[mine], label[mine], weight[mine], query[mine])
            digest = hashlib.sha256(bytes(found.get_booster().save_raw("json"))).hexdigest()
            if rank == 0:
                print("model", name, digest, found.evals_result() if name in ("XGBRegressor", "XGBClassifier") else "", flush=True)
        for params, X, y in (({"subsample": 0.5, "booster": "dart"}, features, label), ({}, features[:10], np.full(10, rank) if workers > 1 else None)):
            if y is not None:
                try:
                    (xgboost.XGBClassifier if len(y) == 10 else xgboost.XGBRegressor)(**params).fit(X, y)
                except ValueError as error:
                    print("refused", error, flush=True)


main()

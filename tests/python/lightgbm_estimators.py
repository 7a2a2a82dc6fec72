"""Fits LightGBM's estimators alone, and Warren's (warren.lightgbm.LGBMClassifier, ...) in jobs. A job of one worker must give the model of
the library alone, and a job of two workers must give a model of about the same quality."""
import pathlib
import pickle
import tempfile
import warnings

import lightgbm
import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.base import clone

import warren

warnings.simplefilter("ignore")
HOW = {"n_estimators": 10, "verbose": -1, "n_jobs": 1}


def trees(model):
    return model.booster_.model_to_string().partition("\nparameters:")[0]


def check(name, kind, *arguments, score=None, files=None, **named):
    """Fits arrays alone, with one worker and with two, and prints whether the fits compare as expected. `files`: arguments for the fits with
    workers, which then read the same rows from files. Returns the estimator with two workers."""
    alone = getattr(lightgbm, kind)(**HOW).fit(*arguments, **named)
    one, two = (getattr(warren.lightgbm, kind)(num_workers=number, **HOW).fit(*(() if files else arguments), **(files or named))
                for number in (1, 2))
    is_same = trees(one) == trees(alone) and one.evals_result_ == alone.evals_result_ and (
        not hasattr(alone, "classes_") or (one.classes_ == alone.classes_).all()) and one.objective_ == alone.objective_ and (
        list(getattr(one, "feature_names_in_", ())) == list(getattr(alone, "feature_names_in_", ()))) and (
        one.n_features_in_ == alone.n_features_in_ and one.booster_.pandas_categorical == alone.booster_.pandas_categorical)
    scores = [score(model) for model in (alone, one, two)]
    is_near = scores[0] == scores[1] and abs(scores[2] - scores[0]) < .05
    print("same" if is_same and is_near else f"DIFFERENT {is_same, scores}", name, flush=True)
    return two


def of_files(frame, y, three, weight, folder):
    """Checks fits of rows in files, with labels, weights and queries in columns, and what such fits refuse."""
    def saved(name, rows=slice(None), **columns):
        frame.assign(**columns)[rows].to_parquet(folder / f"{name}.parquet", row_group_size=100)
        return folder / f"{name}.parquet"

    y, weight = y.astype(np.float32), weight.astype(np.float32)
    path, part = saved("y", y=y, w=weight), saved("part", slice(500), y=y, w=weight)
    check("files", "LGBMRegressor", frame, y, sample_weight=weight, eval_set=[(frame, y), (frame[:500], y[:500])],
          eval_sample_weight=[None, weight[:500]], score=lambda model: model.score(frame, y),
          files={"X": path, "y": "y", "sample_weight": "w", "eval_set": [(str(path), "y"), (part, "y")], "eval_sample_weight": {1: "w"}})
    path, part = str(saved("three", y=three)), saved("three part", slice(500), y=three)
    two = check("files, three classes", "LGBMClassifier", frame, three, eval_set=[(frame, three), (frame[:500], three[:500])], eval_metric="error",
                score=lambda model: model.score(frame, three),
                files={"X": [path], "y": "y", "eval_set": [([path], "y"), (part, "y")], "eval_metric": "error"})
    renumbered = frame.assign(k=frame.k.cat.set_categories(list("zyx")))
    assert (two.predict_proba(renumbered) == two.predict_proba(frame)).all()
    assert pickle.loads(pickle.dumps(two)).predict(frame).max() == 2
    check("files, two classes", "LGBMClassifier", frame, (y > 0).astype(int), score=lambda model: model.score(frame, y > 0),
          files={"X": saved("two", y=y > 0), "y": "y"})
    path = saved("queries", y=three, q=np.repeat(np.arange(100), 30))
    check("files with queries", "LGBMRanker", frame, three, group=[30] * 100, eval_set=[(frame[:300], three[:300])], eval_group=[[30] * 10],
          score=lambda model: np.corrcoef(model.predict(frame), y)[0, 1],
          files={"X": path, "y": "y", "group": "q", "eval_set": [(saved("queries part", slice(300), y=three, q=np.arange(len(y)) // 30), "y")],
                 "eval_group": ["q"]})
    in_job = {**HOW, "num_workers": 2}
    unweighed, path = saved("unweighed", y=y), saved("weighed", y=y, w=weight)
    results = [warren.lightgbm.LGBMRegressor(**in_job).fit(unweighed, "y", eval_set=[(path, "y")], **more).evals_result_["valid_0"]["l2"]
               for more in ({}, {"eval_sample_weight": ["w"]})]
    print("DIFFERENT, the weights of an evaluation set are left out" if results[0] == results[1] else "same", "weights of training rows")
    features_of_files(frame, y, folder)
    start_score("files", steep := np.repeat([1., 9], [300, 2]), {"X": saved("steep", slice(302), y=np.resize(steep, len(y))), "y": "y"})
    for what, make, error, said in (
            ("files alone", lambda: warren.lightgbm.LGBMRegressor().fit(path, "y"), ValueError, "num_workers is missing"),
            ("labels that are no classes", lambda: warren.lightgbm.LGBMClassifier(**in_job).fit(folder / "y.parquet", "y"), ValueError,
             "expected the classes 0, 1, 2"),
            ("a class without rows", lambda: warren.lightgbm.LGBMClassifier(**in_job).fit(saved("gap", y=np.where(y > 0, 7, 0)), "y"), ValueError,
             "up to 7, and no row has the class 1"),
            ("labels that are infinite", lambda: warren.lightgbm.LGBMClassifier(**in_job).fit(saved("inf", y=np.where(y > 0, np.inf, 0)), "y"),
             ValueError, "the label inf"),
            ("no column of labels", lambda: warren.lightgbm.LGBMRegressor(**in_job).fit(path, None), TypeError, "found None"),
            ("an array with files", lambda: warren.lightgbm.LGBMRegressor(**in_job).fit(path, y), TypeError, "y is the name of a column"),
            ("rows with files", lambda: warren.lightgbm.LGBMRegressor(**in_job).fit(path, "y", eval_set=[(frame, y)]), TypeError,
             "eval_set has a DataFrame"),
            ("files with rows", lambda: warren.lightgbm.LGBMRegressor(**in_job).fit(frame, y, eval_set=[(path, "y")]), TypeError,
             "eval_set names files"),
            ("class_weight", lambda: warren.lightgbm.LGBMClassifier(class_weight="balanced", **in_job).fit(path, "y"), ValueError,
             "class_weight: the rows are in files"),
            ("feature_name", lambda: warren.lightgbm.LGBMRegressor(**in_job).fit(path, "y", feature_name=list("abcdefgh")), ValueError,
             "the names of their columns")):  # fmt: skip
        refuse(what, make, error, said)


def features_of_files(frame, y, folder):
    """Checks that a model trained on files numbers the categories of a frame as in training, and that validation sets with other features are
    refused."""
    frame = frame.assign(y=np.where(frame.k == "x", 3, 0) + y)
    frame.to_parquet(folder / "whole.parquet")
    few = frame[frame.k != "x"].assign(k=lambda rows: rows.k.cat.remove_unused_categories())
    few.to_parquet(folder / "few.parquet")
    frame[["y", "k", *"fedcbag"]].to_parquet(folder / "turned.parquet")
    params = {"verbose": -1, "num_threads": 1}
    alone = lightgbm.train(params, lightgbm.Dataset(frame.drop(columns="y"), frame.y), 10)
    with warren.lightgbm.communicator():
        train = warren.lightgbm.load_dataset(folder / "whole.parquet", label="y")
        model = lightgbm.train(params, train, 10)
        for name, said in (("few", "column 'k' of a validation set has other categories"), ("turned", "has them in another order")):
            valid = warren.lightgbm.load_dataset(folder / f"{name}.parquet", label="y")
            refuse(name, lambda valid=valid: lightgbm.train(params, train, 2, valid_sets=[valid]), ValueError, said)
    rows = few.drop(columns="y")
    model = lightgbm.Booster(model_str=model.model_to_string())
    print("same" if np.array_equal(alone.predict(rows), model.predict(rows)) else "DIFFERENT", "categories of a frame", flush=True)


def start_score(name, y, files=None, weight=None, **how):
    """Checks that three workers start from the same initial score as one process with all rows. The tree has no split, so that predictions
    are the initial score."""
    how = {**HOW, "n_estimators": 1, "min_child_samples": len(y), **how}
    X = np.zeros((len(y), 1))
    alone = lightgbm.LGBMRegressor(**how).fit(X, y, sample_weight=weight).predict(X[:1], raw_score=True)
    three = warren.lightgbm.LGBMRegressor(num_workers=3, **how).fit(**files or {"X": X, "y": y, "sample_weight": weight})
    if files:
        X = np.zeros((1, three.n_features_in_))
    three = three.predict(X[:1], raw_score=True)
    is_same = np.allclose(alone, three, rtol=1e-13, atol=0)
    print("same" if is_same else f"DIFFERENT {alone, three}", "start score,", name, flush=True)


def refuse(what, make, kind, said):
    try:
        make()
        print("DIFFERENT: not refused:", what)
    except kind as error:
        print("refused" if said in str(error) else f"DIFFERENT {error}", what, flush=True)


def main():
    random = np.random.RandomState(0)
    X = random.randn(3000, 6)
    y = X[:, 0] + X[:, 1] * .5 + random.randn(3000) * .3
    words, three, weight = np.where(y > 0, "yes", "no"), np.digitize(y, [-1, 1]), random.rand(3000)
    two = check("rows with 64 bits", "LGBMRegressor", X + 1e6, y, score=lambda model: model.score(X + 1e6, y), sample_weight=weight)
    assert isinstance(two, lightgbm.LGBMRegressor) and (pickle.loads(pickle.dumps(two)).predict(X) == two.predict(X)).all()
    assert clone(two).get_params()["num_workers"] == 2
    check("words as classes", "LGBMClassifier", X, words, score=lambda model: model.score(X, words), eval_set=[(X, words), (X[:500], words[:500]), (X[:1], words[:1])])
    check("three classes, sparse", "LGBMClassifier", scipy.sparse.csr_matrix(X * (X > 0)), three + 5,
          score=lambda model: model.score(X * (X > 0), three + 5))
    check("queries", "LGBMRanker", X, three, score=lambda model: np.corrcoef(model.predict(X), y)[0, 1], group=[30] * 100)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(k=pd.Categorical(random.choice(list("zyx"), 3000)), g=y > 0)
    two = check("a frame with categories", "LGBMRegressor", frame, y, score=lambda model: model.score(frame, y))
    assert two.booster_.pandas_categorical == [["x", "y", "z"]]
    stopped = warren.lightgbm.LGBMRegressor(**{**HOW, "n_estimators": 500}, num_workers=2).fit(
        X[:2000], y[:2000], eval_set=[(X[2000:], y[2000:])], callbacks=[lightgbm.early_stopping(2, verbose=False)])
    print("same" if 1 < stopped.best_iteration_ < 500 else "DIFFERENT", "early stopping", stopped.best_iteration_)
    steep = np.repeat([1., 2, 9], 100)
    start_score("regression with weights", steep, weight=np.linspace(0, 1, 300))
    start_score("a worker whose rows weigh nothing", steep, weight=np.repeat([0, 1., 1], 100))
    start_score("regression of roots", -steep, reg_sqrt=True)
    start_score("poisson", steep, objective="poisson")
    start_score("a tree without splits", steep, boost_from_average=False)
    start_score("cross-entropy", steep / 10, objective="cross_entropy")
    for what, make, said in (("elastic", lambda: warren.lightgbm.LGBMRegressor(num_workers=(1, 2)).fit(X, y), "cannot go on without"),
                             ("reproducible", lambda: warren.lightgbm.LGBMRegressor(num_workers=2, reproducible=True).fit(X, y),
                              "estimate the number of rows"),
                             ("linear trees", lambda: warren.lightgbm.LGBMRegressor(num_workers=2, linear_tree=True).fit(X, y),
                              "on their own rows alone"),
                             ("no number", lambda: warren.lightgbm.LGBMRegressor(cluster="slurm").fit(X, y), "num_workers is missing"),
                             ("few rows", lambda: warren.lightgbm.LGBMRegressor(num_workers=4).fit(X[:3], y[:3]), "num_workers=4: 3 rows do not"),
                             ("few queries", lambda: warren.lightgbm.LGBMRanker(num_workers=2).fit(X, three, group=[3000]), "3000 rows in 1 queries"),
                             ("lengths", lambda: warren.lightgbm.LGBMRanker(num_workers=2).fit(X, three, group=[30]), "qid has 30 values")):
        refuse(what, make, ValueError, said)
    refuse("labels that are all 0 in a worker", lambda: warren.lightgbm.LGBMRegressor(num_workers=3, objective="poisson", **HOW).fit(X[:300], steep - 1),
           lightgbm.basic.LightGBMError, "rank 0: [poisson]: sum of labels is zero: LightGBM demands of each")
    refuse("a Dataset of ours", lambda: warren.lightgbm.Dataset, AttributeError, "it is lightgbm's own")
    with tempfile.TemporaryDirectory() as folder:
        of_files(frame.astype({"a": "f", "b": "f", "c": "f", "d": "f", "e": "f", "f": "f"}), y, three, weight, pathlib.Path(folder))


main()

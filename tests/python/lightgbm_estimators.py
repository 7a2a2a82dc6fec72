"""Fits LightGBM's estimators alone and in jobs (warren.lightgbm.LGBMClassifier, ...). A job of one worker gives the model of the library
alone; that of two is compared with what the library gives two workers by itself: a model of about the same quality."""
import pickle
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


def check(name, kind, *arguments, score=None, **named):
    alone = getattr(lightgbm, kind)(**HOW).fit(*arguments, **named)
    one, two = (getattr(warren.lightgbm, kind)(num_workers=number, **HOW).fit(*arguments, **named) for number in (1, 2))
    is_same = trees(one) == trees(alone) and one.evals_result_ == alone.evals_result_ and (
        not hasattr(alone, "classes_") or (one.classes_ == alone.classes_).all()) and (
        list(getattr(one, "feature_names_in_", ())) == list(getattr(alone, "feature_names_in_", ())))
    scores = [score(model) for model in (alone, one, two)]
    is_near = scores[0] == scores[1] and abs(scores[2] - scores[0]) < .05 and trees(two) != trees(alone)
    print("same" if is_same and is_near else f"DIFFERENT {is_same, scores}", name, flush=True)
    return two


def main():
    random = np.random.RandomState(0)
    X = random.randn(3000, 6)
    y = X[:, 0] + X[:, 1] * .5 + random.randn(3000) * .3
    words, three, weight = np.where(y > 0, "yes", "no"), np.digitize(y, [-1, 1]), random.rand(3000)
    two = check("rows with 64 bits", "LGBMRegressor", X + 1e6, y, score=lambda model: model.score(X + 1e6, y), sample_weight=weight)
    assert isinstance(two, lightgbm.LGBMRegressor) and (pickle.loads(pickle.dumps(two)).predict(X) == two.predict(X)).all()
    assert clone(two).get_params()["num_workers"] == 2
    check("words as classes", "LGBMClassifier", X, words, score=lambda model: model.score(X, words), eval_set=[(X, words), (X[:500], words[:500])])
    check("three classes, sparse", "LGBMClassifier", scipy.sparse.csr_matrix(X * (X > 0)), three + 5,
          score=lambda model: model.score(X * (X > 0), three + 5))
    check("queries", "LGBMRanker", X, three, score=lambda model: np.corrcoef(model.predict(X), y)[0, 1], group=[30] * 100)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(k=pd.Categorical(random.choice(list("zyx"), 3000)), g=y > 0)
    two = check("a frame with categories", "LGBMRegressor", frame, y, score=lambda model: model.score(frame, y))
    assert two.booster_.pandas_categorical == [["x", "y", "z"]]
    stopped = warren.lightgbm.LGBMRegressor(**{**HOW, "n_estimators": 500}, num_workers=2).fit(
        X[:2000], y[:2000], eval_set=[(X[2000:], y[2000:])], callbacks=[lightgbm.early_stopping(2, verbose=False)])
    print("same" if 1 < stopped.best_iteration_ < 500 else "DIFFERENT", "early stopping", stopped.best_iteration_)
    for what, make, said in (("elastic", lambda: warren.lightgbm.LGBMRegressor(num_workers=(1, 2)).fit(X, y), "cannot go on without"),
                             ("no number", lambda: warren.lightgbm.LGBMRegressor(cluster="slurm").fit(X, y), "num_workers is missing"),
                             ("lengths", lambda: warren.lightgbm.LGBMRanker(num_workers=2).fit(X, three, group=[30]), "qid has 30 values")):
        try:
            make()
            print("DIFFERENT: not refused:", what)
        except ValueError as error:
            print("refused" if said in str(error) else f"DIFFERENT {error}", what)


main()

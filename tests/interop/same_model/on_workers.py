"""Fits XGBoost's estimators alone and with two workers (warren.xgboost.XGBClassifier, ...), and compares the models and the evaluations: on
arrays, or with the argument "tables", on tables and files, which need pandas, pyarrow and polars."""
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import warnings

import numpy as np
import scipy.sparse
import xgboost
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import warren

warnings.simplefilter("ignore")
HOW = {"n_estimators": 5, "max_depth": 4, "n_jobs": 1}
ROWS = 1500


class Rounds(xgboost.callback.TrainingCallback):
    """Records the rounds, and XGBoost's verbosity."""

    def __init__(self):
        self.seen = []

    def before_iteration(self, model, epoch, evals_log):
        self.seen.append(epoch)
        self.verbosity = xgboost.get_config()["verbosity"]
        return False


class Killed(xgboost.callback.TrainingCallback):
    """Kills rank 0 after two rounds, once."""

    def __init__(self, marker):
        self.marker = marker

    def after_iteration(self, model, epoch, evals_log):
        if epoch == 1 and os.environ.get("DMLC_TASK_ID") == "0" and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return False


def fitted(kind, fit, **params):
    """Fits the library's estimator and ours, with two workers. Returns both."""
    alone = getattr(xgboost, kind)(**{**HOW, **params})
    ours = getattr(warren.xgboost, kind)(**{**HOW, **params}, num_workers=2)
    with contextlib.redirect_stdout(io.StringIO()):
        fit(alone)
        fit(ours)
    return alone, ours


def compare(name, alone, ours):
    """Prints whether the models and all other results of `fit` are equal."""
    models = [bytes(one.get_booster().save_raw("json")) for one in (alone, ours)]
    others = [{field: repr(json.loads(json.dumps(value)) if isinstance(value, dict) else value) for field, value in vars(one).items()
               if field.endswith("_") or field == "objective"} for one in (alone, ours)]
    print("same" if models[0] == models[1] and others[0] == others[1] else f"DIFFERENT {others if models[0] == models[1] else ''}", name,
          flush=True)


def check(name, kind, fit, **params):
    alone, ours = fitted(kind, fit, **params)
    compare(name, alone, ours)
    return alone, ours


def of_arrays(random, X, y):
    weight, query = random.rand(ROWS), np.repeat(np.arange(100), 15)
    random_margin = random.rand(3 * ROWS).astype(np.float32)
    three, once = np.digitize(y, [-1, 1]), scipy.sparse.csr_matrix(np.nan_to_num(X) * (np.arange(ROWS) % 3 == 0)[:, None])
    # Each entry twice: XGBoost does not add such entries.
    sparse = scipy.sparse.csr_matrix((np.repeat(once.data, 2) * np.resize([1, 3], 2 * once.nnz), np.repeat(once.indices, 2), once.indptr * 2),
                                     once.shape)
    with_missing = np.where(np.isnan(X), -999, X).astype(np.float32)
    with xgboost.config_context(verbosity=0):
        alone, ours = check("early stopping on auc, a callback, the training rows as evaluation set", "XGBClassifier", lambda model: model.fit(
            X[:1000], y[:1000] > 0, eval_set=[(X[:1000], y[:1000] > 0), (X[1000:], y[1000:] > 0)], verbose=True),
            n_estimators=50, eval_metric="auc", early_stopping_rounds=2, callbacks=[callback := Rounds()])
    assert callback.verbosity == 0, "the caller's configuration, in the workers"
    assert alone.best_iteration == ours.best_iteration and alone.evals_result() == ours.evals_result()
    assert callback.seen[:len(callback.seen) // 2] == callback.seen[len(callback.seen) // 2:], "rank 0's state came back"
    assert isinstance(ours, xgboost.XGBClassifier) and (pickle.loads(pickle.dumps(ours)).predict_proba(X) == alone.predict_proba(X)).all()
    assert clone(ours).get_params()["num_workers"] == 2 and "num_workers" not in ours.get_xgb_params()
    check("three classes, weights", "XGBClassifier", lambda model: model.fit(X, three, sample_weight=weight), max_bin=32)
    # The greatest value is in a row of weight 0, which XGBoost's sketch ignores. The labels distinguish missing values from others.
    rising, counts = np.arange(40, dtype=np.float32).reshape(-1, 1), np.ones(40)
    rising[::2], counts[-1] = np.nan, 0
    present = scipy.sparse.csr_matrix((rising[1::2, 0], np.zeros(20, int), np.repeat(np.arange(21), 2)[1:]), shape=(40, 1))
    for name, rows in (("dense", rising), ("sparse", present)):
        check(f"{name} rows, one of weight 0", "XGBRegressor", lambda model, rows=rows: model.fit(
            rows, np.isnan(rising[:, 0]) * 1., sample_weight=counts), n_estimators=1)
    check("flat margins, Python's numbers", "XGBClassifier", lambda model: model.fit(X.astype(object), three, base_margin=random_margin))
    check("sparse rows, subsample", "XGBRegressor", lambda model: model.fit(sparse, y), subsample=.6, random_state=4)
    check("a list, another missing value, a continued model", "XGBRegressor", lambda model: model.fit(
        with_missing.tolist(), y.tolist(), xgb_model=model.fit(with_missing, y).get_booster()), missing=-999.)
    check("queries", "XGBRanker", lambda model: model.fit(X, three, qid=query, eval_set=[(X, three)], eval_qid=[query], verbose=False))
    check("groups", "XGBRanker", lambda model: model.fit(X, three, group=np.full(100, 15)))
    search = [GridSearchCV(make_pipeline(StandardScaler(), kind.XGBRegressor(n_estimators=2, **more)),
                           {"xgbregressor__max_depth": [2]}, cv=2).fit(np.nan_to_num(X), y).best_score_
              for kind, more in ((xgboost, {}), (warren.xgboost, {"num_workers": 2}))]  # fmt: skip
    print("same" if search[0] == search[1] else f"DIFFERENT {search}", "GridSearchCV of a pipeline")
    alone, ours = warren.xgboost.XGBRegressor(**HOW).fit(X, y), xgboost.XGBRegressor(**HOW).fit(X, y)
    compare("no workers", alone, ours)


def of_tables(random, X, y, folder):
    import pandas as pd
    import polars
    import pyarrow as pa

    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": random.randint(0, 9, ROWS), "d": X[:, 2].astype(np.float32)})
    with_kinds = frame.assign(k=pd.Categorical(random.choice(list("edcba"), ROWS)))
    alone, ours = check("categories", "XGBClassifier", lambda model: model.fit(
        with_kinds, y > 0, eval_set=[(with_kinds[:100], y[:100] > 0)], verbose=False), enable_categorical=True)
    renumbered = with_kinds.assign(k=with_kinds.k.cat.set_categories(list("abcde")))
    assert (alone.predict_proba(renumbered) == ours.predict_proba(renumbered)).all()
    check("categories in another order", "XGBClassifier", lambda model: model.fit(
        with_kinds, y > 0, eval_set=[(renumbered, y > 0)], verbose=False), enable_categorical=True)
    # XGBoost accepts some categories that no row has, and refuses others.
    check("a continued model, and categories in another order", "XGBClassifier", lambda model: model.fit(
        renumbered, y > 0, xgb_model=alone, eval_set=[(with_kinds if type(model) is xgboost.XGBClassifier else with_kinds.assign(
            k=with_kinds.k.cat.set_categories(list("feadcb"))), y > 0)], verbose=False), enable_categorical=True)
    check("a Series", "XGBRegressor", lambda model: model.fit(frame.a, y))
    for name, column, more in (("numbers", with_kinds.k.cat.codes, {}), ("another category", with_kinds.k.cat.rename_categories({"a": "z"}), {}),
                               ("numbers, approx", with_kinds.k.cat.codes, {"tree_method": "approx"})):
        try:
            warren.xgboost.XGBRegressor(num_workers=2, enable_categorical=True, **more).fit(
                with_kinds, y, eval_set=[(with_kinds.assign(k=column), y)])
            print("DIFFERENT: not refused in an evaluation set:", name)
        except ValueError as error:
            assert "and the training rows have ['a', 'b', 'c', 'd', 'e']" in str(error), error
    check("polars", "XGBRegressor", lambda model: model.fit(polars.from_pandas(frame), y))
    with_nulls = frame.assign(c=frame.c.astype("Int64").mask(frame.c == 3), b=frame.b.astype("boolean").mask(frame.c == 4))
    for kind, table in (("polars", polars.from_pandas(with_nulls)), ("Arrow", pa.Table.from_pandas(with_nulls))):
        check(f"{kind} with nulls", "XGBRegressor", lambda model, table=table: model.fit(table, y))
    two_levels = frame.drop(columns="b").set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1)
    alone, ours = check("columns of two levels", "XGBRegressor", lambda model: model.fit(two_levels, y))
    assert (ours.predict(two_levels) == alone.predict(two_levels)).all()
    check("Arrow", "XGBRegressor", lambda model: model.fit(pa.Table.from_pandas(frame), y))
    try:
        warren.xgboost.XGBRegressor(num_workers=2, enable_categorical=False).fit(with_kinds, y)
        print("DIFFERENT: categories are not refused")
    except ValueError as error:
        assert "enable_categorical=True" in str(error)
    three, weight = np.digitize(y, [-1, 1]), random.rand(ROWS).astype(np.float32)
    path = folder / "rows.parquet"
    frame.assign(y=three, z=y, w=weight).to_parquet(path, row_group_size=100)
    columns = list(frame.columns)
    for name, kind, label, labels in (("files", "XGBRegressor", "z", y), ("files, three classes", "XGBClassifier", "y", three)):
        alone = getattr(xgboost, kind)(**HOW).fit(frame, labels, sample_weight=weight, eval_set=[(frame, labels)], verbose=False)
        part = folder / f"{label}.parquet"
        pd.read_parquet(path)[[*columns, label, "w"]].to_parquet(part, row_group_size=100)
        ours = getattr(warren.xgboost, kind)(**HOW, num_workers=2).fit(part, label, sample_weight="w", eval_set=[(str(part), label)],
                                                                      verbose=False)
        compare(name, alone, ours)
    elastic = warren.xgboost.XGBClassifier(**HOW, num_workers=(2, 3), callbacks=[Killed(folder / "killed")]).fit(
        [str(part)], "y", sample_weight="w", eval_set=[(str(part), "y")], verbose=False)
    assert (folder / "killed").exists() and elastic.n_classes_ == 3
    compare("files, three classes, elastic, with a loss", alone, elastic)
    with_kinds.assign(z=y).to_parquet(folder / "kinds.parquet", row_group_size=100)
    alone = xgboost.XGBRegressor(**HOW, enable_categorical=True).fit(with_kinds, y)
    for workers in (2, (1, 2)):
        ours = warren.xgboost.XGBRegressor(**HOW, num_workers=workers, enable_categorical=True).fit(folder / "kinds.parquet", "z")
        print("same" if (alone.predict(renumbered) == ours.predict(renumbered)).all() and (
            alone.predict(with_kinds[:5]) == ours.predict(with_kinds[:5])).all() else "DIFFERENT",
            f"predictions of a model of files with categories, {workers} workers")


def refused(X, y):
    for what, make, said in (
            ("classes", lambda: warren.xgboost.XGBClassifier(num_workers=2).fit(X, y), "Invalid classes inferred"),
            ("no number", lambda: warren.xgboost.XGBRegressor(cluster="ssh").fit(X, y), "num_workers is missing"),
            ("files alone", lambda: warren.xgboost.XGBRegressor().fit("a.parquet", "y"), "num_workers is missing"),
            ("an array with files", lambda: warren.xgboost.XGBRegressor(num_workers=2).fit("a.parquet", y), "label is the name of a column"),
            ("labels", lambda: warren.xgboost.XGBRegressor(num_workers=2, **HOW).fit(X, np.where(y > 2, np.nan, y)), "Label contains NaN"),
            ("lengths", lambda: warren.xgboost.XGBRegressor(num_workers=2).fit(X, y[1:]), "expected a value for each of 1500 rows"),
            ("objective", lambda: warren.xgboost.XGBRegressor(num_workers=2, objective="reg:absoluteerror").fit(X, y), "reg:absoluteerror"),
            ("options", lambda: warren.xgboost.XGBRegressor(num_workers=2, job_options={"prot": 1}).fit(X, y), "did you mean --port")):  # fmt: skip
        try:
            make()
            print("DIFFERENT: not refused:", what)
        except (ValueError, TypeError) as error:
            print("refused" if said in str(error) else f"DIFFERENT {error}", what)


def main():
    random = np.random.RandomState(1)
    X = random.randn(ROWS, 5)
    y = X[:, 0] * X[:, 1] + random.randn(ROWS)
    X[random.rand(ROWS, 5) < .1] = np.nan
    if "tables" not in sys.argv:
        of_arrays(random, X, y)
        refused(X, y)
    elif all(importlib.util.find_spec(name) for name in ("pandas", "polars", "pyarrow")):
        with tempfile.TemporaryDirectory() as made:
            of_tables(random, X, y, pathlib.Path(made))
    else:
        print("DIFFERENT: no pandas, polars or pyarrow")


main()

"""A worker for lightgbm_test.py: runs the function that its first argument names. Uses the LightGBM that its interpreter finds, over
Warren's engine or over LightGBM's own sockets."""
import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from typing import Any, Callable, Dict, List
from unittest import mock

import lightgbm as lgb
import numpy as np
import scipy.sparse

import warren.lightgbm as wl
from warren import rabit

ROWS, COLUMNS, ROUNDS = 900, 8, 6
# Without force_col_wise, LightGBM times row-wise and column-wise histograms, so on a busy machine the order of additions may vary.
BASE = {"objective": "binary", "num_leaves": 7, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "seed": 3,
        "deterministic": True, "force_col_wise": True}


def rows(rank: int) -> Any:
    """A worker's rows and their labels, 0 or 1."""
    rng = np.random.default_rng(100 + rank)
    x = rng.standard_normal((ROWS, COLUMNS))
    x[rng.random(x.shape) < 0.1] = np.nan
    return x, (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) * np.nan_to_num(x[:, 2]) > 0).astype(float)


def relevances(x: Any, y: Any) -> Any:
    return (2 * y + (np.nan_to_num(x[:, 3]) > 0)).astype(int)


def digest(model: Any) -> str:
    """A digest of the trees, without the training parameters that follow them in the model."""
    booster = model if isinstance(model, lgb.Booster) else model.booster_
    return hashlib.sha256(booster.model_to_string().split("\nparameters:")[0].encode()).hexdigest()


#: All ways to train, by name: functions of the rank and the communication parameters.
WAYS: Dict[str, Callable[[int, Dict[str, Any]], Any]] = {}


def way(function: Callable[[int, Dict[str, Any]], Any]) -> Any:
    WAYS[function.__name__] = function
    return function


@way
def binary(rank: int, more: Dict[str, Any]) -> Any:
    return lgb.train({**BASE, **more}, lgb.Dataset(*rows(rank)), ROUNDS)


@way
def bagging(rank: int, more: Dict[str, Any]) -> Any:
    drawn = {"bagging_fraction": 0.5, "bagging_freq": 1, "feature_fraction": 0.7}
    return lgb.train({**BASE, **drawn, **more}, lgb.Dataset(*rows(rank)), ROUNDS)


@way
def quantized(rank: int, more: Dict[str, Any]) -> Any:
    """Quantized gradients, which LightGBM adds up with other reducers."""
    return lgb.train({**BASE, "use_quantized_grad": True, "stochastic_rounding": False, **more}, lgb.Dataset(*rows(rank)), ROUNDS)


@way
def absolute_error(rank: int, more: Dict[str, Any]) -> Any:
    return lgb.train({**BASE, "objective": "regression_l1", **more}, lgb.Dataset(*rows(rank)), ROUNDS)


@way
def many_leaves(rank: int, more: Dict[str, Any]) -> Any:
    """Makes LightGBM sum one integer per leaf. The number of leaves is odd, and large enough that LightGBM sums in blocks."""
    many = {"objective": "regression_l1", "num_leaves": 1025, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0}
    rng = np.random.default_rng(rank)
    x = rng.standard_normal((4000, COLUMNS))
    return lgb.train({**BASE, **many, **more}, lgb.Dataset(x, 3 * x[:, 0] + rng.standard_normal(4000)), 1)


@way
def classes(rank: int, more: Dict[str, Any]) -> Any:
    x, y = rows(rank)
    return lgb.train({**BASE, "objective": "multiclass", "num_class": 3, **more},
                     lgb.Dataset(x, y + (np.nan_to_num(x[:, 3]) > 1)), ROUNDS)


@way
def queries(rank: int, more: Dict[str, Any]) -> Any:
    x, y = rows(rank)
    return lgb.train({**BASE, "objective": "lambdarank", **more}, lgb.Dataset(x, relevances(x, y), group=[30] * (ROWS // 30)), ROUNDS)


@way
def categories(rank: int, more: Dict[str, Any]) -> Any:
    x, y = rows(rank)
    x[:, 4] = np.random.default_rng(rank).integers(0, 9, ROWS)
    return lgb.train({**BASE, **more}, lgb.Dataset(x, y, categorical_feature=[4]), ROUNDS)


@way
def dart(rank: int, more: Dict[str, Any]) -> Any:
    return lgb.train({**BASE, "boosting": "dart", "drop_rate": 0.5, **more}, lgb.Dataset(*rows(rank)), ROUNDS)


@way
def classifier(rank: int, more: Dict[str, Any]) -> Any:
    """Uses LightGBM's scikit-learn interface."""
    return lgb.LGBMClassifier(n_estimators=ROUNDS, **{**BASE, **more}).fit(*rows(rank))


def over_warren(tree_learner: str) -> None:
    """Prints a digest of this rank's model for each way, with the bins that LightGBM finds by itself."""
    with mock.patch("warren._lightgbm.network.of_all_rows", contextlib.nullcontext), wl.communicator():
        rank = wl.get_rank()
        found = {name: digest(WAYS[name](rank, wl.parameters(tree_learner))) for name in ways_of(tree_learner)}
    print("models", json.dumps(found))


def over_sockets(rank: str, machines: str, tree_learner: str) -> None:
    """Like over_warren, over LightGBM's own sockets. `machines` has one list of addresses per way; semicolons separate
    the lists."""
    found = {}
    for name, listed in zip(ways_of(tree_learner), machines.split(";")):
        own = listed.split(",")[int(rank)]
        more = {"machines": listed, "num_machines": len(listed.split(",")), "local_listen_port": int(own.rpartition(":")[2]),
                "tree_learner": tree_learner, "pre_partition": True}
        model = WAYS[name](int(rank), more)
        found[name] = digest(model)
        (model if isinstance(model, lgb.Booster) else model.booster_).free_network()
    print("models", json.dumps(found))


def ways_of(tree_learner: str) -> List[str]:
    """The names in WAYS that work with this tree learner. With voting, LightGBM 4.7 crashes on quantized gradients, whatever it
    communicates over."""
    return [name for name in WAYS if (name, tree_learner) != ("quantized", "voting")]


def in_order(workers: int) -> List[Any]:
    """Rows in the order of time, as each of the workers has them, with their labels, and queries of 30 rows."""
    rng = np.random.default_rng(7)
    day = np.arange(3600.0)
    x = np.column_stack([day, day % 7, rng.random(len(day)), np.where(rng.random(len(day)) < 0.95, 0, rng.random(len(day)))])
    y = day / 300 + 2 * np.sin(day / 60) + x[:, 2] + 5 * x[:, 3]
    return [(x[one], y[one]) for one in np.array_split(np.arange(len(day)), workers)]


#: How the rows of in_order are given to LightGBM.
FORMS: Dict[str, Callable[[Any], Any]] = {
    "float32": np.float32, "Fortran order": np.asfortranarray, "csr": scipy.sparse.csr_matrix, "csc": scipy.sparse.csc_matrix,
    "list": lambda x: [x[:100], x[100:]], "sequence": lambda x: OneByOne(x)}


class OneByOne(lgb.Sequence):  # type: ignore[misc]
    """Rows that LightGBM reads by itself."""

    batch_size = 500

    def __init__(self, rows_of_worker: Any) -> None:
        self._rows = rows_of_worker

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)


def trains_in_order() -> None:
    """Trains on rows in the order of time, in several forms. Prints digests of the models, and the evaluations of the last round."""
    with wl.communicator():
        x, y = in_order(wl.get_world_size())[wl.get_rank()]
        found = {form: digest(lgb.train({**BASE, "objective": "regression", **wl.parameters()}, lgb.Dataset(make(x), y), ROUNDS))
                 for form, make in FORMS.items()}
        sampled = {"objective": "regression", "bin_construct_sample_cnt": 700, "max_bin": 31}
        found["sampled"] = digest(lgb.train({**BASE, **sampled, **wl.parameters()}, lgb.Dataset(x, y), ROUNDS))
        seen: Dict[str, Any] = {}
        for objective, metrics, labels, group in (("regression", ["l2", "rmse"], y, None), ("binary", ["auc", "average_precision"], np.sin(y) > 0.5, None),
                                                  ("lambdarank", ["ndcg", "map"], y.astype(int) % 4, [30] * (len(x) // 30))):
            weight = None if group else 1.0 + x[:, 1]
            train = lgb.Dataset(x, labels, weight=weight, group=group)
            valid = lgb.Dataset(x[::2], labels[::2], weight=weight if weight is None else weight[::2], reference=train,
                                group=[15] * (len(x) // 30) if group else None)
            lgb.train({**BASE, "objective": objective, "metric": metrics, "min_data_in_leaf": 0, "boost_from_average": False, **wl.parameters()}, train, 2,
                      valid_sets=[valid], callbacks=[lgb.record_evaluation(seen)])
            found.update({name: round(values[-1], 9) for name, values in seen["valid_0"].items()})
        print("in order", json.dumps(found))


def stops_early() -> None:
    """Trains with early stopping. If each worker used only its own validation rows, the workers would stop at different rounds, or not at
    all."""
    with wl.communicator():
        rank = wl.get_rank()
        x, y = rows(rank)
        rng = np.random.default_rng(rank)
        wrong = np.where(rng.random(ROWS) < 0.15 * rank, 1 - y, y)
        data = lgb.Dataset(x, y, free_raw_data=False)
        weights = 1.0 + (np.arange(ROWS) % 3) if rank != 1 else np.ones(ROWS)
        valid = lgb.Dataset(x[:300 + 100 * rank], wrong[:300 + 100 * rank], weight=weights[:300 + 100 * rank], reference=data)
        seen: Dict[str, Any] = {}
        model = lgb.train({**BASE, "learning_rate": 0.5, "metric": ["binary_logloss", "auc"], "early_stopping_round": 3,
                           **wl.parameters()}, data, 200, valid_sets=[valid], valid_names=["valid"],
                          callbacks=[lgb.record_evaluation(seen)])
        # The mean loss over all workers' rows, from values that each worker computes by itself.
        with_rows = len(wrong[:300 + 100 * rank])
        predicted = np.clip(model.predict(x[:with_rows], num_iteration=model.best_iteration), 1e-15, 1 - 1e-15)
        labels = wrong[:with_rows]
        losses = -np.sum(weights[:with_rows] * (labels * np.log(predicted) + (1 - labels) * np.log(1 - predicted)))
        total = rabit.allreduce(np.array([losses, np.sum(weights[:with_rows])]), rabit.SUM)
        print("stopped", json.dumps([rank, model.best_iteration, seen["valid"]["binary_logloss"], seen["valid"]["auc"],
                                     total[0] / total[1]]))


def loads(uri: str) -> None:
    """Loads this worker's share of the data and trains on it. Prints the rank, the share's row and feature counts, the sizes of its
    queries, and a digest of the model."""
    with wl.communicator():
        data = wl.load_dataset(uri, free_raw_data=False)
        model = lgb.train({**BASE, "objective": "regression", **wl.parameters()}, data, 2)
        assert data.subset([0, 1]).warren_is_share  # the folds of lightgbm.cv are subsets
        group = data.get_group()
        print("loaded", json.dumps([wl.get_rank(), data.num_data(), data.num_feature(),
                                    None if group is None else [int(size) for size in group], digest(model)]))


def loads_csv(uri: str) -> None:
    """Loads a CSV file, in which empty cells are missing values, but zeros are not. The data are binned before the training."""
    with wl.communicator():
        data = wl.load_dataset(uri, free_raw_data=False)
        data.construct()
        model = lgb.train({**BASE, "num_leaves": 2, **wl.parameters()}, data, 20)
        print("predicted", json.dumps(model.predict(np.array([[np.nan, 1.0], [0.0, 1.0]])).tolist()))


def weighs(uri: str) -> None:
    """Loads queries with one weight each. Prints the weights that LightGBM gets: one per row."""
    with wl.communicator():
        data = wl.load_dataset(uri)
        lgb.train({**BASE, "objective": "lambdarank", **wl.parameters()}, data, 2)
        print("weights", json.dumps(data.get_weight().tolist()))


def says(error: type, what: Callable[[], Any]) -> None:
    """Prints the error that `what` raises, or that it raises none, for the test to check."""
    try:
        what()
    except error as found:
        print("said", type(found).__name__, found, flush=True)
    else:
        print("said nothing", flush=True)


def outside() -> None:
    """Makes calls outside of the communicator, where a worker would mistake its share for all data, and enters a second communicator
    inside the first one and after it. Each of these must raise RuntimeError."""
    says(RuntimeError, wl.parameters)
    says(RuntimeError, lambda: wl.load_dataset("rows.txt"))
    with wl.communicator():
        says(RuntimeError, lambda: wl.communicator().__enter__())  # pylint: disable=unnecessary-dunder-call
        wl.parameters()
    says(RuntimeError, lambda: wl.communicator().__enter__())  # pylint: disable=unnecessary-dunder-call
    says(RuntimeError, wl.parameters)


def differs(what: str, *more: str) -> None:
    """Makes calls in which the workers differ in something that must be the same on all of them."""
    with wl.communicator():
        rank = wl.get_rank()
        x, y = rows(rank)
        if what == "classes":
            labels = np.where(y > 0, "b", "a" if rank == 0 else "c")
            says(ValueError, lambda: lgb.LGBMClassifier(n_estimators=2, **BASE, **wl.parameters()).fit(x, labels))
        elif what == "validation":
            names = ["first", "second"] if rank == 0 else ["second", "first"]
            train = lgb.Dataset(x, y)
            says(lgb.basic.LightGBMError, lambda: lgb.train({**BASE, **wl.parameters()}, train, 2, valid_names=names,
                                                           valid_sets=[train.create_valid(x, y), train.create_valid(x, y)]))
        elif what == "rows":
            says(ValueError, lambda: wl.load_dataset(more[0]))
        elif what == "datasets":
            given = {**BASE, **wl.parameters()}
            says(ValueError, lambda: lgb.train(given, lgb.Dataset(x[:, :8 - rank], y), 2))
            says(ValueError, lambda: lgb.train(given, lgb.Dataset(x[:, :3], y, feature_name=list("abc" if rank == 0 else "acb")), 2))
            of_frame = lgb.Dataset(x, y)
            of_frame.pandas_categorical = [list("uv" if rank == 0 else "vu")]  # pandas is not needed for this test
            says(ValueError, lambda: lgb.train(given, of_frame, 2))
            says(ValueError, lambda: lgb.train({**given, "max_bin": 15 + rank}, lgb.Dataset(x, y), 2))
            says(ValueError, lambda: lgb.train(given, lgb.Dataset(x[:rank], y[:rank]), 2))
            says(ValueError, lambda: lgb.train({**given, "learning_rate": 0.5 + rank}, lgb.Dataset(x, y), 2))
            made = lgb.Dataset(x, y, params=given).construct()
            says(lgb.basic.LightGBMError, lambda: lgb.train({**given, "learning_rate": 0.5 + rank}, made, 2))


def constructed_before() -> None:
    """Trains with a Dataset that has the bins of this worker's rows."""
    data = lgb.Dataset(*rows(int(os.environ["DMLC_TASK_ID"])), params={**BASE, "pre_partition": True}).construct()
    with wl.communicator():
        says(lgb.basic.LightGBMError, lambda: lgb.train({**BASE, **wl.parameters()}, data, 2))


def alone() -> None:
    """Prints the warnings: first those from training with wl.parameters() while another thread trains without them, which is allowed; then
    those from training without wl.parameters(), from training linear trees, and from another thread that trains with wl.parameters()."""
    with wl.communicator(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x, y = rows(wl.get_rank())

        def locally(more: Dict[str, Any]) -> None:
            train = lgb.Dataset(x, y)
            lgb.train({**BASE, **more}, train, 5, valid_sets=[train.create_valid(x, y)])

        thread = threading.Thread(target=locally, args=[{}])
        thread.start()
        lgb.train({**BASE, **wl.parameters()}, lgb.Dataset(x, y), 5)
        thread.join()
        print("warnings", json.dumps([str(one.message) for one in seen]))
        seen.clear()
        lgb.train(BASE, lgb.Dataset(x, y), 1)
        lgb.train({**BASE, "linear_tree": True, **wl.parameters()}, lgb.Dataset(x, y), 1)
        thread = threading.Thread(target=locally, args=[wl.parameters()])
        thread.start()
        thread.join()
        print("warnings", json.dumps([str(one.message) for one in seen]))


def killed() -> None:
    """Rank 1 is killed during training; the others print their error."""
    with wl.communicator():
        rank = wl.get_rank()

        def kill(env: Any) -> None:
            if rank == 1 and env.iteration == 5:
                print("killed", time.time(), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            lgb.train({**BASE, **wl.parameters()}, lgb.Dataset(*rows(rank)), 5000, callbacks=[kill])
        except lgb.basic.LightGBMError as error:
            print("error", json.dumps([rank, time.time(), str(error)]), flush=True)
            raise


def refits() -> None:
    """Inside the communicator, refit is refused, since it would use this worker's rows only. Outside, it uses the given rows, as in one
    process."""
    with wl.communicator():
        rank = wl.get_rank()
        model = lgb.train({**BASE, **wl.parameters()}, lgb.Dataset(*rows(rank)), ROUNDS)
        for call in (lambda: model.refit(*rows(rank)), lambda: lgb.Booster.refit(model, data=rows(0)[0], label=rows(0)[1])):
            try:
                call()
            except lgb.basic.LightGBMError as error:
                print("refused", error)
        model.save_model(f"model.{rank}")
    print("refit", json.dumps([digest(lgb.Booster(model_file=f"model.{rank}").refit(*rows(5)))]))


def refuses() -> None:
    """Makes unsupported requests and prints the errors. Then prints the rank outside of the communicator."""
    with wl.communicator():
        for wrong in ({"tree_learner": "serial"}, {"num_machines": 1}, {"machines": "127.0.0.1:1,127.0.0.1:2"}, {"workers": "127.0.0.1:1"}):
            says(ValueError, lambda wrong=wrong: lgb.train({**BASE, **wl.parameters(), **wrong}, lgb.Dataset(*rows(wl.get_rank())), 2))
        says(ValueError, lambda: wl.load_dataset("rows.parquet", label=["y", "z"]))
        for wrong in ("feature", "serial"):
            try:
                wl.parameters(wrong)
            except ValueError as error:
                print("refused", error)
    print("left as", wl.get_rank(), "of", wl.get_world_size())


def same_rows(how: str) -> None:
    """Trains on rows that are, or are not, the same on all workers."""
    with wl.communicator():
        x, y = rows(wl.get_rank() if how == "other rows" else 0)
        if how == "few":
            x, y = x[:9], y[:9]
        if how == "other features":
            x = x + wl.get_rank()
        given = {**BASE, **wl.parameters()}
        if how == "estimator":
            lgb.LGBMClassifier(**given, n_estimators=2).fit(x, y)
        else:
            made = [lgb.Dataset(x, y, params=given if how == "made before" else None) for _ in range(3)]
            if how == "made before":
                made[0].construct()
            for dataset in made:
                lgb.train(given, dataset, 2)
        print("trained", flush=True)


def evaluates_alone() -> None:
    """Rank 0 evaluates alone, while the other rank leaves the job."""
    with wl.communicator():
        train = lgb.Dataset(*rows(wl.get_rank()))
        valid = lgb.Dataset(*rows(10 + wl.get_rank()), reference=train)
        model = lgb.train({**BASE, **wl.parameters()}, train, 2, valid_sets=[valid], keep_training_booster=True)
        if wl.get_rank() == 0:
            print(model.eval_valid())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

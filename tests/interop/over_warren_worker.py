"""A worker for over_warren_test.py: runs the function that its first argument names. Uses the XGBoost (2.1 or later) that its interpreter
finds, over Warren's engine or over XGBoost's own communication."""
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from typing import Any, Callable, Dict

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import xgboost as xgb  # noqa: E402

import warren.xgboost as wx  # noqa: E402
from warren._xgboost import engine as _xgboost_engine  # noqa: E402

ROWS = 600
ROUNDS = 4
BASE = {"nthread": 1, "max_depth": 4, "tree_method": "hist", "objective": "binary:logistic", "seed": 3}


def rows(columns: int = 8) -> Any:
    """This worker's rows and their labels, 0 or 1."""
    rng = np.random.default_rng(1000 + wx.get_rank())
    x = rng.standard_normal((ROWS, columns)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    y = (np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) * np.nan_to_num(x[:, 2]) > 0).astype(np.float32)
    return x, y


def matrix(**options: Any) -> xgb.DMatrix:
    x, y = rows()
    return xgb.DMatrix(x, y, nthread=1, **options)


def trained(params: Dict[str, Any], data: Any = None, **options: Any) -> xgb.Booster:
    return xgb.train({**BASE, **params}, matrix() if data is None else data, ROUNDS, verbose_eval=False, **options)


def quantile_matrix() -> xgb.Booster:
    x, y = rows()
    return trained({}, xgb.QuantileDMatrix(x, y, nthread=1))


def external_memory() -> xgb.Booster:
    x, y = rows()

    class Batches(xgb.DataIter):
        """Three batches, which XGBoost caches in files."""

        def __init__(self, folder: str) -> None:
            self.next_batch = 0
            super().__init__(cache_prefix=os.path.join(folder, "cache"))

        def next(self, input_data: Callable[..., Any]) -> bool:
            if self.next_batch == 3:
                return False
            part = slice(self.next_batch * ROWS // 3, (self.next_batch + 1) * ROWS // 3)
            input_data(data=x[part], label=y[part])
            self.next_batch += 1
            return True

        def reset(self) -> None:
            self.next_batch = 0

    with tempfile.TemporaryDirectory() as folder:
        data = xgb.DMatrix(Batches(folder), nthread=1)
        booster = trained({}, data)
        del data
        return booster


def categories() -> xgb.Booster:
    x, y = rows()
    rng = np.random.default_rng(wx.get_rank())
    x[:, 3:5] = rng.integers(0, 7, (ROWS, 2))
    types = ["c" if column in (3, 4) else "q" for column in range(x.shape[1])]
    return trained({"max_cat_to_onehot": 3},
                   xgb.DMatrix(x, y, nthread=1, feature_types=types, enable_categorical=True))


def queries() -> xgb.Booster:
    x, y = rows()
    relevant = (2 * y + (np.nan_to_num(x[:, 3]) > 0)).astype(np.float32)
    return trained({"objective": "rank:ndcg"}, xgb.DMatrix(x, relevant, nthread=1, qid=np.arange(ROWS) // 20))


def columns_apart() -> xgb.Booster:
    """Trains with different columns of the same rows on each worker."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((ROWS, 6)).astype(np.float32)
    y = (x[:, 0] + x[:, 3] > 0).astype(np.float32)
    own = np.array_split(x, wx.get_world_size(), axis=1)[wx.get_rank()]
    data = xgb.DMatrix(own, y, nthread=1, data_split_mode=xgb.core.DataSplitMode.COL)
    return trained({}, data)


def custom_objective() -> xgb.Booster:
    def squared(margins: Any, data: xgb.DMatrix) -> Any:
        return margins - data.get_label(), np.ones_like(margins)

    def distance(margins: Any, data: xgb.DMatrix) -> Any:
        return "distance", float(np.mean(np.abs(margins - data.get_label())))

    data = matrix()
    return trained({"objective": "reg:squarederror"}, data, obj=squared, custom_metric=distance, evals=[(data, "train")])


def early_stopping() -> xgb.Booster:
    data = matrix()
    booster = xgb.train({**BASE, "eval_metric": ["logloss", "auc", "error"], "eta": 2.0}, data, 30, evals=[(data, "train")],
                        early_stopping_rounds=2, verbose_eval=False)
    booster.set_attr(stopped=str(booster.best_iteration))
    return booster


def many_targets() -> xgb.Booster:
    x, y = rows()
    return trained({"objective": "reg:squarederror", "multi_strategy": "multi_output_tree"},
                   xgb.DMatrix(x, np.column_stack([y, 1 - y, x[:, 0] > 0]).astype(np.float32), nthread=1))


def censored() -> xgb.Booster:
    x, y = rows()
    data = xgb.DMatrix(x, nthread=1)
    data.set_float_info("label_lower_bound", y + 1)
    data.set_float_info("label_upper_bound", np.where(y > 0, np.inf, y + 2).astype(np.float32))
    return trained({"objective": "survival:aft"}, data)


def classes() -> xgb.Booster:
    x, y = rows()
    return trained({"objective": "multi:softprob", "num_class": 3},
                   xgb.DMatrix(x, y + (np.nan_to_num(x[:, 3]) > 1), nthread=1))


#: All ways to train, by name.
WAYS: Dict[str, Callable[[], xgb.Booster]] = {
    "hist": lambda: trained({}),
    "hist, one of many features for each": lambda: trained({"subsample": 0.5, "colsample_bynode": 0.5}),
    "hist, leaf by leaf": lambda: trained({"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0}),
    "approx": lambda: trained({"tree_method": "approx"}),
    "dart": lambda: trained({"booster": "dart", "rate_drop": 0.5}),
    "gblinear, shotgun": lambda: trained({"booster": "gblinear", "updater": "shotgun"}),
    "gblinear, coord_descent": lambda: trained({"booster": "gblinear", "updater": "coord_descent"}),
    "absolute error": lambda: trained({"objective": "reg:absoluteerror"}),
    "quantiles": lambda: trained({"objective": "reg:quantileerror", "quantile_alpha": 0.3}),
    "constraints": lambda: trained({"monotone_constraints": "(1,0,0,0,0,0,0,-1)", "interaction_constraints": "[[0,1],[2,3,7]]"}),
    "classes": classes,
    "many targets": many_targets,
    "censored": censored,
    "queries": queries,
    "categories": categories,
    "quantile matrix": quantile_matrix,
    "external memory": external_memory,
    **({"columns apart": columns_apart} if hasattr(xgb.core, "DataSplitMode") else {}),
    "custom objective": custom_objective,
    "early stopping": early_stopping,
}


def models() -> None:
    """Prints the engine and, for each way to train, a digest of the model, the number of served calls, and predictions for some rows."""
    with wx.communicator():
        found: Dict[str, Any] = {}
        # Whole numbers, since some columns are categories.
        sample = np.abs(np.round(2 * np.random.default_rng(9).standard_normal((50, 8)))).astype(np.float32)
        for name, way in WAYS.items():
            before = _xgboost_engine.num_served()
            booster = way()
            served = _xgboost_engine.num_served() - before
            types = booster.feature_types
            asked = xgb.DMatrix(sample[:, :booster.num_features()], nthread=1, feature_types=types,
                                enable_categorical=types is not None)
            predicted = booster.predict(asked, output_margin=True)
            found[name] = [hashlib.sha256(bytes(booster.save_raw("json"))).hexdigest(), served,
                           np.asarray(predicted, float).ravel().tolist()]
        if wx.get_rank() == 0:
            print("models", json.dumps({"engine": wx.engine(), "of": found}))


def types_and_operations() -> None:
    """Compares all types and operations with NumPy, for several sizes. Also tests an unsupported operation, and broadcasts."""
    operations = {0: np.maximum, 1: np.minimum, 2: np.add, 3: np.bitwise_and, 4: np.bitwise_or, 5: np.bitwise_xor}
    names = ["float32", "float64", "float128", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    with wx.communicator():
        rank, size = wx.get_rank(), wx.get_world_size()
        tried = 0
        before = _xgboost_engine.num_served()
        for name in names:
            for code, combine in operations.items():
                if name.startswith("float") and code > 2:
                    continue
                for count in (1, 7, 1000, 70_001):
                    of_ranks = [np.arange(count).astype(name) * (other + 1) % 97 for other in range(size)]
                    of_ranks = [values.astype(name) for values in of_ranks]
                    expected = of_ranks[0]
                    for values in of_ranks[1:]:
                        expected = combine(expected, values)
                    found = xgb.collective.allreduce(of_ranks[rank], xgb.collective.Op(code))
                    assert found.dtype == expected.dtype and (found == expected).all(), (name, code, count)
                    tried += 1
        assert _xgboost_engine.num_served() - before == tried, (tried, _xgboost_engine.num_served() - before)
        for wrong in ("float32", "float64"):
            try:
                xgb.collective.allreduce(np.ones(3, wrong), xgb.collective.Op.BITWISE_OR)
            except xgb.core.XGBoostError as error:
                assert "bit" in str(error).lower(), error
            else:
                raise AssertionError("bits of floating point")
        for root in range(size):
            for value in ("", "x" * 100_000, {"root": root}):
                assert xgb.collective.broadcast(value if rank == root else None, root) == value
        print("types", tried, wx.engine())


def engine_is() -> None:
    """Prints which engine is in use before, inside and after a communicator, the sum of an allreduce, and the number of served calls."""
    before = wx.engine()
    with wx.communicator():
        inside = wx.engine()
        total = xgb.collective.allreduce(np.array([wx.get_rank() + 1]), xgb.collective.Op.SUM)
    print("engine", json.dumps([before, inside, wx.engine(), int(total[0]), _xgboost_engine.num_served()]))


def versions() -> None:
    """Joins the job; task 1 has another version of XGBoost, as far as Warren can see."""
    if os.environ["DMLC_TASK_ID"] == "1":
        xgb.__version__ = "0.1.2"
    engine_is()


def somebody_elses(arguments: str, task: str) -> Any:
    """A communicator that is created by XGBoost itself."""
    return xgb.collective.CommunicatorContext(**{**json.loads(arguments), "dmlc_task_id": task})


def accelerated(arguments: str, task: str, how: str) -> None:
    """Trains over Warren's engine in a communicator that XGBoost created. The engine is used within two blocks or, if `how` is "all", in
    all communicators of the process."""
    if how == "all":
        wx.accelerate_all()
        wx.accelerate_all()
    with somebody_elses(arguments, task):
        for _ in range(2):
            with wx.accelerate():
                assert wx.engine() == "warren"
                xgb.train(BASE, matrix(), ROUNDS)
            assert wx.engine() == ("warren" if how == "all" else "own")
        print("served", _xgboost_engine.num_served(), flush=True)
    assert wx.engine() == "own"


def killed(arguments: str, task: str) -> None:
    """Rank 1 is killed during training; the others print their error."""

    class Killer(xgb.callback.TrainingCallback):
        """Kills this process."""

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            del model, evals_log
            if epoch == 5 and wx.get_rank() == 1:
                print("killed", time.time(), flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            return False

    with somebody_elses(arguments, task), wx.accelerate():
        try:
            xgb.train(BASE, matrix(), 1000, callbacks=[Killer()])
        except xgb.core.XGBoostError as error:
            print("error", json.dumps([wx.get_rank(), time.time(), str(error)]), flush=True)
            os._exit(3)


def raises_inside(arguments: str, task: str) -> None:
    """Rank 1 raises within the block of wx.accelerate(); the others get an error in their next call."""
    with somebody_elses(arguments, task):
        try:
            with wx.accelerate():
                if wx.get_rank() == 1:
                    raise ValueError("no such luck")
                xgb.train(BASE, matrix(), ROUNDS)
        except (ValueError, xgb.core.XGBoostError) as error:
            print("error", json.dumps([wx.get_rank(), type(error).__name__, str(error)]), flush=True)
            os._exit(3)


def begins_again(arguments: str, task: str) -> None:
    """Begins to use the engine a second time in the same communicator."""
    wx.accelerate_all()
    context = somebody_elses(arguments, task)
    context.__enter__()
    assert wx.engine() == "warren"
    assert _xgboost_engine.begin()
    total = xgb.collective.allreduce(np.array([wx.get_rank() + 1]), xgb.collective.Op.SUM)
    print("sum", int(total[0]), wx.engine(), flush=True)
    context.__exit__(None, None, None)


def not_all_asked(arguments: str, task: str) -> None:
    """Rank 1 makes other calls while rank 0 takes part in the collective check of whether the engine can be used."""
    with somebody_elses(arguments, task):
        try:
            if wx.get_rank() == 0:
                with wx.accelerate():
                    print("entered", flush=True)
            else:
                xgb.collective.allreduce(np.array([7.0]), xgb.collective.Op.SUM)
                xgb.collective.allreduce(np.array([7.0]), xgb.collective.Op.SUM)
        except (RuntimeError, xgb.core.XGBoostError) as error:
            print("error", json.dumps([wx.get_rank(), type(error).__name__, str(error)]), flush=True)
        os._exit(3)


def lingers() -> None:
    """After the last call, rank 0 is busy for longer than the timeout of a call."""
    with wx.communicator(dmlc_timeout=8):
        xgb.train(BASE, matrix(), ROUNDS)
        assert wx.engine() == "warren"
        if wx.get_rank() == 0:
            time.sleep(12)
    print("left", flush=True)


def leaves_inside(arguments: str, task: str) -> None:
    """Finalizes the communicator within the block of wx.accelerate(). The agreement to use the engine holds for that communicator only."""
    context = somebody_elses(arguments, task)
    context.__enter__()
    with wx.accelerate():
        inside = wx.engine()
        xgb.collective.finalize()
        outside = wx.engine()
    print("left", inside, outside, wx.engine(), flush=True)


def comes_late(arguments: str, task: str) -> None:
    """Rank 1 enters a call after the others have stopped waiting."""
    with somebody_elses(arguments, task):
        begin = time.monotonic()
        try:
            with wx.accelerate(timeout=3.5):  # whole seconds, so 4
                if wx.get_rank() == 1:
                    time.sleep(10)
                xgb.collective.allreduce(np.array([1.0]), xgb.collective.Op.SUM)
        except (RuntimeError, xgb.core.XGBoostError) as error:
            print("error", json.dumps([wx.get_rank(), time.monotonic() - begin, str(error)]), flush=True)
        os._exit(3)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

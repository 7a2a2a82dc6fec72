"""A worker on whatever XGBoost its interpreter finds, for xgboost_training_test.py: one function for each test."""
import json
import os
import pathlib
import resource
import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import xgboost as xgb  # noqa: E402

import warren.xgboost as wx  # noqa: E402

PARAMS = {"objective": "reg:squarederror", "tree_method": "hist", "nthread": 1, "max_depth": 3}
ROUNDS = 12


def share(rows: int = 600, seed: int = 0, columns: int = 4, **options):  # noqa: ANN003, ANN201
    """This worker's part of the same rows for any number of workers."""
    random = np.random.default_rng(seed)
    features = random.random((rows, columns), np.float32)
    label = features[:, 0] * 2 + features[:, 1]
    mine = np.array_split(np.arange(rows), wx.get_world_size())[wx.get_rank()]
    return xgb.DMatrix(features[mine], label[mine], **{name: value[mine] for name, value in options.items()})


def squares(predictions, matrix):  # noqa: ANN001, ANN201
    """An objective function."""
    return predictions - matrix.get_label(), np.ones(len(predictions))


def scaled(factor: float):  # noqa: ANN201
    """An objective function with a value from around it."""
    def objective(predictions, matrix):  # noqa: ANN001, ANN202
        return factor * (predictions - matrix.get_label()), np.full(len(predictions), factor)
    return objective


class Halt(xgb.callback.TrainingCallback):
    """Ends rank 0's process, or makes it wait for a file, before the next round once there are so many."""

    def __init__(self, rounds: int, until: str = "") -> None:
        super().__init__()
        self.rounds, self.until = rounds, pathlib.Path(until) if until else None

    def before_iteration(self, model, epoch, evals_log):  # noqa: ANN001, ANN201
        """Never stops the training."""
        if wx.get_rank() != 0 or model.num_boosted_rounds() != self.rounds:
            return False
        if self.until is None:
            os._exit(9)
        print("waits", flush=True)
        while not self.until.exists():
            time.sleep(0.02)
        return False


def checkpointed(path: str, how: str = "{}") -> None:
    """Trains with a checkpoint after each round. `how` has what differs from other runs."""
    given = json.loads(how)
    with wx.communicator():
        matrix = share(given.get("rows", 600), given.get("seed", 0),
                       **{name: np.arange(600) % 7 + 1.0 for name in given.get("fields", [])})
        if given.get("quantile"):
            matrix = xgb.QuantileDMatrix(matrix.get_data(), matrix.get_label())
        options = {}
        if "obj" in given:
            options["obj"] = scaled(given["obj"]) if given["obj"] else squares
        if "evals" in given:
            options.update(evals=[(share(60, given["evals"]), "valid")], early_stopping_rounds=5)
        if "file_limit" in given:
            resource.setrlimit(resource.RLIMIT_FSIZE, (given["file_limit"], given["file_limit"]))
        halt = Halt(given["halt"], given.get("until", "")) if "halt" in given else None
        model = wx.train_with_checkpoints({**PARAMS, **given.get("params", {})}, matrix, given.get("rounds", ROUNDS), path,
                                          callbacks=[halt] if halt else [], verbose_eval=False, **options)
        if wx.get_rank() == 0:
            print("trained", model.num_boosted_rounds(), flush=True)
            if given.get("model"):
                model.save_model(given["model"])


def same_rows(how: str) -> None:
    """Trains on rows that all workers have, or not: one way of many."""
    warnings.simplefilter("default")
    warnings.filterwarnings("ignore", category=FutureWarning)
    with wx.communicator():
        random = np.random.default_rng(0)
        x = random.random((200, 4), np.float32)
        y = x[:, 0]
        if how == "few":
            x, y = x[:9], y[:9]
        if how == "other features":
            x = x + np.float32(wx.get_rank())
        if how == "other labels":
            y = y + wx.get_rank()
        if how == "other numbers of rows":
            x, y = x[wx.get_rank():], y[wx.get_rank():]
        if how == "ignored":
            import warren.data  # pylint: disable=import-outside-toplevel

            warnings.simplefilter("ignore", warren.data.SameRowsWarning)
        if how == "scattered":
            from warren import data  # pylint: disable=import-outside-toplevel

            x, y = data.scatter((x, y) if wx.get_rank() == 0 else None)
        if how == "loaded":
            matrix = wx.load_dmatrix("rows.svm")
        elif how == "quantile":
            matrix = xgb.QuantileDMatrix(x, y)
        else:
            matrix = xgb.DMatrix(x, y)
        if how == "estimator":
            xgb.XGBRegressor(n_estimators=2).fit(x, y)
        elif how == "by hand":
            model = xgb.Booster(PARAMS, [matrix])
            for iteration in range(3):
                model.update(matrix, iteration)
        elif how == "objective":
            xgb.train(PARAMS, matrix, 2, obj=squares)
        else:
            for _ in range(3):
                xgb.train(PARAMS, matrix, 2)
        print("trained", flush=True)


def twice(how: str) -> None:
    """Joins the job again after leaving it."""
    for _ in range(2):
        if how == "communicator":
            with wx.communicator():
                print("sum of ranks", wx.get_world_size(), flush=True)
        else:
            wx.init()
            wx.finalize()


def alone_in_a_call(how: str) -> None:
    """One rank makes a call that the other does not, which leaves the job."""
    with wx.communicator():
        matrix = share()
        model = xgb.train(PARAMS, matrix, 2)
        if wx.get_rank() == int(how[-1]):
            if how.startswith("evaluate"):
                print(model.eval(matrix))
            elif how.startswith("train"):
                xgb.train(PARAMS, matrix, 2)
            else:
                xgb.collective.broadcast("to nobody", wx.get_rank())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

"""A worker for any_xgboost_test.py: runs the function that its first argument names. Uses the XGBoost that its interpreter finds."""
import atexit
import json
import os
import pathlib
import signal
import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import xgboost as xgb  # noqa: E402

import warren.xgboost as wx  # noqa: E402

PARAMS = {"objective": "binary:logistic", "tree_method": "hist", "nthread": 1, "max_depth": 4, "eval_metric": "logloss"}


def train(data: str, model_path: str, rounds: str) -> None:
    """Trains a model. Rank 0 saves it and prints the evaluation of the last round. Each rank prints its row and column counts."""
    with wx.communicator():
        matrix = wx.load_dmatrix(data)
        matrix.set_label((matrix.get_label() > 0).astype(float))
        found: dict = {}
        model = xgb.train(PARAMS, matrix, int(rounds), evals=[(matrix, "train")], evals_result=found, verbose_eval=False)
        if wx.get_rank() == 0:
            model.save_model(model_path)
            print("evaluation", found["train"]["logloss"][-1])
        print("rows", matrix.num_row(), "columns", matrix.num_col())


def rank_queries(data: str) -> None:
    """Trains a ranking model. Prints the number of queries and the sum of weights in this worker's share."""
    with wx.communicator():
        matrix = wx.load_dmatrix(data)
        groups = matrix.get_uint_info("group_ptr")
        found: dict = {}
        xgb.train({"objective": "rank:pairwise", "tree_method": "hist", "nthread": 1, "eval_metric": "ndcg"}, matrix, 2,
                  evals=[(matrix, "train")], evals_result=found, verbose_eval=False)
        print("groups", len(groups) - 1, "weight", float(np.sum(matrix.get_weight())))


def talk() -> None:
    """Calls what scripts commonly use (ranks, collectives, printing through the tracker) and prints the results."""
    with wx.communicator():
        rank, size = wx.get_rank(), wx.get_world_size()
        module = xgb.collective if hasattr(xgb, "collective") else xgb.rabit
        total = module.allreduce(np.array([rank + 1.0]), module.Op.SUM)
        greatest = module.allreduce(np.full(100_000, rank), module.Op.MAX)
        said = wx.broadcast({"from": size - 1} if rank == size - 1 else None, size - 1)
        print("talk", json.dumps({"task": int(os.environ["DMLC_TASK_ID"]), "rank": rank, "size": size,
                                  "sum": float(total[0]), "max": float(greatest.min()), "said": said}))
        wx.tracker_print(f"printed by rank {rank}")


def named_tracker() -> None:
    """Joins a job whose tracker is named by arguments, as with xgboost.collective.CommunicatorContext, not by the environment."""
    arguments = {f"dmlc_{name}": os.environ.pop(f"DMLC_{name.upper()}") for name in ("tracker_uri", "tracker_port", "task_id")}
    arguments["dmlc_tracker_port"] = int(arguments["dmlc_tracker_port"])
    with wx.CommunicatorContext(**arguments) as given:
        assert given == arguments
        print("size", wx.get_world_size(), "said", wx.broadcast("by rank 0" if wx.get_rank() == 0 else None, 0))


def fail(how: str, others: str = "sleep") -> None:
    """Rank 1 fails while the others are in Python code, where XGBoost cannot notice, or busy with collectives."""
    with wx.communicator():
        print("pid", os.getpid(), flush=True)
        module = xgb.collective if hasattr(xgb, "collective") else xgb.rabit
        module.allreduce(np.array([1.0]), module.Op.SUM)
        if wx.get_rank() != 1 and others == "sleep":
            print("waits", flush=True)
            time.sleep(120)
        begin = time.monotonic()
        while wx.get_rank() != 1 or time.monotonic() - begin < 0.3:
            if others == "busy":
                module.allreduce(np.ones(1000), module.Op.SUM)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "vanish":
            os._exit(0)
        if how == "exit":
            sys.exit(3)
        atexit.register(time.sleep, 1.5)  # so that this rank ends after the others
        raise ValueError("no such luck")


def checkpointed(data: str, model_path: str, rounds: str, kill_at: str, sampling: str = "{}") -> None:
    """Trains with checkpoints; the last rank kills itself once, after `kill_at` rounds."""
    killed = pathlib.Path(model_path + ".killed")

    class Killer(xgb.callback.TrainingCallback):
        """Kills the last rank."""

        def after_iteration(self, model, epoch, evals_log):  # noqa: ANN001, ANN201
            """Kills the last rank once, after `kill_at` rounds. Returns False, so that training continues."""
            last = wx.get_rank() == wx.get_world_size() - 1
            if last and model.num_boosted_rounds() == int(kill_at) and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return False

    with wx.communicator():
        matrix = wx.load_dmatrix(data)
        matrix.set_label((matrix.get_label() > 0).astype(float))
        model = wx.train_with_checkpoints({**PARAMS, **json.loads(sampling)}, matrix, int(rounds), model_path + ".so-far.ubj", callbacks=[Killer()])
        if wx.get_rank() == 0:
            model.save_model(model_path)
            print("rounds", model.num_boosted_rounds())


def resumed(data: str, ranking: str) -> None:
    """For various parameters that make XGBoost draw random numbers, compares uninterrupted training with training that is interrupted after
    3 or 5 rounds and resumed. Prints the cases in which the models differ."""
    class Stop(xgb.callback.TrainingCallback):
        """Interrupts the training."""

        def __init__(self, rounds: int) -> None:
            super().__init__()
            self.rounds = rounds

        def after_iteration(self, model, epoch, evals_log):  # noqa: ANN001, ANN201
            """Raises InterruptedError after `rounds` rounds."""
            if model.num_boosted_rounds() == self.rounds:
                raise InterruptedError

    linear = {"booster": "gblinear", "updater": "coord_descent", "tree_method": "auto"}
    ways = [{**method, **drawing} for method in ({}, {"tree_method": "approx"}) for drawing in (
        {"subsample": 0.5}, {"colsample_bytree": 0.5}, {"colsample_bylevel": 0.5}, {"colsample_bynode": 0.5},
        {"num_parallel_tree": 3, "subsample": 0.5}, {"booster": "dart", "rate_drop": 0.5},
        {"booster": "dart", "rate_drop": 0.5, "skip_drop": 0.5}, {"booster": "dart", "rate_drop": 0.1, "one_drop": 1})]
    ways += [{"objective": "reg:squarederror", "tree_method": "approx", "subsample": 0.5, "eval_metric": "rmse", **more}
             for more in ({}, {"max_bin": 8}, {"num_parallel_tree": 2})]
    ways += [{**linear, "feature_selector": "random"}, {**linear, "feature_selector": "shuffle"},
             {"objective": "multi:softprob", "num_class": 2, "subsample": 0.5, "eval_metric": "mlogloss"},
             {"objective": "rank:ndcg", "eval_metric": "ndcg"}]
    if wx.VERSION >= (3, 4):  # earlier versions drew a ranking's pairs from a generator without a seed
        ways.append({"objective": "rank:pairwise", "lambdarank_pair_method": "mean", "eval_metric": "ndcg"})
    with wx.communicator():
        for way in ways:
            params = {**PARAMS, **way}

            def train(*callbacks: object) -> bytes:
                matrix = wx.load_dmatrix(ranking if "rank" in params["objective"] else data)
                if "rank" not in params["objective"]:
                    matrix.set_label((matrix.get_label() > 0).astype(float))
                return bytes(wx.train_with_checkpoints(params, matrix, 6, "resumed.ubj", every=2,
                                                       callbacks=callbacks).save_raw("json"))

            whole = train()
            for rounds in (3, 5):
                try:
                    train(Stop(rounds))
                except InterruptedError:
                    pass
                wx.broadcast(rounds)  # after this, the checkpoint has been written
                # Only rank 0 compares: with gblinear, each rank has a different model, and the checkpoint contains rank 0's.
                if train() != whole and wx.get_rank() == 0:
                    print("differs", rounds, json.dumps(way))
    print("tried", len(ways))


def join() -> None:
    """Joins the job and leaves it."""
    with wx.communicator():
        pass


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

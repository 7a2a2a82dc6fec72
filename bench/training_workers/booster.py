"""One worker of bench/training and bench/histgbt: generates or reads its rows, joins, trains, and reports on rank 0 how long each took.

    booster.py xgboost|lightgbm SIDE RANK WORKERS ROWS COLUMNS DEPTH ROUNDS

SIDE is `own` (the booster's communication), `warren` (ours), or `single` (one process with WORKERS threads). ROWS counts the rows of all
workers together. BENCH_DATA is a file of public data (comparison/public_data.py), of which each worker takes its share. BENCH_ROWS is a
file with this worker's rows in float32, label first (written by make_libsvm). Without both, rows are generated. LightGBM's own
communication finds its machines in BENCH_MACHINES ("10.0.0.1:12400,..."). BENCH_PARAMETERS is JSON that overrides the parameters set here.
Rank 0 writes its model to the file BENCH_MODEL, and prints one line of JSON: {"join_s", "train_s", "first_s"}, where `first_s` is the time
of the first round, which is part of `train_s`. For LightGBM, which joins and prepares in the first round, `first_s` is equal to `join_s`
and not part of `train_s`.
"""

import contextlib
import hashlib
import json
import os
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


#: Rows are generated in blocks of this size, each from its own seed.
BLOCK_ROWS = 1000


def rows_of(rank, workers, rows, columns):
    """The rows of one worker. The rows of all workers together are the same for any number of workers."""
    from numpy.random import SeedSequence, default_rng

    if "BENCH_DATA" in os.environ:
        from comparison import public_data

        x, y = public_data.load(os.environ["BENCH_DATA"])
        share = slice(rank * len(y) // workers, (rank + 1) * len(y) // workers)
        return x[share], y[share]
    if "BENCH_ROWS" in os.environ:
        table = np.fromfile(os.environ["BENCH_ROWS"], np.float32).reshape(-1, columns + 1)
        return np.ascontiguousarray(table[:, 1:]), np.ascontiguousarray(table[:, 0])
    begin, end = rank * rows // workers, (rank + 1) * rows // workers
    x = np.empty((end - begin, columns), np.float32)
    for first in range(begin // BLOCK_ROWS * BLOCK_ROWS, end, BLOCK_ROWS):
        block = default_rng(SeedSequence([first])).standard_normal((BLOCK_ROWS, columns), np.float32)
        mine = slice(max(first, begin), min(first + BLOCK_ROWS, end))
        x[mine.start - begin:mine.stop - begin] = block[mine.start - first:mine.stop - first]
    y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] > 0).astype(np.float32)
    return x, y


def parameters(defaults):
    return {**defaults, **json.loads(os.environ.get("BENCH_PARAMETERS", "{}"))}


def xgboost(side, rank, workers, shape, depth, rounds):
    import xgboost as xgb

    params = parameters({"objective": "binary:logistic", "tree_method": "hist", "max_depth": depth,
                         "nthread": workers if side == "single" else 1})  # fmt: skip
    x, y = rows_of(rank, 1 if side == "single" else workers, *shape)
    first = []

    class FirstRound(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            if not first:
                first.append(time.monotonic())
            return False

    def train(matrix):
        begin = time.monotonic()
        model = xgb.train(params, matrix, rounds, callbacks=[FirstRound()])
        return begin, model

    if side == "single":
        begin, model = train(xgb.DMatrix(x, y, nthread=params["nthread"]))
        return 0.0, time.monotonic() - begin, first[0] - begin, bytes(model.save_raw("json"))
    import warren.xgboost as wx

    begin = time.monotonic()
    with wx.communicator():
        joined = time.monotonic()
        if workers > 1 and wx.VERSION >= (2, 1) and wx.engine() != side:
            raise SystemExit(f"the communication is {wx.engine()}'s, expected {side}'s")
        matrix = xgb.DMatrix(x, y, nthread=params["nthread"])
        meet(lambda: xgb.collective.allreduce(np.zeros(1), xgb.collective.Op.SUM))
        started, model = train(matrix)
        xgb.collective.allreduce(np.zeros(1), xgb.collective.Op.SUM)
        ended = time.monotonic()
        saved = bytes(model.save_raw("json"))
        digest = np.frombuffer(hashlib.sha256(saved).digest(), np.int64)
        most, least = (xgb.collective.allreduce(digest.copy(), op) for op in (xgb.collective.Op.MAX, xgb.collective.Op.MIN))
        if (most != least).any():
            raise SystemExit("the workers have different models")
    return joined - begin, ended - started, first[0] - started, saved


def lightgbm(side, rank, workers, shape, depth, rounds):
    import lightgbm as lgb

    params = parameters({"objective": "binary", "num_leaves": 2**depth, "max_depth": depth, "min_data_in_leaf": 20, "verbose": -1,
                         "num_threads": workers if side == "single" else 1})  # fmt: skip
    x, y = rows_of(rank, 1 if side == "single" else workers, *shape)
    # LightGBM's own communication joins while it trains. So for all sides, the first round counts as joining and the rest as training.
    first = []

    def train(more):
        model = lgb.train({**params, **more}, lgb.Dataset(x, y), rounds,
                          callbacks=[lambda env: first or first.append(time.monotonic())])  # fmt: skip
        return time.monotonic(), text_of(model)

    begin = time.monotonic()
    if side == "single":
        ended, model = train({})
    elif side == "own":
        port = int(os.environ["BENCH_MACHINES"].split(",")[rank].rpartition(":")[2])
        ended, model = train({"machines": os.environ["BENCH_MACHINES"], "local_listen_port": port, "num_machines": workers,
                              "tree_learner": "data", "pre_partition": True})  # fmt: skip
    else:
        import warren.lightgbm as wl

        with wl.communicator():
            ended, model = train(wl.parameters())
    return first[0] - begin, ended - first[0], first[0] - begin, model


def text_of(model):
    """The model as text, without the parameters, which depend on the side."""
    return model.model_to_string().split("\nparameters:")[0].encode()


def meet(barrier):
    """Two barriers: the first one waits for late ranks, so that all ranks leave the second one at the same time."""
    barrier()
    barrier()


def main():
    booster, side, *numbers = sys.argv[1:]
    rank, workers, rows, columns, depth, rounds = map(int, numbers)
    with contextlib.redirect_stdout(sys.stderr):  # boosters write messages to standard output
        join_s, train_s, first_s, model = globals()[booster](side, rank, workers, (rows, columns), depth, rounds)
    if rank == 0:
        with open(os.environ["BENCH_MODEL"], "wb") as file:
            file.write(model)
        print(json.dumps({"join_s": join_s, "train_s": train_s, "first_s": first_s}), flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""One worker of bench/xgboost_training: loads its rows, joins the job, trains, and tells on rank 0 how long it took.

    xgboost_1_7.py convert LIBSVM BINARY                       once, so that loading is quick
    xgboost_1_7.py convert-dense FLOATS FEATURES BINARY        the same from make_libsvm's float32
    xgboost_1_7.py train BINARY ROUNDS KEY=VALUE...            prints {"seconds", "first", "model"} on rank 0: all rounds,
                                                          and the first with all that comes before it

XGBoost is Debian's python3-xgboost 1.7; whose communication it uses is decided by LD_PRELOAD.
"""

import json
import os
import sys
import time
import warnings

import numpy as np
import xgboost as xgb

warnings.filterwarnings("ignore", category=FutureWarning)


def convert(libsvm, binary):
    save(xgb.DMatrix(libsvm + "?format=libsvm", nthread=1), binary)


def convert_dense(floats, features, binary):
    table = np.fromfile(floats, np.float32).reshape(-1, int(features) + 1)
    save(xgb.DMatrix(table[:, 1:], table[:, 0], nthread=1), binary)


def save(rows, binary):
    aside = f"{binary}.{os.getpid()}"
    rows.save_binary(aside)
    os.replace(aside, binary)


class FirstRound(xgb.callback.TrainingCallback):
    """When it ended."""

    ended = None

    def after_iteration(self, model, epoch, evals_log):
        self.ended = self.ended or time.monotonic()
        return False


def train(binary, rounds, params):
    # Before joining: a job's workers would each take a part of the file.
    rows = xgb.DMatrix(binary, nthread=1)
    xgb.rabit.init()
    meet = np.zeros(1)
    xgb.rabit.allreduce(meet, xgb.rabit.Op.SUM)
    started = time.monotonic()
    first = FirstRound()
    booster = xgb.train(params, rows, rounds, callbacks=[first])
    xgb.rabit.allreduce(meet, xgb.rabit.Op.SUM)
    seconds = time.monotonic() - started
    model = bytes(booster.save_raw("json"))
    # The same on every worker: the largest hash is the smallest.
    digest = np.frombuffer(_digest(model), dtype=np.int64).copy()
    same = (xgb.rabit.allreduce(digest, xgb.rabit.Op.MAX) == xgb.rabit.allreduce(digest, xgb.rabit.Op.MIN)).all()
    if not same:
        sys.exit("the workers have different models")
    if xgb.rabit.get_rank() == 0:
        path = os.environ["BENCH_MODEL"]
        with open(path, "wb") as file:
            file.write(model)
        print(json.dumps({"seconds": seconds, "first": first.ended - started, "model": path}), flush=True)
    xgb.rabit.finalize()


def _digest(data):
    import hashlib

    return hashlib.sha256(data).digest()


if __name__ == "__main__":
    if sys.argv[1] == "convert":
        convert(*sys.argv[2:])
    elif sys.argv[1] == "convert-dense":
        convert_dense(*sys.argv[2:])
    else:
        train(sys.argv[2], int(sys.argv[3]), dict(pair.split("=", 1) for pair in sys.argv[4:]))

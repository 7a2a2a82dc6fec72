"""A worker of the jobs of load_job_test.py: loads, trains, and prints the results."""
import json
import os
import sys
import time

import numpy as np

what, uri, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
if "die" in options:
    # Rank `rank_to_die` kills itself while reading, at batch number `left`.
    from warren.data._columnar import source as _source
    rank_to_die, left = options.pop("die")
    original = _source.Source._batches  # pylint: disable=protected-access

    def dying(self, *args, **named):
        global left  # pylint: disable=global-statement
        for batch in original(self, *args, **named):
            left -= 1
            if self.peers.rank == rank_to_die and left == 0:
                os.kill(os.getpid(), 9)
            yield batch
            time.sleep(0.01)
    _source.Source._batches = dying  # pylint: disable=protected-access
if "batch_pause" in options:
    # Slows down reading.
    from warren.data._columnar import converter as _converter
    pause, convert = options.pop("batch_pause"), _converter.Converter.table

    def slowly(self, *args, **named):
        time.sleep(pause)
        return convert(self, *args, **named)
    _converter.Converter.table = slowly


def digest(table):
    return [len(table), int(np.nan_to_num(table.features).astype("float64").sum() * 1000), table.categories]


def train_elastic():
    """Trains with a checkpoint each round. In a job of several workers, all kill themselves after the fourth round of their first attempt."""
    import hashlib
    import xgboost as xgb
    import warren.xgboost

    class Killer(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            if epoch == 3 and os.environ["DMLC_NUM_ATTEMPT"] == "0" and os.environ["DMLC_NUM_WORKER"] != "1":
                os.kill(os.getpid(), 9)

    place = warren.xgboost.Checkpoints(options.pop("checkpoint"), storage_options=options["storage_options"])
    with warren.xgboost.communicator():
        data = warren.xgboost.Data(uri, **options)
        model = warren.xgboost.train({"max_depth": 3}, data, 8, elastic=True, checkpoint=place, callbacks=[Killer()], verbose_eval=False)
        print("model", hashlib.sha256(bytes(model.save_raw("ubj"))).hexdigest(), flush=True)


def train_xgboost():
    import xgboost as xgb
    import warren.xgboost
    params = options.pop("params", {"objective": "binary:logistic", "max_depth": 4, "tree_method": "hist", "max_bin": 64})
    rounds, caught, validate, of_rank = (options.pop(name, default) for name, default in (
        ("rounds", 5), ("caught", False), ("validate", False), ("of_rank", {})))
    with warren.xgboost.communicator():
        options.update({name: values[warren.xgboost.get_rank()] for name, values in of_rank.items()})
        try:
            matrix = warren.xgboost.load_dmatrix(uri, **options)
        except ValueError as error:
            if not caught:
                raise
            print("caught", error)
            return
        history = {}
        evals = [(matrix, "train")]
        if validate:
            evals.append((warren.xgboost.load_dmatrix(uri, **{**options, "categories": matrix.warren_categories, "ref": matrix}), "valid"))
        model = xgb.train(params, matrix, rounds, evals=evals, evals_result=history, verbose_eval=False)
        if warren.xgboost.get_rank() == 0:
            print("model", json.dumps({"dump": model.get_dump(), "kind": type(matrix).__name__, "world": warren.xgboost.get_world_size(),
                                       "metric": list(history["train"].values())[0][-1], "categories": matrix.warren_categories,
                                       "names": matrix.feature_names}))


def train_lightgbm():
    import lightgbm
    import warren.lightgbm
    with warren.lightgbm.communicator():
        dataset = warren.lightgbm.load_dataset(uri, **options)
        model = lightgbm.train({"objective": "binary", "num_leaves": 8, "verbose": -1, **warren.lightgbm.parameters()}, dataset, 5)
        if warren.lightgbm.get_rank() == 0:
            print("model", json.dumps({"dump": model.model_to_string(), "world": warren.lightgbm.get_world_size(), "names": model.feature_name()}))


def load_over_rabit():
    from warren import data, rabit
    with rabit.context():
        table = data.load(uri, **options)
        print("share", json.dumps([rabit.get_rank(), rabit.get_world_size(), *digest(table)]))


{"elastic": train_elastic, "xgboost": train_xgboost, "lightgbm": train_lightgbm, "rabit": load_over_rabit}[what]()

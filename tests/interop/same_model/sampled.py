"""A worker that trains with `subsample` on its part of the rows, and prints digests of models and evaluations. With one worker, it uses
plain xgboost.train."""
import hashlib
import json
import warnings

import numpy as np
import xgboost

import warren.xgboost

warnings.simplefilter("ignore")
HOW = {"nthread": 2, "max_depth": 4, "subsample": .7}


def squared_error(predictions, matrix):
    """An objective function that ignores weights."""
    return (predictions - matrix.get_label()).astype("float32"), np.ones(len(predictions), "float32")


def main():
    random = np.random.RandomState(3)
    rows = 5000
    features = random.randn(rows, 6).astype("float32")
    features[random.rand(rows, 6) < .2] = np.nan
    signal = np.nan_to_num(features[:, 0]) + random.randn(rows) / 2
    weight = random.randint(1, 4, rows).astype("float32")
    times = np.exp(signal).astype("float32")
    cases = [({"objective": "binary:logistic", "eval_metric": ["auc", "logloss"]}, signal > 0, {}),
             ({"objective": "binary:logistic", "seed": 2**40 + 5, "scale_pos_weight": 2}, signal > 0, {"weight": weight}),
             ({"objective": "reg:squarederror", "subsample": .1}, signal, {}),
             ({"objective": "reg:squarederror", "subsample": .3, "seed": 7, "seed_per_iteration": 1, "base_score": .5}, signal, {"weight": weight}),
             ({"objective": "count:poisson", "grow_policy": "lossguide", "max_leaves": 9}, np.round(times), {}),
             ({"objective": "reg:gamma", "random_state": 11, "subsample": .999}, times, {}),
             ({"objective": "reg:squarederror", "subsample": .5, "base_score": 0.}, signal, {"obj": squared_error}),
             ({"objective": "reg:squarederror", "multi_strategy": "multi_output_tree"}, np.stack([signal, -signal], 1), {}),
             ({"objective": "reg:pseudohubererror"}, signal, {"weight": weight}), ({"objective": "reg:tweedie"}, times, {}),
             ({"objective": "reg:squaredlogerror"}, times, {}), ({"objective": "survival:aft"}, times, {"weight": weight, "bounds": times}),
             ({"objective": "binary:logitraw"}, signal > 0, {}), ({"objective": "reg:logistic", "subsample": .5}, signal > 0, {})]
    cases.append(({"objective": "reg:squarederror", "colsample_bytree": .5, "colsample_bynode": .8, "subsample": .5}, signal, {}))
    cases.append(({"objective": "binary:logistic", "colsample_bylevel": .4, "subsample": .8, "seed": 99}, signal > 0, {"weight": weight}))
    cases.append(({"objective": "reg:squarederror", "seed": None, "random_state": 5}, signal, {}))
    cases.append(({"objective": "reg:squarederror", "subsample": 0}, signal, {}))
    if warren.xgboost.VERSION >= (3, 3):
        before = xgboost.train({"subsample": .5, "colsample_bytree": .7, "seed": 4, "max_depth": 2, "tree_method": "hist", "max_bin": 64},
                               xgboost.QuantileDMatrix(features, label=signal, max_bin=64), 3)
        cases += [({"objective": "reg:squarederror", "subsample": how}, signal, {"xgb_model": before}) for how in (None, .8)]
    with warren.xgboost.communicator():
        rank, workers = warren.xgboost.get_rank(), warren.xgboost.get_world_size()
        ends = [0, *sorted(random.choice(rows, workers - 1, replace=False).tolist()), rows]
        ours = slice(ends[rank], ends[rank + 1])
        for number, (params, label, more) in enumerate(cases):
            params, label, history = {**HOW, **params}, label.astype("float32"), {}
            options = {"num_boost_round": 12, "evals_result": history, "verbose_eval": False, "obj": more.get("obj"),
                       "xgb_model": more.get("xgb_model")}
            given, bounds = more.get("weight"), {name: more["bounds"] for name in ("label_lower_bound", "label_upper_bound") if "bounds" in more}
            if workers == 1:
                matrix = xgboost.QuantileDMatrix(features, label=label, weight=given, max_bin=64, **bounds)
                model = xgboost.train({**params, "tree_method": "hist", "max_bin": 64}, matrix, evals=[(matrix, "train")], **options)
            else:
                data = warren.xgboost.Data(features[ours], label=label[ours], weight=None if given is None else given[ours],
                                           **{name: values[ours] for name, values in bounds.items()})
                model = warren.xgboost.train({**params, "max_bin": 64}, data, evals=[(data, "train")], reproducible=True, **options)
            text = json.dumps([hashlib.sha256(bytes(model.save_raw("ubj"))).hexdigest(), history])
            if rank == 0:
                print("model", number, params["objective"], hashlib.sha256(text.encode()).hexdigest(), flush=True)


if __name__ == "__main__":
    main()

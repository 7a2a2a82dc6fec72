#!/usr/bin/python3
"""Distributed training in the shape of the classic XGBoost tutorial.

Run it on three workers, or alone:

    dmlc-submit --num-workers 3 python3 examples/xgboost/train.py
    python3 examples/xgboost/train.py --rounds 20 --model heart.json

It needs XGBoost's Python package up to 1.7 (Debian: python3-xgboost, whose interpreter is
/usr/bin/python3); xgb.rabit became xgb.collective in 2.0.
"""
import argparse
import os
import warnings

import xgboost as xgb

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a classifier on LibSVM data with two classes.")
    parser.add_argument("--data", default=HEART, help="LibSVM file; labels above 0 are class 1 (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="boosting rounds (default: %(default)s)")
    parser.add_argument("--model", default="heart.json", help="file of the model, .json or .ubj (default: %(default)s)")
    parser.add_argument("--param", action="append", default=[], metavar="KEY=VALUE", help="a booster parameter")
    return parser.parse_args()


def load_share(path: str) -> xgb.DMatrix:
    """This worker's rows: once rabit is up, XGBoost splits a file by itself."""
    share = xgb.DMatrix(path + "?format=libsvm")
    share.set_label((share.get_label() > 0).astype(float))  # -1/+1 becomes 0/1
    return share


def save_whole(model: xgb.Booster, path: str) -> None:
    """Written aside, then renamed: nobody ever loads half a model."""
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{os.getpid()}.{name}")  # keeps the ending, which is the format
    model.save_model(aside)
    os.replace(aside, path)


def main() -> None:
    arguments = parse_arguments()
    params = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 3, "nthread": 1}
    params.update(pair.split("=", 1) for pair in arguments.param)

    xgb.rabit.init()  # reads DMLC_TRACKER_URI and its companions
    dtrain = load_share(arguments.data)
    # The evaluation is summed over all workers and printed once.
    bst = xgb.train(params, dtrain, arguments.rounds, evals=[(dtrain, "train")])
    if xgb.rabit.get_rank() == 0:
        save_whole(bst, arguments.model)
        xgb.rabit.tracker_print(f"model of {arguments.rounds} rounds saved in {arguments.model}\n")
    xgb.rabit.finalize()


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning, message=".*rabit.*")
    main()

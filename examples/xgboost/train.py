#!/usr/bin/python3
"""Distributed training, modeled on the classic XGBoost tutorial.

Run it on three workers, or alone:

    dmlc-submit --num-workers 3 python3 examples/xgboost/train.py
    python3 examples/xgboost/train.py --rounds 20 --model heart.json

With --save-every, training resumes after a restart, whether by hand or by the launcher:

    dmlc-submit --num-workers 3 --max-restarts 5 python3 examples/xgboost/train.py --save-every 2

It is written for XGBoost up to 1.7, such as Debian's python3-xgboost, which belongs to /usr/bin/python3: use
/usr/bin/python3 if another python3 comes first on PATH. In a pip environment with any newer XGBoost and the
warren package, the same script runs unchanged with that environment's interpreter and warren.compat:

    dmlc-submit --num-workers 3 python -m warren.compat examples/xgboost/train.py
"""
import argparse
import contextlib
import errno
import json
import os
import pathlib
import warnings
from typing import Optional

import numpy as np
import xgboost as xgb

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a classifier on LibSVM data with two classes.")
    parser.add_argument("--data", default=HEART, help="LibSVM file; labels above 0 are class 1 (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10, help="boosting rounds (default: %(default)s)")
    parser.add_argument("--model", default="heart.json", help="model file, .json or .ubj (default: %(default)s)")
    parser.add_argument("--save-every", type=int, default=0, metavar="ROUNDS",
                        help="save the model every so many rounds next to --model, and resume from it (default: never)")
    parser.add_argument("--param", action="append", default=[], metavar="KEY=VALUE", help="a booster parameter")
    arguments = parser.parse_args()
    if not arguments.model.endswith((".json", ".ubj")):
        parser.error(f"--model {arguments.model}: expected a name that ends in .json or .ubj, which determines the format")
    return arguments


def load_share(path: str) -> xgb.DMatrix:
    """Loads this worker's rows: once rabit is initialized, XGBoost splits the file itself."""
    share = xgb.DMatrix(path + "?format=libsvm")
    share.set_label((share.get_label() > 0).astype(float))  # -1/+1 becomes 0/1
    return share


def save_whole(model: xgb.Booster, path: str) -> None:
    """Saves the whole model or nothing: writes a temporary file, flushes it, then renames it. If that fails (e.g. the disk is full), the
    old file is kept."""
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.unfinished")  # only rank 0 saves, so one name is enough
    # save_model is not used because it does not notice a full disk when it closes the file.
    content = model.save_raw(raw_format=os.path.splitext(path)[1][1:])
    try:
        with open(aside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise OSError(error.errno, f"the model could not be saved: {os.strerror(error.errno or 0)}", path) from error
    parent = os.open(folder or ".", os.O_RDONLY)
    with contextlib.suppress(OSError):  # some file systems cannot sync folders
        os.fsync(parent)
    os.close(parent)


def require_writable(path: str) -> None:
    """Raises OSError if save_whole could not write the file. Called before the training, whose result would be lost."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "the model would replace a folder; give --model the name of a file", path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the model could not be saved in a folder that does not exist; create it first", path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "the model could not be saved, because its folder is not writable", path)


class Progress(xgb.callback.TrainingCallback):
    """Saves the model so far to a file next to the final one, marked with the run it belongs to.

    A resumed run produces the same model as an uninterrupted one, unless it draws random numbers (subsample, colsample_*,
    dart, ranking): models do not contain the generator's state.
    """

    def __init__(self, arguments: argparse.Namespace, params: dict) -> None:
        super().__init__()
        model = pathlib.Path(arguments.model)
        data = os.stat(arguments.data)
        self.path = model.with_name(f"{model.stem}.unfinished{model.suffix}")
        self.every = arguments.save_every
        self.run = json.dumps([params, os.path.abspath(arguments.data), data.st_size, data.st_mtime_ns, xgb.__version__])

    def load(self, rounds: int) -> Optional[xgb.Booster]:
        """Returns the saved model, or None to start from scratch. Rank 0 reads it for all ranks, which must start from the same model."""
        found = b""
        if self.every > 0 and xgb.rabit.get_rank() == 0 and self.path.exists():
            model = xgb.Booster(model_file=str(self.path))
            if model.attr("run") == self.run and model.num_boosted_rounds() <= rounds:
                found = bytes(model.save_raw("ubj"))
            else:
                xgb.rabit.tracker_print(f"{self.path} is ignored: it belongs to other data, parameters or rounds\n")
        # Sent as numbers, since xgb.rabit.broadcast would unpickle data from another process. The other ranks contribute zeros.
        size = int(xgb.rabit.allreduce(np.array([len(found)], np.int64), xgb.rabit.Op.MAX)[0])
        whole = np.zeros(size, np.uint8)
        whole[:len(found)] = np.frombuffer(found, np.uint8)
        found = xgb.rabit.allreduce(whole, xgb.rabit.Op.MAX).tobytes() if size else b""
        return xgb.Booster(model_file=bytearray(found)) if found else None

    def after_iteration(self, model: xgb.Booster, epoch: int, evals_log: dict) -> bool:
        done = model.num_boosted_rounds()
        if self.every > 0 and done % self.every == 0 and xgb.rabit.get_rank() == 0:
            model.set_attr(run=self.run)
            try:
                save_whole(model, str(self.path))
            except OSError as error:  # training continues without the saved model
                xgb.rabit.tracker_print(f"{error}; {self.path} is unchanged\n")
            model.set_attr(run=None)
        return False

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()


def main() -> None:
    arguments = parse_arguments()
    params = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 3, "nthread": 1}
    params.update(pair.split("=", 1) for pair in arguments.param)

    xgb.rabit.init()  # reads DMLC_TRACKER_URI and the other DMLC_* variables
    if xgb.rabit.get_rank() == 0:
        require_writable(arguments.model)
    dtrain = load_share(arguments.data)
    progress = Progress(arguments, params)
    begun = progress.load(arguments.rounds)
    done = begun.num_boosted_rounds() if begun else 0
    if done > 0 and xgb.rabit.get_rank() == 0:
        xgb.rabit.tracker_print(f"resuming from {progress.path} after {done} rounds\n")
    # The evaluation covers the rows of all workers and is printed once.
    bst = xgb.train(params, dtrain, arguments.rounds - done, evals=[(dtrain, "train")], xgb_model=begun,
                    callbacks=[progress])
    if xgb.rabit.get_rank() == 0:
        bst.set_attr(run=None)  # a model resumed at its last round still has this attribute
        save_whole(bst, arguments.model)
        progress.remove()
        xgb.rabit.tracker_print(f"model of {arguments.rounds} rounds saved in {arguments.model}\n")
    xgb.rabit.finalize()


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning, message=".*rabit.*")
    main()

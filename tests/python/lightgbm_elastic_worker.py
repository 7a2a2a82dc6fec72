"""A worker of lightgbm_elastic_test.py.

    lightgbm_elastic_worker.py train NAME ...   runs these trainings in one communicator, and writes result-NAME-WORKER.json for each
    lightgbm_elastic_worker.py make             writes the data files
    lightgbm_elastic_worker.py refuses          prints the errors of calls refused outside of a job, and the results of pure functions
    lightgbm_elastic_worker.py other            prints the errors of calls that an elastic job refuses

The environment variable PLAN is a JSON list of [way, worker, place, round, signal]. In the training named `way`, the worker sends itself
the signal at that place of that round, once; if the signal is 0, it breaks its connections to other workers instead. The places are
"before" and "after" a round, "last" (after all other callbacks of a round), "objective" and "metric" (`round` is then the number of the
call), and "reading" (`round` is 0)."""
import hashlib
import json
import os
import pathlib
import socket
import sys
import time

TASK = os.environ.get("DMLC_TASK_ID", "alone")
# If LATE names a file, a process that replaces a lost one waits for it.
while int(os.environ.get("DMLC_NUM_ATTEMPT", "0")) > 0 and not pathlib.Path(os.environ.get("LATE", ".")).exists():
    time.sleep(.05)
pathlib.Path(f"pid-{TASK}").write_text(str(os.getpid()), encoding="ascii")

# pylint: disable=wrong-import-position
import lightgbm  # noqa: E402
import numpy as np  # noqa: E402

import warren.lightgbm  # noqa: E402
from warren import rabit  # noqa: E402
from warren._elastic import rows as elastic_rows  # noqa: E402
from warren._lightgbm.elastic import parameters  # noqa: E402
from warren._rounds import sinks, training  # noqa: E402
from warren.lightgbm import Data  # noqa: E402

ROUNDS = 12
PAUSE_S = float(os.environ.get("PAUSE_S", "0"))
# Without force_col_wise, LightGBM times row-wise and column-wise histograms and picks the faster one, so the order of additions may vary.
BASE = {"num_leaves": 7, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True}
LABELS = ["two", "three", "number"]
COLUMNS = [*LABELS, "w", "q", "m"]


def make():
    """Writes train.parquet, valid.parquet and sparse.parquet."""
    import pandas  # pylint: disable=import-outside-toplevel

    rng, count = np.random.default_rng(1), 1500
    rows = pandas.DataFrame(rng.standard_normal((count, 4)).astype("float32"), columns=list("abcd"))
    rows["k"] = pandas.Categorical(rng.choice(list("uvwxyz"), count))
    rows["w"], rows["q"] = rng.integers(1, 4, count).astype("float32"), np.repeat(np.arange(count // 10), 10)
    rows["m"] = rows.a / 2
    rows["number"] = (rows.a + rows.b * rows.c + 2 * (rows.k == "u") + rng.standard_normal(count) / 3).astype("float32")
    rows["two"], rows["three"] = (rows.number > 0).astype("float32"), np.digitize(rows.number, [-1, 1]).astype("float32")
    rows[:1200].to_parquet("train.parquet", row_group_size=100)
    rows[1200:].to_parquet("valid.parquet", row_group_size=50)
    sparse = pandas.DataFrame(np.where(rng.random((1200, 3)) < .1, rng.standard_normal((1200, 3)), 0).astype("float32"), columns=list("abc"))
    sparse[COLUMNS] = np.float32(0)
    sparse["two"] = (sparse.a + sparse.b > 0).astype("float32")
    sparse.to_parquet("sparse.parquet", row_group_size=100)


def data(label, name="train", *more, **options):
    """Returns the data of a file: its features, `label`, and the columns in `more` and `options`. Leaves out all others in COLUMNS."""
    used = {label, *options.values(), *more}
    return Data(f"{name}.parquet", label=label, exclude=[one for one in COLUMNS if one not in used], progress=False, **options)


def disturb(way, place, number):
    """Carries out PLAN's entry for this place and round, if there is one, unless it has been carried out before."""
    for planned_way, worker, planned_place, planned_number, signal in json.loads(os.environ.get("PLAN", "[]")):
        mark = pathlib.Path(f"done-{way}-{place}-{number}-{TASK}")
        if [way, TASK, place, number] == [planned_way, str(worker), planned_place, planned_number] and not mark.exists():
            mark.touch()
            if signal:
                os.kill(os.getpid(), signal)
            else:
                break_connections()


def break_connections():
    """Shuts down this process's TCP connections, except those to the tracker."""
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as one:
                if one.family in (socket.AF_INET, socket.AF_INET6) and one.getpeername()[1] != int(os.environ["DMLC_TRACKER_PORT"]):
                    one.shutdown(socket.SHUT_RDWR)
        except OSError:  # not a socket, or not connected
            pass


class Reported(sinks.Sink):
    """Writes the number and the metrics' names of each reported round to a file."""

    def __init__(self, way):
        self.file = open(f"reported-{way}-{TASK}-{os.environ.get('DMLC_NUM_ATTEMPT', '0')}", "w", encoding="ascii")

    def earlier(self, number, metrics):
        self.round(number, None, metrics)

    def round(self, number, of, metrics):
        print(number, *sorted(metrics), file=self.file, flush=True)


class Rounds(warren.lightgbm.ElasticCallback):
    """Records the rounds. Replacements for lost workers must receive its state."""

    def __init__(self, way):
        self.way, self.seen, self.order = way, [], 15  # runs before record_evaluation, whose order is 20

    def __call__(self, env):
        self.seen.append(env.iteration)
        time.sleep(PAUSE_S)
        disturb(self.way, "after", env.iteration)

    def save(self):
        return list(self.seen)

    def restore(self, state):
        self.seen = list(state)


def at(way, place):
    """Returns a callback that calls `disturb` before or after each round, after all other callbacks."""
    def callback(env):
        disturb(way, place, env.iteration)
    callback.order, callback.before_iteration = 90, place == "before"
    return callback


def squared(way):
    """The squared error as an objective. A worker may be lost in it while others are already communicating to build the trees."""
    number = [0]

    def objective(predictions, rows):
        disturb(way, "objective", number[0])
        number[0] += 1
        return predictions - rows.get_label(), np.ones_like(predictions)
    return objective


def measured(way):
    """A metric that never improves."""
    number = [0]

    def metric(predictions, rows):
        disturb(way, "metric", number[0])
        number[0] += 1
        return "one", float(len(predictions) == rows.num_data()), False
    return metric


def uneven(predictions, rows):
    """A metric that never improves on the training rows, recognized by their number. The training rows must not cause early stopping."""
    return "error", 1. if rows.num_data() > 300 else float(np.mean((predictions - rows.get_label()) ** 2)), False


def once(env):
    """Sets a parameter in one round. It stays set in later rounds."""
    if env.iteration == 2:
        env.model.reset_parameter({"lambda_l2": 50.})


def ways():
    """Returns the training runs by name. For each, the arguments of warren.lightgbm.train: parameters, rows, validation sets and others."""
    two, number = data("two", "train", weight="w"), data("number")
    bagging = {"objective": "binary", "bagging_fraction": .5, "bagging_freq": 1, "feature_fraction": .6}
    decay = lightgbm.reset_parameter(learning_rate=lambda number: .3 * .9 ** number)
    return {
        "binary": ({"objective": "binary"}, two, [two, data("two", "valid")], {}),
        "queries": ({"objective": "lambdarank"}, data("three", qid="q"), [data("three", "valid", qid="q")], {}),
        "classes": ({"objective": "multiclass", "num_class": 3}, data("three"), [data("three", "valid", whole=True)],
                    {"valid_names": ["all"], "feval": lambda _, rows: ("rows", float(rows.num_data()), True)}),
        "margin": ({"objective": "regression"}, data("number", init_score="m"), [data("number", "valid", init_score="m")], {}),
        "poisson": ({"objective": "poisson"}, data("three"), [], {}),
        "functions": ({"objective": squared("functions"), "metric": "l2"}, number, [number], {"feval": measured("functions")}),
        "decay": ({"objective": "regression_l1"}, number, [data("number", "valid")], {"callbacks": [decay, once]}),
        "stops": ({"objective": "binary", "early_stopping_round": 3, "learning_rate": .4, "num_leaves": 31}, two, [data("two", "valid"), two],
                  {"valid_names": ["late", "early"], "feval": uneven}),
        "goes on": ({"objective": "binary"}, data("two", init_score="m"), [data("two", "valid")], {"init_model": "binary"}),
        "draws": (bagging, data("two"), [data("two", "valid")], {}),
        "goss": ({"objective": "binary", "data_sample_strategy": "goss"}, data("two"), [data("two", "valid")], {}),
        "sparse": ({"objective": "binary"}, data("two", "sparse"), [], {}),
        "not bundled": ({"objective": "binary", "bundle": False}, data("two", "sparse"), [], {}),
        "voting": ({"objective": "binary", "tree_learner": "voting"}, data("two"), [data("two", "valid")], {}),
    }


def trees(model):
    """Returns the digest of each of the model's trees, or an empty list for the voting tree learner."""
    text = model.model_to_string().split("\nparameters:")[0]
    if "tree_learner: voting" in model.model_to_string():
        return []  # workers' models differ in a value of the root that predictions do not use
    return [hashlib.sha256(one.encode()).hexdigest()[:8] for one in text.split("\nTree=")[1:]]


def train(names):
    """Runs the named training runs and writes their results."""
    reading = elastic_rows.Files.tables
    models = {}
    with warren.lightgbm.communicator():
        for name in names:
            params, rows, valid_sets, options = ways()[name]
            elastic_rows.Files.tables = lambda *arguments, name=name: (disturb(name, "reading", 0), reading(*arguments))[1]
            training.SINKS = (lambda _, name=name: Reported(name),)
            seen, found = Rounds(name), {}
            callbacks = [*options.pop("callbacks", ()), seen, at(name, "before"), at(name, "last")]
            if valid_sets:
                callbacks.append(lightgbm.record_evaluation(found))
            if "init_model" in options:
                options["init_model"] = models[options["init_model"]]
            rounds = 60 if name == "stops" else ROUNDS
            model = warren.lightgbm.train({**BASE, **params}, rows, rounds, valid_sets or None, elastic=True, callbacks=callbacks, **options)
            models[name] = model
            raw = model.predict(np.arange(50, dtype="float32").reshape(10, 5)[:, :model.num_feature()] / 10 - 2, raw_score=True)
            lines = model.model_to_string().splitlines()
            write(f"result-{name}-{TASK}.json", json.dumps([warren.lightgbm.get_world_size(), {
                "trees": trees(model), "rounds": seen.seen, "evaluations": found, "best": [model.best_iteration, model.best_score],
                "raw": raw.ravel().tolist(), "rates": [line for line in lines if line.startswith("shrinkage=")],
                "bins": [line for line in lines if line.startswith("feature_infos=")], "categories": model.warren_categories}]))


def write(name, text):
    """Writes a file atomically."""
    path = pathlib.Path(name)
    path.with_suffix(".new").write_text(text, encoding="utf-8")
    path.with_suffix(".new").rename(path)


def refused(work, *arguments, **named):
    """Makes a call and prints its error, or that it was not refused."""
    try:
        work(*arguments, **named)
    except (ValueError, TypeError, RuntimeError) as error:
        print(type(error).__name__, str(error).replace("\n", " "), flush=True)
    else:
        print("was not refused", flush=True)


def refuses():
    """Prints the errors of calls that are refused outside of a job, and the results of pure functions."""
    rows = data("two")
    for params in ({"boosting": "dart"}, {"boosting_type": "rf"}, {"linear_tree": True}, {"cegb_penalty_feature_lazy": [1.0]},
                   {"cegb_penalty_feature_coupled": "1,2"}, {"machines": "a:1,b:2"}, {"num_iterations": 0}):
        refused(warren.lightgbm.train, params, rows, elastic=True)
    refused(warren.lightgbm.train, {}, lightgbm.Dataset(np.ones((9, 2)), np.ones(9)), elastic=True)
    refused(warren.lightgbm.train, {}, rows, valid_sets=[lightgbm.Dataset(np.ones((9, 2)), np.ones(9))], elastic=True)
    refused(warren.lightgbm.train, {}, rows, elastic=True, keep_training_booster=True)
    refused(warren.lightgbm.train, {}, rows, elastic=True, early_stopping_rounds=3)
    refused(warren.lightgbm.train, {}, data("two", whole=True), elastic=True)
    refused(warren.lightgbm.train, {}, Data(np.ones((9, 2))), elastic=True)
    refused(warren.lightgbm.train, {}, Data("train.parquet", label="two", nothing=1), elastic=True)

    effective = parameters.effective({"application": "binary", "num_trees": 7, "n_iter_no_change": 2, "num_machines": 3, "tree": "voting"}, 5)
    print("effective", dict(sorted(effective.params.items())), effective.rounds, effective.tree_learner, dict(sorted(effective.stopping.items())))
    drawn = {"sub_row": .5, "subsample_freq": 1, "sub_feature": "0.5", "extra_tree": "true", "boosting": "goss", "objective": "rank_xendcg"}
    print("draws", parameters.draws(drawn), parameters.draws({"bagging_fraction": .5, "feature_fraction": 1.0, "extra_trees": "false"}))
    print("seeds", parameters.with_seeds_of(0, drawn) == drawn, parameters.with_seeds_of(9, {"seed": 4}) == {"seed": 4},
          {name: value for name, value in parameters.with_seeds_of(2, {**drawn, "random_state": 3, "bagging_fraction_seed": 5}).items() if "s" in name
           and name.endswith(("seed", "state"))})
    print("differs", parameters.difference(3, {"boosting": "goss", "eta": .05}, True, 2, 2, False))

    options = {**BASE, "objective": "binary"}
    ours = warren.lightgbm.train(options, rows, 5, [rows], elastic=True, valid_names=["training"])
    plain = lightgbm.train(options, warren.lightgbm.load_dataset("train.parquet", label="two", exclude=[one for one in COLUMNS if one != "two"]), 5)
    print("as usual", trees(ours) == trees(plain), ours.warren_categories == {"k": list("uvwxyz")})


def other():
    """Forks a process that leaves the block, and prints the errors of calls that an elastic job refuses. Then trains twice."""
    refused(rabit.init)
    rows = data("two", check=True)
    with warren.lightgbm.communicator():
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        refused(warren.lightgbm.load_dataset, "train.parquet", label="two")
        refused(lightgbm.train, {}, lightgbm.Dataset(np.ones((9, 2)), np.ones(9)))
        refused(lightgbm.LGBMRegressor(n_estimators=2).fit, np.ones((9, 2)), np.ones(9))
        refused(warren.lightgbm.train, {}, rows, 2)
        refused(lightgbm.cv, {}, lightgbm.Dataset(np.ones((9, 2)), np.ones(9)), nfold=2, stratified=False)
        with warren.lightgbm.communicator() if TASK == "none" else open(os.devnull, encoding="ascii"):
            pass
        model = warren.lightgbm.train({"objective": "binary", "verbose": -1}, rows, 2, elastic=True)
    with warren.lightgbm.communicator():
        again = warren.lightgbm.train({"objective": "binary", "verbose": -1}, rows, 2, elastic=True, init_model=model)
    print("trained again", model.num_trees(), again.num_trees(), flush=True)


if __name__ == "__main__":
    {"train": lambda: train(sys.argv[2:]), "make": make, "refuses": refuses, "other": other}[sys.argv[1]]()

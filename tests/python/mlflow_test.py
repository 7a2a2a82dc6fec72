"""MLflow's autologging in jobs, with the real package of the Python that WARREN_MLFLOW_PYTHON names (mlflow-skinny, sqlalchemy, alembic,
XGBoost, LightGBM, scikit-learn, skops, cloudpickle): each training is one run, with parameters, the metrics of all rounds, and one model."""
import contextlib
import importlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from warren._rounds import mlflow_runs
from warren_testing import BIN, at_night

PYTHON = os.environ.get("WARREN_MLFLOW_PYTHON", "")
NUMBER_OF_ROWS = 300
NEW_STORE = "import mlflow; mlflow.MlflowClient().search_experiments()"

#: Prints the runs of a store as JSON: for each, ID, status, parameters, name, the steps and values of its metrics, and the number of models.
RUNS = """
import json, mlflow
client = mlflow.MlflowClient()
print(json.dumps([
    {"id": run.info.run_id, "status": run.info.status, "params": run.data.params, "name": run.info.run_name,
     "metrics": {name: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, name)] for name in run.data.metrics},
     "models": len(run.outputs.model_outputs) if run.outputs else 0}
    for experiment in client.search_experiments() for run in client.search_runs([experiment.experiment_id])]))
"""

ROWS = f"""
import os, sys
import numpy as np
X = np.random.default_rng(0).normal(size=({NUMBER_OF_ROWS}, 4))
y = (X[:, 0] > 0).astype(int)
params = {{"objective": "binary:logistic", "max_depth": 2}}
"""

TWO_TRAININGS = ROWS + """
import mlflow, xgboost, warren.xgboost
if sys.argv[1] == "before":
    mlflow.xgboost.autolog()
with warren.xgboost.communicator():
    rank = warren.xgboost.get_rank()
    if sys.argv[1] == "rank 0" and rank == 0:
        mlflow.xgboost.autolog()
    matrix = xgboost.DMatrix(X[rank::2], y[rank::2])
    xgboost.train(params, matrix, 3, evals=[(matrix, "train")], early_stopping_rounds=9)
    data = warren.xgboost.Data(X[rank::2], label=y[rank::2])
    warren.xgboost.train(params, data, 2, evals=[(data, "same")], reproducible=True)
    xgboost.XGBClassifier(n_estimators=1).fit(X[rank::2], y[rank::2], eval_set=[(X[rank::2], y[rank::2])])
"""

RESTARTED = ROWS + """
import mlflow.xgboost, xgboost, warren.xgboost
mlflow.xgboost.autolog()
class Fails(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch == 2 and os.environ["DMLC_NUM_ATTEMPT"] == "0" and warren.xgboost.get_rank() == 0:
            raise RuntimeError("as planned")
with warren.xgboost.communicator():
    rank = warren.xgboost.get_rank()
    matrix = xgboost.DMatrix(X[rank::2], y[rank::2])
    warren.xgboost.train_with_checkpoints(params, matrix, 5, "model.ubj", evals=[(matrix, "train")], callbacks=[Fails()])
"""

ELASTIC = """
import os, mlflow.xgboost, warren.xgboost
mlflow.xgboost.autolog()
class Dies(warren.xgboost.ElasticCallback):
    def save(self):
        return 0
    def restore(self, state):
        pass
    def after_iteration(self, model, epoch, evals_log):
        if epoch == 2 and warren.xgboost.get_rank() == 0 and not os.path.exists("died"):
            open("died", "w").close()
            os.kill(os.getpid(), 9)
data = warren.xgboost.Data("train.svm")
warren.xgboost.train({"objective": "binary:logistic"}, data, 5, evals=[(data, "train")], elastic=True, callbacks=[Dies()])
"""

LIGHTGBM = ROWS + """
import mlflow.lightgbm, lightgbm, warren.lightgbm
mlflow.lightgbm.autolog()
with warren.lightgbm.communicator():
    rank = warren.lightgbm.get_rank()
    params = {"objective": "binary", "metric": "auc", "verbose": -1, **warren.lightgbm.parameters()}
    rows = lightgbm.Dataset(X[rank::2], y[rank::2], params=params)
    lightgbm.train(params, rows, 3, valid_sets=[rows], valid_names=["train"])
"""

DRIVER = ROWS + """
import mlflow.xgboost, warren
def train(rounds):
    import xgboost, warren.xgboost
    with warren.xgboost.communicator():
        rank = warren.xgboost.get_rank()
        matrix = xgboost.DMatrix(X[rank::2], y[rank::2])
        xgboost.train(params, matrix, rounds, evals=[(matrix, "train")])
mlflow.xgboost.autolog()
with mlflow.start_run(run_name="mine") as run:
    warren.run(train, 3, num_workers=2, port=0)
    print("after the job", mlflow.get_run(run.info.run_id).info.status)
if sys.argv[1:] == ["start"]:
    with mlflow.start_run(run_name="started"):
        job = warren.start(train, 2, num_workers=2, port=0)
    job.result()
"""

OWN_RUNS = """
import mlflow.xgboost, os, warren
def function():
    if os.environ["DMLC_TASK_ID"] == "0":
        with mlflow.start_run(run_name="inner", nested=True):
            mlflow.log_metric("m", 1)
mlflow.xgboost.autolog()
with mlflow.start_run(run_name="outer") as run:
    warren.run(function, num_workers=2, port=0)
    print("after the job", mlflow.get_run(run.info.run_id).info.status)
"""

REFUSED = ROWS + """
import mlflow.xgboost, xgboost, warren.xgboost
mlflow.xgboost.autolog()
with warren.xgboost.communicator():
    rank = warren.xgboost.get_rank()
    matrix = xgboost.DMatrix(X[rank::2], y[rank::2])
    xgboost.train(params, matrix, 2, evals=[(matrix, "./bad"), (matrix, "good")])
"""

ESTIMATORS = ROWS + """
import mlflow.lightgbm, mlflow.xgboost, warren
mlflow.xgboost.autolog()
mlflow.lightgbm.autolog(log_models=False)
here = {"num_workers": 2, "job_options": {"port": 0}}
warren.xgboost.XGBClassifier(n_estimators=3, **here).fit(X, y, eval_set=[(X, y)], verbose=False)
with mlflow.start_run():
    model = warren.lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, **here).fit(X, y, eval_X=X, eval_y=y)
    mlflow.lightgbm.log_model(model.booster_, name="model")
"""


class WithoutMLflow(unittest.TestCase):
    def test_names_of_metrics_are_those_of_autologging_or_allowed(self):
        self.assertEqual(mlflow_runs.metric_name("valid-ndcg@3"), "valid-ndcg_at_3")
        self.assertEqual(mlflow_runs.metric_name("my data (2)/größe-auc.1"), "my data _2_/größe-auc.1")
        self.assertEqual(mlflow_runs.metric_name("训练:1-auc"), "训练:1-auc")

    def test_a_program_without_mlflow_tells_its_jobs_nothing(self):
        self.assertNotIn("mlflow", sys.modules)
        self.assertIsNone(mlflow_runs.of_driver(True, False, {}))

    def test_only_a_store_on_this_machine_is_reported_to_programs_whose_jobs_run_elsewhere(self):
        logging = types.SimpleNamespace(autologging_is_disabled=lambda _: False, get_autologging_config=lambda *_: None)
        for place, is_here in (("databricks", False), ("databricks://team", False), ("https://host", False), ("file:///runs", True),
                               ("sqlite:///runs.db", True), ("/runs", True)):
            stand_in = types.SimpleNamespace(active_run=lambda: None, get_tracking_uri=lambda place=place: place)
            with mock.patch.dict(sys.modules, {"mlflow": stand_in, mlflow_runs._AUTOLOGGING: logging}), \
                    contextlib.redirect_stderr(io.StringIO()) as written:
                self.assertEqual(mlflow_runs.of_driver(False, False, {})["variables"], {"MLFLOW_TRACKING_URI": place})
            self.assertEqual("is a place on this machine" in written.getvalue(), is_here, place)

    def test_a_function_is_called_once_its_module_has_been_imported(self):
        seen = []
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "imported_later.py").write_text("value = 7\n", encoding="utf-8")
            finder = mlflow_runs._AfterImport("imported_later", lambda: seen.append(sys.modules["imported_later"].value))
            sys.meta_path.insert(0, finder)
            sys.path.insert(0, folder)
            try:
                self.assertIsNotNone(importlib.util.find_spec("imported_later"))  # a search is not an import
                self.assertEqual(seen, [])
                importlib.import_module("imported_later")
            finally:
                sys.path.remove(folder)
        self.assertEqual(seen, [7])
        self.assertNotIn(finder, sys.meta_path)


@at_night
@unittest.skipUnless(os.path.exists(PYTHON), "SKIPPED: WARREN_MLFLOW_PYTHON names no Python with MLflow (scripts/nightly makes one)")
class Runs(unittest.TestCase):
    scheme = "sqlite:///"

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.empty = pathlib.Path(cls.folder, "empty.db")
        cls.python(NEW_STORE, cls.empty)

    @classmethod
    def environment(cls, store):
        return {**os.environ, "MLFLOW_TRACKING_URI": f"{cls.scheme}{store}", "MLFLOW_ALLOW_FILE_STORE": "true"}

    @classmethod
    def python(cls, program, store):
        # MLflow puts artifacts into the folder that was the working directory when the store was created.
        return subprocess.run([PYTHON, "-c", program], check=True, capture_output=True, text=True, cwd=cls.folder, env=cls.environment(store)).stdout

    def runs(self, program, *arguments, workers="", options=(), uri=""):
        """Runs a program, in a job if `workers` is given. Returns the MLflow runs and the program's output."""
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder, "mlflow.db")
            (shutil.copytree if self.empty.is_dir() else shutil.copy)(self.empty, store)
            pathlib.Path(folder, "program.py").write_text(program, encoding="utf-8")
            pathlib.Path(folder, "train.svm").write_text("".join(f"{row % 2} 0:{row * 7 % 10} 1:{row % 2 + row * 3 % 5}\n"
                                                                 for row in range(NUMBER_OF_ROWS)), encoding="utf-8")
            launcher = [BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", workers, *options] if workers else []
            done = subprocess.run([*launcher, PYTHON, "program.py", *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False, env={**self.environment(store), "WARREN_NATIVE": str(BIN.parent), "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
                                                               **({"MLFLOW_TRACKING_URI": uri} if uri else {})})
            self.assertEqual(done.returncode, 0, done.stdout)
            return json.loads(self.python(RUNS, store)), done.stdout

    @staticmethod
    def steps(values):
        return [step for step, _ in values]

    def check_one(self, found, metric, steps, models=1):
        """Checks that there is exactly one run, that it has finished, and that it has these steps of `metric` and `models` models."""
        self.assertEqual([(one["status"], one["models"]) for one in found], [("FINISHED", models)], found)
        self.assertEqual(sorted({step for step, _ in found[0]["metrics"][metric]}), steps, found)

    def check_three(self, how):
        found, output = self.runs(TWO_TRAININGS, how, workers="2")
        by_metric = {next(name for name in one["metrics"] if "logloss" in name): one for one in found}
        self.assertEqual(len(found), 3, output)
        for name, rounds in (("train-logloss", 3), ("same-logloss", 2), ("validation_0-logloss", 1)):
            one = by_metric[name]
            self.assertEqual((one["status"], one["models"]), ("FINISHED", 1))
            self.assertEqual(self.steps(one["metrics"][name]), list(range(rounds)))
            self.assertEqual(one["params"]["num_boost_round"], str(rounds))
            self.assertEqual(one["params"]["num_workers"], "2")
        self.assertEqual(by_metric["train-logloss"]["params"]["max_depth"], "2")
        self.assertEqual({tuple(one) for one in by_metric["train-logloss"]["metrics"]["best_iteration"]}, {(0, 2.0)})

    def test_each_training_of_a_job_is_one_run(self):
        self.check_three("before")

    def test_autologging_may_be_turned_on_within_the_job_and_on_rank_0_alone(self):
        self.check_three("rank 0")

    def test_a_restarted_job_goes_on_with_its_run(self):
        found, output = self.runs(RESTARTED, workers="2", options=["--max-restarts", "1"])
        self.assertIn("going on from round", output)
        self.check_one(found, "train-logloss", [0, 1, 2, 3, 4])

    def test_an_elastic_training_whose_rank_0_is_lost_goes_on_with_its_run(self):
        found, output = self.runs(ELASTIC, workers="1:2")
        self.assertIn("generation 2", output)
        self.check_one(found, "train-logloss", [0, 1, 2, 3, 4])
        self.assertEqual({step: value for step, value in found[0]["metrics"]["train-logloss"]},
                         {step: value for step, value in reversed(found[0]["metrics"]["train-logloss"])})

    def test_lightgbm_in_a_job(self):
        found, _ = self.runs(LIGHTGBM, workers="2")
        self.check_one(found, "train-auc", [0, 1, 2])

    def test_a_function_that_is_run_logs_to_the_run_of_its_caller(self):
        found, output = self.runs(DRIVER)
        self.check_one(found, "train-logloss", [0, 1, 2])
        self.assertEqual((found[0]["name"], found[0]["params"]["num_boost_round"]), ("mine", "3"))
        self.assertIn("after the job RUNNING", output)

    def test_runs_that_a_function_makes_by_itself_are_its_own(self):
        found, output = self.runs(OWN_RUNS)
        self.assertEqual(sorted((one["name"], one["status"]) for one in found), [("inner", "FINISHED"), ("outer", "FINISHED")], output)
        self.assertIn("after the job RUNNING", output)

    def test_a_metric_that_mlflow_refuses_does_not_take_the_others_with_it(self):
        found, output = self.runs(REFUSED, workers="2")
        self.assertEqual(output.count("does not get"), 1, output)
        self.check_one(found, "good-logloss", [0, 1])

    def test_a_store_of_this_machine_is_named_to_those_who_start_jobs_elsewhere(self):
        program = ("import mlflow.xgboost; from warren._rounds import mlflow_runs; mlflow.xgboost.autolog(); "
                   "told = mlflow_runs.of_driver(False, False, {'MLFLOW_TRACKING_URI': 'http://other'}); print(told['variables'])")
        found, output = self.runs(program)
        self.assertEqual(found, [])
        self.assertIn(self.scheme, output)
        self.assertIn("is a place on this machine", output)
        self.assertTrue(output.endswith("{}\n"), output)  # no variable for the job, so its MLFLOW_TRACKING_URI stays

    def test_a_run_that_ends_before_its_job_stays_ended(self):
        found, _ = self.runs(DRIVER, "start")
        started, = (one for one in found if one["name"] == "started")
        self.check_one([started], "train-logloss", [0, 1])

    def test_estimators_log_their_rounds(self):
        found, _ = self.runs(ESTIMATORS)
        for one in found:
            name = next(name for name in one["metrics"] if name.endswith("logloss"))
            self.check_one([one], name, [0, 1, 2])
            self.assertIn("num_workers", one["params"])
        self.assertEqual(len(found), 2)

    def test_a_tracking_server_that_is_gone_is_one_line(self):
        found, output = self.runs(LIGHTGBM, workers="2", uri="http://127.0.0.1:9")
        self.assertEqual(found, [])
        self.assertEqual(output.count("MLflow does not log this training, which continues"), 1, output)


class RunsInFiles(Runs):
    """The same tests with MLflow's file store, which MLflow 3 supports only if it is enabled."""

    scheme = "file://"

    @staticmethod
    def steps(values):
        # With a model, MLflow logs the latest value again without a step, and this store keeps it as a second value of step 0.
        return list(dict.fromkeys(step for step, _ in values))


if __name__ == "__main__":
    unittest.main()

"""The progress of a Kubeflow TrainJob: rank 0 of a job reports it to a stand-in for the controller, over HTTPS."""
import contextlib
import datetime
import io
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from kubeflow_stand_in import Controller
from warren._rounds import kubeflow, sinks
from warren_testing import BIN, nightly, wait_for

ARROW_PYTHON = os.environ.get("WARREN_ARROW_PYTHON", "")
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)

OWN_LOOP = """
import os, warren, warren.rabit as rabit
with rabit.context():
    for number in range(1, 4):
        rabit.allreduce(__import__("numpy").ones(1), rabit.SUM)
        warren.progress(number, 3, loss=1 / number, rank=rabit.get_rank())
"""

#: Code for a program: reports from any rank but 0 then fail with a message.
ONLY_RANK_0 = """
    if rank != 0:
        os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"] = "no file"
"""

ROWS = """
import os
import numpy as np
X = np.random.default_rng(0).normal(size=(200, 3))
y = (X[:, 0] > 0).astype(int)
"""

XGBOOST_IN_A_JOB = ROWS + """
import xgboost, warren.xgboost
with warren.xgboost.communicator():
    rank = warren.xgboost.get_rank()
""" + ONLY_RANK_0 + """
    matrix = xgboost.DMatrix(X[rank::2], y[rank::2])
    xgboost.train({"objective": "binary:logistic"}, matrix, 3, evals=[(matrix, "train")])
"""

XGBOOST_ALONE = ROWS + """
import warren.xgboost
data = warren.xgboost.Data(X, label=y)
warren.xgboost.train({"objective": "binary:logistic"}, data, 3, evals=[(data, "train")])
"""

XGBOOST_WITH_THE_CALLBACK = ROWS + """
import xgboost, warren.xgboost
matrix = xgboost.DMatrix(X, y)
xgboost.train({"objective": "binary:logistic"}, matrix, 3, evals=[(matrix, "train")], callbacks=[warren.xgboost.ReportRounds(3)])
"""

LIGHTGBM_IN_A_JOB = ROWS + """
import lightgbm, warren.lightgbm
with warren.lightgbm.communicator():
    rank = warren.lightgbm.get_rank()
""" + ONLY_RANK_0 + """
    params = {"objective": "binary", "metric": "binary_logloss", "verbose": -1, **warren.lightgbm.parameters()}
    rows = lightgbm.Dataset(X[rank::2], y[rank::2], params=params)
    lightgbm.train(params, rows, 3, valid_sets=[rows], valid_names=["train"])
"""

LIGHTGBM_WITH_THE_CALLBACK = ROWS + """
import lightgbm, warren.lightgbm
rows = lightgbm.Dataset(X, y)
lightgbm.train({"objective": "binary", "metric": "binary_logloss", "verbose": -1}, rows, 3, valid_sets=[rows], valid_names=["train"],
               callbacks=[warren.lightgbm.report_rounds()])
"""

EARLY_STOP = ROWS + """
import warren.xgboost
data = warren.xgboost.Data(X, label=y)
warren.xgboost.train({"objective": "binary:logistic", "eta": 1.0}, data, 1000, evals=[(warren.xgboost.Data(X[:50], label=1 - y[:50]), "valid")],
                     early_stopping_rounds=1)
"""

ESTIMATOR = ROWS + """
import warren
warren.xgboost.XGBClassifier(n_estimators=3, num_workers=2, job_options={"port": 0}).fit(X, y, eval_set=[(X, y)], verbose=False)
"""


def metrics_of(status):
    return {one["name"]: one["value"] for one in status["metrics"]}


class Status(unittest.TestCase):
    def test_has_percentage_remaining_time_metrics_and_time(self):
        found = kubeflow.status(25, 100, {"train-auc": 0.5}, 20, 10.0, NOW)["trainerStatus"]
        self.assertEqual(found, {"progressPercentage": 25, "estimatedRemainingSeconds": 38, "lastUpdatedTime": "2026-01-02T03:04:05Z",
                                 "metrics": [{"name": "round", "value": "25"}, {"name": "rounds", "value": "100"},
                                             {"name": "train-auc", "value": "0.5"}]})

    def test_does_not_say_what_is_unknown(self):
        self.assertNotIn("progressPercentage", kubeflow.status(25, None, {}, 20, 10.0, NOW)["trainerStatus"])
        self.assertNotIn("estimatedRemainingSeconds", kubeflow.status(25, 100, {}, 0, 10.0, NOW)["trainerStatus"])
        self.assertEqual(kubeflow.status(1, 1, {}, 0, 0.0, NOW)["trainerStatus"]["estimatedRemainingSeconds"], 0)

    def test_keeps_to_the_limits_of_the_controller(self):
        found = kubeflow.status(101, 100, {f"{'long' * 20}{number}": 1.0 for number in range(300)}, 1, 1e12, NOW)["trainerStatus"]
        self.assertEqual(found["progressPercentage"], 100)
        self.assertEqual(found["estimatedRemainingSeconds"], 0)
        self.assertEqual(len(found["metrics"]), 256)
        self.assertTrue(all(1 <= len(one["name"]) <= 64 for one in found["metrics"]))
        self.assertEqual(kubeflow.status(1, 100, {}, 1, 1e12, NOW)["trainerStatus"]["estimatedRemainingSeconds"], 2**31 - 1)


class Poster(unittest.TestCase):
    def test_sends_few_of_many_reports_and_the_last_one_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            controller = Controller(folder)
            self.addCleanup(controller.close)
            poster = kubeflow.Poster(*controller.environment.values())
            for number in range(1, 201):
                poster.report(number, 200, {})
                time.sleep(0.01)
            wait_for(lambda: controller.statuses and controller.statuses[-1]["progressPercentage"] == 100, what="the last report")
        self.assertLess(len(controller.statuses), 20)
        self.assertNotIn("estimatedRemainingSeconds", controller.statuses[0])  # one report is not enough to estimate the time per round


class TrainJob(unittest.TestCase):
    def run_program(self, program, workers=0, python=sys.executable, refuses=False, change=lambda environment: environment):
        """Runs a program, in a job if `workers` is not 0. Returns the controller and the output."""
        if not python:
            self.skipTest("SKIPPED: WARREN_ARROW_PYTHON names no Python with XGBoost and LightGBM (tests/python/arrow_environment.sh)")
        with tempfile.TemporaryDirectory() as folder:
            controller = Controller(folder, refuses)
            self.addCleanup(controller.close)
            launcher = [str(BIN / "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(workers)] if workers else []
            file = pathlib.Path(folder, "program.py")
            file.write_text(program, encoding="utf-8")
            done = subprocess.run([*launcher, python, str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  env=change({**os.environ, "WARREN_NATIVE": str(BIN.parent), **controller.environment}))
        self.assertEqual(done.returncode, 0, done.stdout)
        return controller, done.stdout

    def check_last(self, controller, name):
        last = controller.statuses[-1]
        self.assertEqual((last["progressPercentage"], last["estimatedRemainingSeconds"], metrics_of(last)["round"]), (100, 0, "3"))
        self.assertIn(name, metrics_of(last))
        self.assertEqual(controller.refused, 0)

    def test_rank_0_reports_the_rounds_of_a_loop(self):
        controller, _ = self.run_program(OWN_LOOP, workers=2)
        self.check_last(controller, "loss")
        self.assertEqual({metrics_of(one)["rank"] for one in controller.statuses}, {"0"})

    def test_a_refused_report_is_one_line_and_the_job_goes_on(self):
        controller, output = self.run_program(OWN_LOOP, workers=2, refuses=True)
        self.assertEqual(output.count("could not be reported"), 1, output)
        self.assertIn("HTTP 403, Forbidden", output)
        self.assertGreater(controller.refused, 1)

    def test_a_controller_that_is_gone_is_one_line(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            gone = {"KUBEFLOW_TRAINER_SERVER_URL": f"https://localhost:{unused.getsockname()[1]}/"}
            _, output = self.run_program(OWN_LOOP, workers=2, change=lambda environment: {**environment, **gone})
        self.assertEqual(output.count("could not be reported"), 1, output)
        self.assertIn("refused", output)

    def test_a_controller_that_the_certificate_is_not_of_gets_no_token(self):
        controller, output = self.run_program(OWN_LOOP, workers=2, change=lambda environment: {**environment, "KUBEFLOW_TRAINER_SERVER_CA_CERT": ""})
        self.assertIn("certificate verify failed", output)
        self.assertEqual((controller.statuses, controller.refused), ([], 0))

    def test_the_token_goes_nowhere_else(self):
        name = "KUBEFLOW_TRAINER_SERVER_URL"
        for changed, said in ((lambda url: f"{url}/moved", "HTTP 302"), (lambda url: url.replace("https:", "http:"), "not https")):
            with self.subTest(said):
                controller, output = self.run_program(OWN_LOOP, workers=2,
                                                      change=lambda found, changed=changed: {**found, name: changed(found[name])})
                self.assertIn(said, output)
                self.assertEqual((controller.statuses, controller.refused), ([], 0))

    def test_a_token_that_is_not_one_word_is_refused_and_not_printed(self):
        def change(environment):
            file = pathlib.Path(environment["KUBEFLOW_TRAINER_SERVER_TOKEN"])
            file.write_text("Secret\nWord\n", encoding="utf-8")
            return environment

        controller, output = self.run_program(OWN_LOOP, workers=2, change=change)
        self.assertRegex(output, r"the token in .* \(KUBEFLOW_TRAINER_SERVER_TOKEN\) is not a single word of ASCII characters")
        self.assertNotIn("Secret", output)
        self.assertEqual((controller.statuses, controller.refused), ([], 0))

    def test_a_fork_does_not_wait_for_a_report_and_a_server_does_not_command_the_terminal(self):
        program = "import os, time, warren; warren.progress(1, 10); begin = time.time()\nif os.fork() == 0: raise SystemExit\n" \
                  "os.wait(); print('the fork took', time.time() - begin < 2)"
        _, output = self.run_program(program)
        self.assertIn("the fork took True", output)
        with contextlib.redirect_stderr(io.StringIO()) as written:
            sinks.say("\x1b[2Jwords\nof a server")
        self.assertEqual(written.getvalue(), "warren: \\x1b[2Jwords\\x0aof a server\n")

    def test_trainings_report(self):
        for program, workers, name in ((XGBOOST_IN_A_JOB, 2, "train-logloss"), (LIGHTGBM_IN_A_JOB, 2, "train-binary_logloss"),
                                       *nightly((XGBOOST_ALONE, 0, "train-logloss"), (XGBOOST_WITH_THE_CALLBACK, 0, "train-logloss"),
                                                (ESTIMATOR, 0, "validation_0-logloss"),
                                                (LIGHTGBM_WITH_THE_CALLBACK, 0, "train-binary_logloss"))):
            with self.subTest(program):
                controller, output = self.run_program(program, workers, ARROW_PYTHON)
                self.check_last(controller, name)
                self.assertNotIn("could not be reported", output)

    def test_a_training_that_stops_early_is_complete(self):
        controller, _ = self.run_program(EARLY_STOP, python=ARROW_PYTHON)
        last = controller.statuses[-1]
        self.assertEqual((last["progressPercentage"], last["estimatedRemainingSeconds"]), (100, 0))
        self.assertLess(int(metrics_of(last)["round"]), 1000)


if __name__ == "__main__":
    unittest.main()

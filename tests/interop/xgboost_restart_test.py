"""XGBoost 1.7, which cannot recover a worker, under dmlc-submit --max-restarts: workers are killed in random rounds, and the model is
bit-identical to the model of an undisturbed run."""

import os
import random
import re
import signal
import subprocess
import threading
from unittest import mock

from training import PYTHON, WITHOUT_SKLEARN, TrainingCase
from warren_testing import BIN, SOURCE, nightly, package_environment

KILLS = 4
LIMIT_S = 240


def workers_of(parent):
    """The pids of the processes that dmlc-submit started, except its watchdog."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/environ", "rb") as environment:
                if int(stat.read().rpartition(")")[2].split()[1]) == parent and b"DMLC_TASK_ID=" in environment.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


class Restart(TrainingCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make("long.train", "--features", 30, "--density", 1, "--rows", 20000)

    def train_with_kills(self, command, rounds, seed):
        """Kills random workers in random rounds. Returns the output of the job."""
        chance = random.Random(seed)
        deaths = sorted(chance.sample(range(1, rounds), KILLS))
        job = subprocess.Popen(
            [BIN / "dmlc-submit", "--num-workers", "3", "--max-restarts", "50", "--port", "0", *map(str, command)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=package_environment(PYTHONPATH=str(WITHOUT_SKLEARN), PYTHONUNBUFFERED="1"))
        watchdog = threading.Timer(LIMIT_S, job.kill)
        watchdog.start()
        output = []
        try:
            for line in job.stdout:
                output.append(line)
                found = re.search(r"\[(\d+)\]\t\S+:", line)
                workers = workers_of(job.pid) if found and deaths else []
                # Python numbers rounds from the start of the process, xgb-train from the start of the training.
                if workers and int(found.group(1)) >= 1 and sum("restart " in old for old in output) == KILLS - len(deaths):
                    if int(found.group(1)) >= deaths[0] or chance.random() < 0.3:
                        deaths.pop(0)
                        os.kill(chance.choice(workers), signal.SIGKILL)
            code = job.wait()
        finally:
            watchdog.cancel()
            job.stdout.close()
        text = "".join(output)
        self.assertEqual(code, 0, f"seed {seed}: {text}")
        self.assertEqual(len(re.findall(r"starting all 3 processes again", text)), KILLS - len(deaths), text)
        self.assertGreaterEqual(KILLS - len(deaths), 2, f"seed {seed}: too few kills: {text}")
        return text

    def check_xgb_train(self, engine):
        rounds = 30
        command = [BIN / "xgb-train", "objective=binary:logistic", "tree_method=hist", "nthread=1", "eval_train=1",
                   f"num_round={rounds}", "data=long.train?format=libsvm", "save_period=2"]
        self.enterContext(mock.patch.dict(os.environ, {"WARREN_XGBOOST_ENGINE": engine}))
        self.distributed(3, [*command, f"model_dir=calm-{engine}", f"model_out=calm-{engine}.json"])
        text = self.train_with_kills([*command, f"model_dir=hit-{engine}", f"model_out=hit-{engine}.json"], rounds, 17)
        self.assertRegex(text, rf"resuming from hit-{engine}/\d+\.model at round \d+")
        self.assertEqual(self.read(f"hit-{engine}.json"), self.read(f"calm-{engine}.json"))

    def test_each_that_draws_random_numbers_alone_costs_no_bit_of_the_model(self):
        # A model of six rounds is the same if the training ends after some of them and is continued by another job.
        base = [BIN / "xgb-train", "objective=binary:logistic", "nthread=1", "max_depth=3", "save_period=2",
                "data=heart.txt?format=libsvm"]
        for drawing in (*(("tree_method=" + method, drawing) for method in ("hist", "approx")
                          for drawing in ("subsample=0.5", "colsample_bytree=0.5", "colsample_bylevel=0.5",
                                          "colsample_bynode=0.5")),
                        *(("objective=reg:squarederror", "tree_method=" + method, "subsample=0.5", *more)
                          for method, *more in (("approx",), ("auto",), ("hist",), ("approx", "max_bin=8"),
                                                ("approx", "num_parallel_tree=2"))),
                        ("objective=reg:absoluteerror", "tree_method=approx", "subsample=0.5"),
                        ("tree_method=hist", "subsample=0.5", "num_parallel_tree=3"),
                        ("tree_method=hist", "booster=dart", "rate_drop=0.5"),
                        ("booster=gblinear", "updater=coord_descent", "feature_selector=shuffle"),
                        ("booster=gblinear", "updater=coord_descent", "feature_selector=random")):
            folder = "-".join(drawing)
            command = [*base, *drawing]
            self.distributed(3, [*command, "num_round=6", f"model_dir=whole-{folder}", "model_out=whole.json"])
            for begun in (4, *nightly(2)):
                ended = [f"model_dir=ended-{folder}-{begun}", "model_out=ended.json"]
                self.distributed(3, [*command, f"num_round={begun}", *ended])
                text = self.distributed(3, [*command, "num_round=6", *ended])
                self.assertIn(f"at round {begun}\n", text)
                self.assertEqual(self.read("ended.json"), self.read("whole.json"), f"{drawing} from {begun}")

    def test_xgb_train_on_xgboosts_own_communication(self):
        self.check_xgb_train("own")

    def test_xgb_train_on_our_engine(self):
        self.check_xgb_train("warren")

    def test_the_python_example(self):
        rounds = 30
        command = [PYTHON, SOURCE / "examples/xgboost/train.py", "--data", os.path.abspath("long.train"),
                   "--rounds", rounds, "--save-every", 2]
        self.distributed(3, [*command, "--model", "calm.json"])
        text = self.train_with_kills([*command, "--model", "hit.json"], rounds, 5)
        self.assertRegex(text, r"resuming from hit\.unfinished\.json after \d+ rounds")
        self.assertEqual(self.read("hit.json"), self.read("calm.json"))
        self.assertFalse(os.path.exists("hit.unfinished.json"))


if __name__ == "__main__":
    import unittest

    unittest.main()

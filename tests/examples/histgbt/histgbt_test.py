"""The histgbt program: stock XGBoost loads its models, they are as good as those of XGBoost's hist, and the model is the same for any
number of workers, even if one of them dies."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import unittest

import numpy as np
import xgboost

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from programs import BIN, LIMIT_S, SUBMIT, ProgramTest, environment  # noqa: E402
from warren_testing import at_night, wait_for  # noqa: E402

HISTGBT = os.path.join(BIN, "histgbt")
ROUNDS = 60
COMMON = {"eta": 0.1, "max_depth": 6, "lambda": 1, "max_bin": 256, "base_score": 0.5}


class HistgbtTest(ProgramTest):
    def train(self, *arguments, workers=0):
        """Trains; returns standard output and standard error."""
        words = [HISTGBT, *map(str, arguments)]
        if workers:
            words = [SUBMIT, "--cluster", "local", "--num-workers", str(workers), *words]
        done = self.run_program(*words)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode() + done.stderr.decode()

    def started(self, *arguments, workers, stderr=subprocess.STDOUT):
        """Starts a job that replaces workers that die. Returns its process, whose output can be read while it trains."""
        words = [SUBMIT, "--cluster", "local", "--num-workers", str(workers), "--local-num-attempt", "3", HISTGBT, *arguments]
        process = subprocess.Popen(words, cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=stderr, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def last(self, printed, name):
        return float(re.findall(rf"\t{name}:([-0-9.naninf]+)", printed)[-1])


class InXgboost(HistgbtTest):
    """Models of histgbt in XGBoost. Both programs read the data files, whose indices begin at 1, with an empty column 0."""

    # The metric, the data and the parameters of each kind of training.
    TWO_CLASSES = "auc", {"task": "binary", "features": 28}, {"objective": "binary:logistic"}
    SPARSE_ROWS = "auc", {"task": "binary", "features": 60, "density": 0.15}, {"objective": "binary:logistic"}
    NUMBERS = "rmse", {"task": "regression", "features": 20, "density": 0.8}, {"objective": "reg:squarederror"}
    MANY_CLASSES = "merror", {"task": "multiclass", "classes": 4, "features": 15}, {"objective": "multi:softprob", "num_class": 4}

    def check(self, metric, make, parameters, seeds=(2,), limit=0.002):
        """Checks that XGBoost computes the same metric from histgbt's models, and that XGBoost's own models are not better by more than
        `limit` on average over the seeds' data sets. Only the average counts, since the positions of the cuts affect individual
        trees, as a different max_bin does in XGBoost. `make`: options of make_libsvm. Returns the last model and its test data."""
        better = []
        for seed in seeds:
            self.make_data("train.txt", rows=20000, seed=seed, **make)
            self.make_data("test.txt", rows=20000, first_row=20000, seed=seed, **make)
            arguments = [f"{key}={value}" for key, value in {**COMMON, **parameters}.items()]
            printed = self.train("data=train.txt", "eval[test]=test.txt", f"num_round={ROUNDS}", f"eval_metric={metric}",
                                 "model_out=model.json", *arguments)  # fmt: skip
            train, test = (xgboost.DMatrix(self.path(name)) for name in ("train.txt", "test.txt"))
            model = xgboost.Booster(model_file=self.path("model.json"))
            self.assertEqual(model.num_boosted_rounds(), ROUNDS)
            model.set_param({"eval_metric": metric})
            ours = self.last(printed, f"test-{metric}")
            self.assertAlmostEqual(float(model.eval(test).rpartition(":")[2]), ours, delta=2e-4)
            theirs = {}
            xgboost.train({**COMMON, **parameters, "tree_method": "hist", "eval_metric": metric, "verbosity": 0}, train, ROUNDS,
                          evals=[(test, "test")], evals_result=theirs, verbose_eval=False)
            better.append((ours - theirs["test"][metric][-1]) * (1 if metric == "auc" else -1))
        self.assertGreater(sum(better) / len(better), -limit, f"{metric}: ours is better by {better}")
        return model, test

    def test_two_classes(self):
        model, test = self.check(*self.TWO_CLASSES)
        self.assertTrue(np.all((model.predict(test) > 0) & (model.predict(test) < 1)))

    def test_two_classes_with_sparse_rows(self):
        self.check(*self.SPARSE_ROWS)

    def test_numbers(self):
        self.check(*self.NUMBERS)

    def test_many_classes(self):
        self.check(*self.MANY_CLASSES)

    @at_night
    def test_each_kind_on_three_data_sets(self):
        for kind in (self.TWO_CLASSES, self.SPARSE_ROWS, self.NUMBERS, self.MANY_CLASSES):
            with self.subTest(kind):
                self.check(*kind, seeds=(1, 2, 3))

    def test_settings_other_than_the_defaults(self):
        """With weights, a base score, regularization, and missing or infinite values, XGBoost computes the same metrics as histgbt."""
        rows = []
        for i in range(4000):
            values = [f"{k}:{(i * (k + 3)) % (11 * k)}" for k in (1, 2, 3, 5) if (i * 7 + k) % 5]
            values += ["7:inf"] * (i % 3 == 0) + ["8:nan"] * (i % 2)
            rows.append(f"{(i * 5 % 11) / 10}:{i % 4 + 0.5} {' '.join(values)}\n")
        self.write("train.txt", "".join(rows))
        for objective, metric in (("binary:logistic", "logloss"), ("reg:squarederror", "rmse")):
            printed = self.train("data=train.txt", "eval_train=1", f"objective={objective}", f"eval_metric={metric}", "base_score=0.3",
                                 "lambda=0.1", "gamma=0.01", "eta=0.7", "max_depth=9", "min_child_weight=0.5", "max_bin=5",
                                 "num_round=5", "model_out=model.json")  # fmt: skip
            model = xgboost.Booster(model_file=self.path("model.json"))
            model.set_param({"eval_metric": metric})
            theirs = model.eval(self.values_of(rows))
            self.assertAlmostEqual(float(theirs.rpartition(":")[2]), self.last(printed, f"train-{metric}"), delta=1e-5)

    @staticmethod
    def values_of(rows):
        """Returns the rows as a DMatrix. Infinite values, which XGBoost 1.7 refuses, are replaced by the greatest float, as in histgbt."""
        matrix = np.full((len(rows), 9), np.nan, dtype=np.float32)
        for row, line in enumerate(rows):
            for index, value in (pair.split(":") for pair in line.split()[1:]):
                matrix[row, int(index)] = min(float(value), np.finfo(np.float32).max)
        labels, weights = zip(*((float(part) for part in line.split()[0].split(":")) for line in rows))
        return xgboost.DMatrix(matrix, label=labels, weight=weights, missing=np.nan)

    def test_leaves_and_predictions_are_the_same(self):
        self.make_data("train.txt", rows=3000, features=8, density=0.7)
        self.train("data=train.txt", "objective=binary:logistic", "num_round=3", "model_out=model.json")
        model = xgboost.Booster(model_file=self.path("model.json"))
        margins = model.predict(xgboost.DMatrix(self.path("train.txt")), output_margin=True)
        trees = json.loads(self.read("model.json"))["learner"]["gradient_booster"]["model"]["trees"]
        expected = []
        for line in self.read("train.txt").decode().splitlines():
            row = {int(index): np.float32(value) for index, value in (pair.split(":") for pair in line.split()[1:])}
            margin = np.float32(0)
            for tree in trees:
                node = 0
                while tree["left_children"][node] >= 0:
                    value = row.get(tree["split_indices"][node])
                    left = tree["default_left"][node] if value is None else value < np.float32(tree["split_conditions"][node])
                    node = tree["left_children" if left else "right_children"][node]
                margin += np.float32(tree["base_weights"][node])
            expected.append(margin)
        np.testing.assert_allclose(margins, expected, atol=1e-6)


class OneModel(HistgbtTest):
    def setUp(self):
        super().setUp()
        self.make_data("train.txt", rows=6000, features=12, density=0.7)
        self.make_data("test.txt", rows=2000, first_row=6000, features=12, density=0.7)
        self.arguments = ["data=train.txt", "eval[test]=test.txt", "objective=binary:logistic", "eval_metric=auc", "eval_metric=logloss",
                          "num_round=8", "nthread=1"]  # fmt: skip

    def lines(self, printed):
        return re.findall(r"\[\d+\]\ttest-auc:.*", printed)

    def test_is_made_by_any_number_of_workers(self):
        alone = self.train(*self.arguments, "model_out=1.json")
        self.assertEqual(len(self.lines(alone)), 8)
        for workers in (2, 3, 4):
            printed = self.train(*self.arguments, f"model_out={workers}.json", workers=workers)
            self.assertEqual(self.lines(printed), self.lines(alone))
            self.assertEqual(self.read(f"{workers}.json"), self.read("1.json"))

    def test_is_made_by_any_number_of_threads_and_in_any_order(self):
        self.train(*self.arguments, "model_out=1.json")
        self.train(*self.arguments, "nthread=3", "model_out=3.json")
        self.assertEqual(self.read("3.json"), self.read("1.json"))
        self.write("train.txt", b"\n".join(reversed(self.read("train.txt").splitlines())) + b"\n")
        self.train(*self.arguments, "model_out=backwards.json")
        self.assertEqual(self.read("backwards.json"), self.read("1.json"))

    def test_is_made_by_workers_of_which_some_have_no_rows(self):
        self.write("few.txt", b"".join(self.read("train.txt").splitlines(keepends=True)[:3]))
        arguments = ["data=few.txt", "num_round=2", "min_child_weight=0"]
        self.train(*arguments, "model_out=1.json")
        self.train(*arguments, "model_out=6.json", workers=6)
        self.assertEqual(self.read("6.json"), self.read("1.json"))

    def test_is_made_when_a_worker_dies(self):
        self.make_data("train.txt", rows=60000, features=12, density=0.7)
        arguments = [*self.arguments, "num_round=100", "verbosity=2"]
        self.train(*arguments, "model_out=1.json")
        for victim in (0, 2):
            process = self.started(*arguments, f"model_out=killed{victim}.json", workers=3)
            killed = set()
            printed = []
            for line in process.stdout:
                printed.append(line)
                # A worker that dies after printing a line and before the checkpoint prints the line again.
                found = re.search(r"\[(5|30)\]\ttest", line)
                if found and found[1] not in killed:
                    os.kill(self.worker(process.pid, victim), signal.SIGKILL)
                    killed.add(found[1])
            self.assertEqual(process.wait(LIMIT_S), 0, "".join(printed))
            self.assertEqual(len(killed), 2, "".join(printed))
            self.assertEqual("".join(printed).count("starting it again"), 2, "".join(printed))
            self.assertEqual(self.read(f"killed{victim}.json"), self.read("1.json"))

    def test_is_made_when_a_worker_dies_after_the_last_round(self):
        self.train(*self.arguments, "model_out=1.json")
        os.mkfifo(self.path("model.json"))
        process = self.started(*self.arguments, "model_out=model.json", workers=3, stderr=subprocess.PIPE)
        for line in process.stdout:
            if re.search(r"\[7\]\ttest", line):
                break
        # The model file is a FIFO: rank 0 waits in open() for a reader, and the other ranks wait for rank 0.
        first = self.worker(process.pid, 0)
        wait_for(lambda: self.call_of(first) == "openat", what="the model's being written")
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: self.worker(process.pid, 0) not in (None, first), what="another worker 0")
        self.assertEqual(self.read("model.json"), self.read("1.json"))
        self.assertEqual(process.wait(LIMIT_S), 0)

    def test_is_made_of_classes_and_stops_early_when_a_worker_dies(self):
        for name, rows, first in (("train.txt", 20000, 0), ("test.txt", 3000, 20000)):
            self.make_data(name, rows=rows, first_row=first, task="multiclass", classes=3, features=8, noise=2)
        arguments = ["data=train.txt", "eval[test]=test.txt", "objective=multi:softmax", "num_class=3", "num_round=300", "eta=0.1",
                     "early_stopping_rounds=10", "nthread=1"]  # fmt: skip
        self.train(*arguments, "model_out=1.json")
        process = self.started(*arguments, "model_out=2.json", workers=2)
        killed = False
        for line in process.stdout:
            if "[1]\ttest" in line and not killed:
                os.kill(self.worker(process.pid, 1), signal.SIGKILL)
                killed = True
        self.assertEqual(process.wait(LIMIT_S), 0)
        self.assertTrue(killed)
        self.assertEqual(self.read("2.json"), self.read("1.json"))

    def test_is_made_of_many_bins_and_messages(self):
        """1,024 bins do not fit into a byte, and the sketches of 50 features need several allreduces."""
        self.make_data("train.txt", rows=9000, features=50)
        arguments = ["data=train.txt", "num_round=2", "max_bin=1024", "max_depth=3"]
        self.train(*arguments, "model_out=1.json")
        self.train(*arguments, "model_out=2.json", workers=2)
        self.assertEqual(self.read("2.json"), self.read("1.json"))

    def test_weights_and_shares_without_rows_change_no_score(self):
        self.write("few.txt", "1:0.1 1:1\n0:0.2 1:3\n1:0.3 1:2\n")
        arguments = ["data=few.txt", "eval_train=1", "objective=binary:logistic", "eval_metric=auc", "eval_metric=logloss",
                     "num_round=3", "min_child_weight=0"]  # fmt: skip
        alone = re.findall(r"\[\d\]\ttrain.*", self.train(*arguments, "model_out=1.json"))
        self.assertEqual(re.findall(r"\[\d\]\ttrain.*", self.train(*arguments, "model_out=6.json", workers=6)), alone)
        self.assertEqual(self.read("6.json"), self.read("1.json"))

    @staticmethod
    def call_of(pid):
        """Returns "openat" if the process is waiting in that system call (257 on x86-64, 56 on 64-bit Arm), otherwise None."""
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            return {"257": "openat", "56": "openat"}.get(file.read().split()[0])

    @staticmethod
    def worker(submit, task):
        children = subprocess.run(["pgrep", "-P", str(submit), "-x", "histgbt"], capture_output=True, text=True, check=False).stdout
        for pid in children.split():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if f"DMLC_TASK_ID={task}".encode() in file.read().split(b"\0"):
                    return int(pid)
        return None


class Stopping(HistgbtTest):
    def test_the_best_round_is_kept(self):
        self.make_data("train.txt", rows=500, features=20, noise=3)
        self.make_data("test.txt", rows=500, first_row=500, features=20, noise=3)
        arguments = ["data=train.txt", "eval[test]=test.txt", "objective=binary:logistic", "eval_metric=logloss", "num_round=200"]
        printed = self.train(*arguments, "early_stopping_rounds=4", "model_out=model.json")
        scores = [float(score) for score in re.findall(r"test-logloss:([0-9.]+)", printed)]
        best = int(re.search(r"the best round was (\d+)", printed)[1])
        self.assertEqual(best, scores.index(min(scores)))
        self.assertEqual(len(scores), best + 5)
        model = xgboost.Booster(model_file=self.path("model.json"))
        self.assertEqual(model.num_boosted_rounds(), best + 1)
        self.assertEqual(model.attr("best_iteration"), str(best))
        self.train(*arguments, "early_stopping_rounds=4", "model_out=three.json", workers=3)
        self.assertEqual(self.read("three.json"), self.read("model.json"))


class Refusals(HistgbtTest):
    def refused(self, code, *arguments):
        return self.run_badly(code, HISTGBT, *arguments)

    def test_bad_options_and_data_are_named(self):
        self.write("bad.txt", "1 1:2\nx 1:3\n")
        self.write("labels.txt", "1 1:2\n7 1:3\n")
        self.write("twice.txt", "1 1:2\n1 1:3 2:4 1:5\n")
        self.write("empty.txt", "# nothing\n")
        self.assertIn("histgbt --help explains", self.refused(2, "data=bad.txt", "oops=1"))
        self.assertIn("bad.txt:2:1", self.refused(1, "data=bad.txt"))
        self.assertIn("row 2 of this worker's share has the label 7; binary:logistic takes a label between 0 and 1",
                      self.refused(1, "data=labels.txt", "objective=binary:logistic"))
        self.assertIn("twice.txt:2:11: found '1:5', expected each index once in a row", self.refused(1, "data=twice.txt"))
        self.assertIn("holds no rows", self.refused(1, "data=empty.txt"))
        self.assertIn("nonesuch.txt", self.refused(1, "data=nonesuch.txt"))
        self.write("wide.txt", "1 4000000000:1\n")
        self.assertIn("wide.txt: a row has feature index 4000000000", self.refused(1, "data=wide.txt"))
        self.write("table.csv", "1,2\n0,3\n")
        self.assertIn("add label_column=0", self.refused(1, "data=table.csv?format=csv"))

    def test_of_each_rank_what_is_wrong_with_its_rows_is_told(self):
        self.make_data("train.txt", rows=100, features=3)
        self.write("train.txt", self.read("train.txt") + b"7 1:1\n")
        message = self.run_badly(1, SUBMIT, "--cluster", "local", "--num-workers", "2", HISTGBT, "data=train.txt",
                                 "objective=binary:logistic")  # fmt: skip
        self.assertRegex(message, r"histgbt \(rank 1 of 2\): train.txt: row \d+ of this worker's share has the label 7")
        self.assertIn("all 2 workers would read the same rows",
                      self.run_badly(1, SUBMIT, "--cluster", "local", "--num-workers", "2", HISTGBT, "data=train.txt?part=0&n=2"))

    def test_workers_that_find_different_files_all_fail(self):
        for rank in range(2):
            os.mkdir(self.path(str(rank)))
            self.make_data(f"{rank}/train.txt", rows=100 + rank, features=3)
        message = self.run_badly(1, SUBMIT, "--cluster", "local", "--num-workers", "2", "sh", "-c",
                                 f"cd $DMLC_TASK_ID && exec {HISTGBT} data=train.txt")  # fmt: skip
        for rank in range(2):
            self.assertIn(f"histgbt (rank {rank} of 2): the workers have found different files, or files of different sizes", message)

    def test_a_place_that_cannot_be_written_is_known_before_the_first_round(self):
        self.make_data("train.txt", rows=100, features=3)
        done = self.run_program(HISTGBT, "data=train.txt", "eval_train=1", "model_out=no/such/folder")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no/such", done.stderr.decode())
        self.assertNotIn("train-rmse", (done.stdout + done.stderr).decode())

    def test_all_sets_count_columns_alike(self):
        """The second set has no index 0, so by itself it would be read as counting columns from 1."""
        self.write("train.txt", "".join(f"{i % 2} 0:{i % 2} 1:{i % 3}\n" for i in range(200)))
        self.write("test.txt", "".join(f"{i % 3 % 2} 1:{i % 3}\n" for i in range(200)))
        arguments = ["objective=binary:logistic", "eval_metric=error", "num_round=2"]
        zero = self.train("data=train.txt", "eval[test]=test.txt", *arguments)
        found = self.train("data=train.txt?indexing_mode=-1", "eval[test]=test.txt?indexing_mode=-1", *arguments)
        self.assertEqual(self.last(found, "test-error"), self.last(zero, "test-error"))

    def test_a_build_without_cuda_or_a_machine_without_a_gpu_says_so(self):
        self.make_data("train.txt", rows=100, features=3)
        if not os.path.exists("/dev/nvidiactl"):
            self.assertRegex(self.refused(1, "data=train.txt", "device=cuda"), "device=cuda: .* without CUDA|No GPU can be used here")


if __name__ == "__main__":
    unittest.main()

"""Three programs train with XGBoost 1.7 under dmlc-submit: xgb-train, Debian's xgboost program, and a Python script.

Tolerances: tree_method=hist and approx cut each feature at quantiles. If a feature has at most max_bin (256) distinct values, these are
its cuts, for any sharding. Trees then differ between numbers of workers only by the order of float sums, and 1e-4 suffices. With
more distinct values, each worker sketches its shard, and the merged sketch depends on the sharding: the cuts move by up to a bin (1/256
of the rows), and the splits move a little. That case has a separate tolerance."""

import os
import re
import subprocess
import unittest

from training import HEART, PYTHON, TrainingCase
from warren_testing import BIN, SOURCE

WORKER_COUNTS = (1, 2, 3, 4)
SAME = 1e-4
SAME_AFTER_SKETCHING = 0.01


class Training(TrainingCase):
    def evaluations(self, output, rounds):
        """The evaluations of the last round, by name. Checks that each round is printed exactly once."""
        lines = re.findall(r"^(?:\[\d\d:\d\d:\d\d\] )?(?:\[\d+\] )?\[(\d+)\](\t\S+:\S+.*)$", output, re.MULTILINE)
        self.assertEqual([int(number) for number, _ in lines], list(range(rounds)), output)
        return {name: float(value) for name, value in re.findall(r"(\S+):([-+.e\d]+)", lines[-1][1])}

    def assert_same(self, expected, found, tolerance, where):
        self.assertEqual(set(expected), set(found), where)
        for name, value in expected.items():
            self.assertAlmostEqual(found[name], value, delta=tolerance, msg=f"{name}, {where}")

    def assert_any_number_of_workers_agrees(self, command, rounds, tolerance, model):
        expected = self.evaluations(self.run_program(command), rounds)
        self.assertTrue(os.path.exists(model))
        for count in WORKER_COUNTS:
            os.remove(model)
            found = self.evaluations(self.distributed(count, command), rounds)
            self.assert_same(expected, found, tolerance, f"{count} workers of {' '.join(map(str, command))}")
            self.assertTrue(os.path.exists(model), f"{count} workers saved no model")

    def test_xgb_train_reaches_the_single_process_result_with_hist_and_approx(self):
        for method in ("hist", "approx"):
            self.assert_any_number_of_workers_agrees(
                [BIN / "xgb-train", SOURCE / "examples/xgboost/heart.conf", f"tree_method={method}",
                 "objective=binary:logistic", "eval_metric=logloss", "data=heart.txt", "eval[heart]=heart.txt",
                 "model_out=heart.json"],
                10, SAME, "heart.json")

    def test_xgb_train_stays_close_when_quantiles_have_to_be_sketched(self):
        self.assert_any_number_of_workers_agrees(
            [BIN / "xgb-train", "objective=binary:logistic", "eval_metric=logloss", "tree_method=hist", "nthread=1",
             "data=smooth.train?format=libsvm", "eval_train=1", "num_round=10", "model_out=smooth.json"],
            10, SAME_AFTER_SKETCHING, "smooth.json")

    def test_the_xgboost_program_of_debian_reaches_the_single_process_result(self):
        for method in ("hist", "approx"):
            self.assert_any_number_of_workers_agrees(
                ["xgboost", SOURCE / "examples/xgboost/mushroom.conf", f"tree_method={method}",
                 "model_out=mushroom.model"],
                4, SAME, "mushroom.model")

    def test_the_python_script_reaches_the_single_process_result(self):
        for method in ("hist", "approx"):
            self.assert_any_number_of_workers_agrees(
                [PYTHON, SOURCE / "examples/xgboost/train.py", "--data", HEART, "--rounds", 10, "--model",
                 "python.json", "--param", f"tree_method={method}", "--param", "eval_metric=logloss"],
                10, SAME, "python.json")

    def test_a_job_trains_in_memory_even_when_the_data_set_has_a_cache(self):
        # In a job, even with one worker, XGBoost 1.7 cannot train on several pages. Data used only for predictions may be on disk.
        base = [BIN / "xgb-train", "objective=binary:logistic", "tree_method=hist", "num_round=3", "nthread=1"]
        for workers in (1, 3):
            self.distributed(workers, [*base, "data=heart.txt", "eval[rows]=heart.txt", "model_out=memory.json"])
            output = self.distributed(workers, [*base, "data=heart.txt#kept", "eval[rows]=heart.txt#seen",
                                                "model_out=disk.json"])
            self.assertEqual(output.count("heart.txt#kept: XGBoost cannot train on pages in a job"), 1, output)
            self.assertEqual(self.read("memory.json"), self.read("disk.json"))
            self.assertEqual([name for name in os.listdir() if name.startswith("kept")], [])
            seen = ["seen"] if workers == 1 else [f"seen.part{part}-of-{workers}" for part in range(workers)]
            self.assertEqual(sorted(name for name in os.listdir() if name.startswith("seen")), seen)
            for name in seen:
                os.remove(name)
            self.assertEqual([name for name in os.listdir() if ".xgboost" in name], [])

    def test_workers_without_rows_are_spoken_of_and_approx_does_without_them(self):
        with open("two.txt", "w", encoding="ascii") as file:
            file.write("1 0:1 1:2\n0 1:3\n")
        output = self.distributed(3, [BIN / "xgb-train", "data=two.txt", "objective=binary:logistic", "num_round=1",
                                      "tree_method=approx", "model_out=two.json"])
        self.assertIn("xgb-train: 1 of 3 workers have no rows of two.txt", output)
        self.assertTrue(os.path.exists("two.json"))

    def test_workers_without_rows_are_the_error_where_they_end_the_training(self):
        with open("two.txt", "w", encoding="ascii") as file:
            file.write("1 0:1 1:2\n0 1:3\n")
        for engine in ("own", "warren"):
            for hist in ("tree_method=hist", "updater=grow_quantile_histmaker,prune"):
                with self.subTest(engine=engine, hist=hist):
                    command = [BIN / "xgb-train", "data=two.txt", "objective=binary:logistic", hist, "model_out=hist.json"]
                    output = self.distributed(3, command, fails=True, WARREN_XGBOOST_ENGINE=engine)
                    self.assertIn("two.txt: 1 of 3 workers have no rows of it, and XGBoost 1.7", output)
                    self.assertNotIn("calls allreduce", output)
                    self.assertFalse(os.path.exists("hist.json"))

    def test_several_labels_and_a_worker_without_rows_are_an_error(self):
        with open("few.txt", "w", encoding="ascii") as file:
            file.write("1,0 0:1 1:2\n0,1 1:3\n")
        output = self.distributed(3, [BIN / "xgb-train", "data=few.txt", "objective=binary:logistic", "tree_method=approx",
                                      "model_out=few.json"], fails=True)
        self.assertIn("few.txt: 1 of 3 workers have no rows, and XGBoost 1.7", output)
        self.assertIn("cannot train with 2 labels per row in that case; start fewer workers", output)

    def test_a_model_trained_by_three_workers_predicts_like_one_trained_alone(self):
        command = [BIN / "xgb-train", SOURCE / "examples/xgboost/heart.conf"]
        self.run_program([*command, "model_out=alone.json"])
        self.distributed(3, [*command, "model_out=three.json"])
        predictions = []
        for model in ("alone", "three"):
            self.run_program([*command, "task=pred", f"model_in={model}.json", f"test:data={HEART}?format=libsvm",
                              f"name_pred={model}.pred"])
            with open(f"{model}.pred") as lines:
                predictions.append([float(line) for line in lines])
        self.assertEqual(len(predictions[0]), 270)
        for left, right in zip(*predictions):
            self.assertAlmostEqual(left, right, delta=SAME)

    def test_bad_data_in_one_share_ends_the_whole_job_with_the_line_that_is_wrong(self):
        with open("heart.txt") as good:
            lines = good.readlines()
        lines[200] = "1 3:0.5 4:x\n"
        with open("bad.txt", "w") as out:
            out.writelines(lines)
        output = self.distributed(3, [BIN / "xgb-train", SOURCE / "examples/xgboost/heart.conf", "data=bad.txt",
                                      "model_out=bad.json"], fails=True)
        self.assertIn("bad.txt:201:9", output)
        self.assertFalse(os.path.exists("bad.json"))

    def test_a_worker_killed_in_training_costs_no_bit_of_the_model_after_a_new_start_or_a_restart(self):
        # With 40,000 rows, a round takes long enough to kill a worker during it. The next job resumes from
        # the killed job's saved models.
        self.make("long.train", "--features", 30, "--density", 1, "--rows", 40000)
        command = [BIN / "xgb-train", "objective=binary:logistic", "tree_method=hist", "nthread=1", "num_round=12",
                   "data=long.train?format=libsvm", "save_period=1"]
        self.distributed(2, [*command, "model_dir=undisturbed", "model_out=undisturbed.json"])
        # The second worker kills itself as soon as the third saved model exists.
        killer = ("while [ ! -e killed/0003.model ]; do sleep 0.01; done & "
                  "waiter=$!; \"$@\" & worker=$!; "
                  "[ $DMLC_TASK_ID = 0 ] || { wait $waiter; kill -9 $worker; }; wait $worker")
        self.distributed(2, ["bash", "-c", killer, "worker", *command, "model_dir=killed", "model_out=killed.json"], fails=True)
        self.assertFalse(os.path.exists("killed.json"))
        resumed = self.distributed(2, [*command, "model_dir=killed", "model_out=killed.json"])
        self.assertRegex(resumed, r"[Rr]esum")
        self.assertEqual(self.read("undisturbed.json"), self.read("killed.json"))

        # If each worker has another attempt, the launcher recovers from the same death within one job.
        once = killer.replace("killed/", "mended/").replace("[ $DMLC_TASK_ID = 0 ]",
                                                            "[ $DMLC_TASK_ID$DMLC_NUM_ATTEMPT != 10 ]")
        mended = self.distributed(2, ["--local-num-attempt", 1, "bash", "-c", once, "worker", *command,
                                      "model_dir=mended", "model_out=mended.json"])
        self.assertIn("on attempt 1 of 2; starting it again", mended)
        self.assertEqual(self.read("undisturbed.json"), self.read("mended.json"))


class Jobs(unittest.TestCase):
    def test_a_second_job_of_the_same_processes_is_refused_instead_of_hanging(self):
        done = subprocess.run(
            [BIN / "dmlc-submit", "--num-workers", "2", "--port", "0", PYTHON, "-W", "ignore", "-c",
             "import xgboost as xgb\nfor _ in range(2): xgb.rabit.init(); print('up', flush=True); "
             "xgb.rabit.finalize()"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout.count("up"), 2, done.stdout)
        self.assertNotEqual(done.returncode, 0)

    def test_output_lines_carry_the_rank_and_prints_carry_none(self):
        done = subprocess.run(
            [BIN / "dmlc-submit", "--num-workers", "3", "--port", "0", PYTHON, "-W", "ignore", "-c",
             "import xgboost as xgb; xgb.rabit.init(); r = xgb.rabit.get_rank(); print('I am', r, flush=True); "
             "xgb.rabit.tracker_print('printed by %d\\n' % r) if r == 1 else None; xgb.rabit.finalize()"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(3):
            self.assertIn(f"[{rank}] I am {rank}\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^printed by 1$")


if __name__ == "__main__":
    unittest.main(warnings="ignore")

"""Training with warren.xgboost: checkpoints, warnings, and reports of progress. See any_xgboost_test.py for how the version of XGBoost is
chosen."""
import contextlib
import json
import os
import re
import subprocess
import unittest

from any_xgboost_test import COLLECTIVE, FOLDER, LIMIT_S, PYTHON, VERSION, Workers, environment
from warren_testing import BIN, SOURCE


class Training(Workers):
    def command(self, *command, **given):
        return [PYTHON, FOLDER / "xgboost_training_worker.py", *command, *([json.dumps(given)] if given else [])]

    def checkpointed(self, workers=2, code=0, **given):
        """Runs a training with the checkpoint c.ubj: as a job, or outside of any job if `workers` is 0."""
        command = self.command("checkpointed", "c.ubj", **given)
        if workers > 0:
            return self.submit_command(workers, *command, code=code)
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment(), cwd=self.folder, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def halted(self, **given):
        """Like checkpointed, but ends the training after 4 rounds."""
        output = self.checkpointed(code=9, halt=4, **given)
        self.assertEqual(sorted(self.folder.glob("*c.ubj*")), [self.folder / ".c.ubj.lock", self.folder / "c.ubj"], output)
        return output

    def test_01_a_checkpoint_of_the_same_training_is_gone_on_from_and_said(self):
        self.assertNotIn("warren:", self.halted())
        output = self.checkpointed()
        self.assertEqual(output.count("warren: going on from round 4 of c.ubj\n"), 1, output)
        self.assertEqual(os.listdir(self.folder), [])

    def test_02_a_checkpoint_of_another_training_is_left_out_and_said_why(self):
        ways = {"other data": [{"seed": 1}, {"rows": 500}, {"fields": ["weight"]}, {"fields": ["base_margin"]}, {"quantile": True}],
                "other parameters (max_depth: 3 there, 4 here)": [{"params": {"max_depth": 4}}],
                "another number of rounds (12 there, 13 here)": [{"rounds": 13}],
                "other options (obj: not given there": [{"obj": 0}, {"obj": 0.5}],
                "other evaluation sets (1, valid: not given there": [{"evals": 3}]}
        for why, hows in ways.items():
            for how in hows:
                self.halted(workers=0)
                output = self.checkpointed(workers=0, **how)
                self.assertEqual(output.count("this checkpoint of 4 rounds is ignored"), 1, output)
                self.assertIn(f"it is from a training with {why}", output, how)
                self.assertIn(f"trained {how.get('rounds', 12)}", output)
                self.assertNotIn("going on", output)

    def test_03_objectives_are_told_apart_by_their_code_and_what_is_around_it(self):
        self.halted(workers=0, obj=0.5)
        self.assertIn("other options (obj: ", self.checkpointed(workers=0, code=9, halt=4, obj=0.25))
        self.assertIn("going on from round 4", self.checkpointed(workers=0, obj=0.25))
        self.halted(workers=0, evals=3)
        self.assertIn("other evaluation sets (1, valid: ", self.checkpointed(workers=0, code=9, halt=4, evals=4))
        self.assertIn("going on from round 4", self.checkpointed(workers=0, evals=4))
        # Early stopping uses the last evaluation set, so the order of the sets matters.
        self.halted(workers=0, order=1)
        self.assertIn("other evaluation sets (1, first: ", self.checkpointed(workers=0, order=-1))

    def test_04_the_number_of_workers_may_change_between_runs(self):
        self.halted()
        self.assertIn("going on from round 4", self.checkpointed(workers=3))
        self.halted()
        self.assertIn("going on from round 4", self.checkpointed(workers=1))

    def test_05_threads_and_verbosity_may_change(self):
        self.halted(workers=0)
        self.assertIn("going on from round 4", self.checkpointed(workers=0, params={"nthread": 2, "verbosity": 0}))

    def test_06_a_checkpoint_of_the_form_before_is_left_out(self):
        self.halted(workers=0)
        code = ("import xgboost, sys\nmodel = xgboost.Booster(model_file='c.ubj')\n"
                "model.set_attr(warren_run='[{}, 12]')\nmodel.save_model('c.ubj')")
        subprocess.run([PYTHON, "-c", code], check=True, env=environment(), cwd=self.folder, timeout=LIMIT_S)
        self.assertIn("saved by another version of Warren", self.checkpointed(workers=0))

    def test_07_two_trainings_never_have_one_checkpoint(self):
        go_on = self.folder / "go on"
        with subprocess.Popen([BIN / "dmlc-submit", "--num-workers", "2", "--port", "0",
                               *self.command("checkpointed", "c.ubj", halt=4, until=str(go_on), model="m.json")],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), cwd=self.folder) as first:
            try:
                next(line for line in first.stdout if "waits" in line)
                held = (self.folder / "c.ubj").read_bytes()
                output = self.checkpointed(code=1, seed=1)
                self.assertRegex(output, r"RuntimeError: rank 0: c.ubj: another training is using this checkpoint \(host \S+, pid \d+, a "
                                         r"worker of the job of the tracker at \S+, since .*\): give each training its own path")
                self.assertEqual((self.folder / "c.ubj").read_bytes(), held)
            finally:
                go_on.touch()
                rest = first.stdout.read()
        self.assertEqual(first.returncode, 0, rest)
        self.assertEqual(sorted(os.listdir(self.folder)), ["go on", "m.json"])

    def test_07b_a_symbolic_link_is_the_checkpoint_that_it_names(self):
        go_on = self.folder / "go on"
        (self.folder / "disk").mkdir()
        (self.folder / "c.ubj").symlink_to("disk/k.ubj")
        with subprocess.Popen([*map(str, self.command("checkpointed", "disk/k.ubj", halt=4, until=str(go_on)))], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=environment(), cwd=self.folder) as first:
            try:
                next(line for line in first.stdout if "waits" in line)
                self.assertIn("RuntimeError: c.ubj: another training is using this checkpoint", self.checkpointed(workers=0, code=1))
            finally:
                go_on.touch()
                first.stdout.read()
        self.assertIn("trained 12", self.checkpointed(workers=0))
        self.assertEqual([os.listdir(self.folder / "disk"), (self.folder / "c.ubj").is_symlink()], [[], True])

    def test_08_a_killed_owners_lock_is_taken_over(self):
        self.halted()
        self.assertIn("pid", (self.folder / ".c.ubj.lock").read_text())
        self.assertIn("trained 12", self.checkpointed())

    def test_09_a_cut_off_file_is_refused_and_stays(self):
        self.halted()
        whole = (self.folder / "c.ubj").read_bytes()
        (self.folder / "c.ubj").write_bytes(whole[:-500])
        self.assertRegex(self.checkpointed(code=1), "ValueError: .*c.ubj exists and is not a checkpoint")
        self.assertEqual((self.folder / "c.ubj").read_bytes(), whole[:-500])

    @contextlib.contextmanager
    def full_disk(self, room):
        """Yields a folder with space for `room` bytes of files, or None if this user cannot mount a tmpfs."""
        folder = self.folder / "disk"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder], capture_output=True, check=False)
        try:
            yield folder if mounted.returncode == 0 else None
        finally:
            if mounted.returncode == 0:
                subprocess.run(["umount", folder], check=True)

    def test_10_a_full_disk_keeps_the_checkpoint_before(self):
        self.checkpointed(code=9, halt=11)
        room = (self.folder / "c.ubj").stat().st_size * 3 // 2
        (self.folder / "c.ubj").unlink()
        with self.full_disk(room) as disk:
            # If no such disk can be mounted, a file size limit is used instead.
            limited = {} if disk else {"file_limit": room // 2}
            path = f"{disk or self.folder}/c.ubj"
            output = self.submit_command(2, *self.command("checkpointed", path, halt=11, **limited), code=9)
            said = re.search(r"the checkpoint after round (\d+) could not be saved: \[Errno \d+\] (No space left on device|File too large)"
                             r": '\S*c.ubj'; the checkpoint of round (\d+) is kept, training continues", output)
            self.assertEqual(output.count("[0] warren: the checkpoint after"), 1, output)
            self.assertEqual(int(said[1]), int(said[3]) + 1)
            self.assertEqual(sorted(name for name in os.listdir(os.path.dirname(path)) if "c.ubj" in name), [".c.ubj.lock", "c.ubj"])
            output = self.submit_command(2, *self.command("checkpointed", path, **limited))
            self.assertIn(f"going on from round {said[3]} of {path}", output)
            self.assertIn("trained 12", output)

    @unittest.skipUnless(VERSION < (2, 0), "the example is for XGBoost up to 1.7")
    def test_11_the_examples_checkpoint_outlives_a_full_disk(self):
        (self.folder / "rows.txt").write_text("".join(f"{row % 2} 1:{row % 7} 2:{row % 5} 3:{row % 11}\n" for row in range(300)))
        command = [PYTHON, SOURCE / "examples/xgboost/train.py", "--data", self.folder / "rows.txt", "--save-every", "1", "--rounds", "20"]
        self.submit_command(2, *command, "--model", "whole.json")
        room = (self.folder / "whole.json").stat().st_size * 3 // 2 // 4096 * 4096
        with self.full_disk(room) as disk:
            if disk is None:
                self.skipTest("only root may make a disk")
            output = self.submit_command(2, *command, "--model", disk / "m.json", code=1)
            self.assertIn("m.unfinished.json is unchanged", output)
            self.assertIn("the model could not be saved: No space left on device", output)
            self.assertEqual(os.listdir(disk), ["m.unfinished.json"])
            json.loads((disk / "m.unfinished.json").read_bytes())

    def same_rows(self, how, workers=2):
        """Runs a training. Returns the number of warnings that all workers train on the same rows."""
        output = self.submit_command(workers, *self.command("same_rows", how), sklearn=how == "estimator")
        self.assertEqual(output.count("trained"), workers, output)
        self.assertEqual(output.count(": SameRowsWarning:"), output.count(f"[0] {FOLDER}/xgboost_training_worker.py:"), output)
        said = rf"SameRowsWarning: all {workers} workers train on the same \d+ rows, so that each row counts {workers} times"
        return len(re.findall(said, output))

    def test_12_workers_that_all_train_on_the_same_rows_are_noticed_once(self):
        for how in ("whole", "quantile", "bins", "estimator", "by hand", "objective"):
            self.assertEqual(self.same_rows(how), 1, how)
        self.assertEqual(self.same_rows("whole", workers=3), 1)

    def test_12b_a_training_in_a_thread_that_has_not_joined_is_warned_of_once(self):
        for workers in (1, 2):
            output = self.submit_command(workers, *self.command("in_threads"))
            self.assertEqual(output.count("XGBoost trains on this thread's rows alone: of the 2 workers"), 0 if workers == 1 else 2, output)
            self.assertEqual(output.count("trained"), workers, output)

    def test_12c_ranks_that_train_different_models_are_told_what_differs(self):
        output = self.submit_command(3, *self.command("different"))
        model = r"error ranks 1 and 2 of 3 train another model than rank 0: "
        other = r"ranks 1 and 2 of 3 train with other arguments than rank 0: "
        cuts = model + (r"a tree has a split of feature \d at \S+ on rank 0, and a split of feature \d at \S+ on rank 1; each rank "
                        "probably has its own quantile cuts: make a QuantileDMatrix")
        given = " on rank 1: give all workers "
        said = {"matrix of bins made early": cuts, "matrix trained on before": cuts,
                "eta": model + r"rank 0 has eta=0.3\d*, and rank 1 eta=0.8\d*: all workers must give the same",
                "objective": model + "rank 0 has objective=reg:squarederror, and rank 1 objective=reg:logistic: all",
                "base_score": model + r"rank 0 has base_score=\S+, and rank 1 base_score=\S+: all",
                "order": model + f"feature 0 is 'a' on rank 0, and 'b'{given}the same columns in the same order",
                "categories": model + f"the categories of 'city' are rom, ulm on rank 0, and ulm{given}the same list",
                "continued": model + r"they continue different models \(xgb_model\)",
                "names": other + rf"feature 3 is 'd' on rank 0, and '\?'{given}the same columns",
                "weight of a class": other + "rank 0 has scale_pos_weight=1, and rank 1 scale_pos_weight=2: all",
                "seeds of dart": other + "rank 0 has seed=0, and rank 1 seed=1: all",
                # Before 3.3, rank 0 draws the columns for all ranks.
                "seeds of columns": model + "rank 0 has seed=0, and rank 1 seed=1: all" if VERSION >= (3, 3) else "none$"}
        said.update(dict.fromkeys(("threads", "kinds of numbers", "names of some", "no rows", "fewer categories", "attributes",
                                   "forest", "linear"), "none$"))
        for name, expected in said.items():
            for rank in range(3):  # warnings are given by rank 0 alone
                self.assertRegex(output, rf"(?m)^\[{rank}\] {name}: {expected if rank == 0 or 'error' in expected else 'none$'}")

    def test_13_rows_that_differ_are_few_or_known_to_be_shares_are_not_spoken_of(self):
        # Both halves of this file are the same, so that both workers load the same rows.
        (self.folder / "rows.svm").write_text("".join(f"{row % 2} 0:{row % 5} 1:1\n" for row in range(200)))
        for how in ("few", "other features", "other labels", "other numbers of rows", "bins of others", "ignored", "scattered", "loaded"):
            self.assertEqual(self.same_rows(how), 0, how)
        self.assertEqual(self.same_rows("whole", workers=1), 0)

    def test_14_a_second_communicator_is_refused_with_what_to_do(self):
        for how in ("communicator", "init"):
            for workers in (1, 2):
                output = self.submit_command(workers, *self.command("twice", how), code=1)
                self.assertIn("RuntimeError: this worker has left its job and cannot join it again: a job has one communicator; put one "
                              "`with warren.xgboost.communicator():` around all trainings", output)
                for words in ("sum of ranks", "left with the rank it had True"):
                    self.assertEqual(output.count(words), workers if how == "communicator" else 0, words + output)

    @unittest.skipUnless(COLLECTIVE, "XGBoost before 2.1 links a worker with a few others")
    def test_14b_a_worker_that_may_open_too_few_files_says_so_before_it_joins(self):
        output = self.submit_command(4, *self.command("short_of_files", "9"), code=1)
        self.assertRegex(output, r"\[1\] OSError: \[Errno 24\] \d+ of the \d+ files that this process may open .* join a job of 4 workers")
        self.assertRegex(output, "dmlc-submit: error: worker 1 ")
        self.assertEqual(self.submit_command(4, *self.command("short_of_files", "10")).count("joined 4"), 4)

    def test_15_the_traceback_shown_is_that_of_the_rank_that_makes_a_call_alone(self):
        for how, line in (("evaluate on 0", "print(model.eval(matrix))"), ("evaluate on 1", "print(model.eval(matrix))"),
                          ("train on 0", "xgb.train(PARAMS, matrix, 2)")):
            output = self.submit_command(2, *self.command("alone_in_a_call", how), code=1)
            self.assertRegex(output, rf"error: worker {how[-1]} \(rank {how[-1]}, ", how)
            self.assertIn(f"[{how[-1]}]     {line}\n", output)
            self.assertNotRegex(output, r"\] RuntimeError: .* calls barrier")

    def test_14c_a_forked_process_is_not_the_worker(self):
        for workers, engine in ((2, "auto"), (2, "own"), ("2:2", "auto")) if COLLECTIVE else ((2, "auto"),):
            output = self.submit_command(workers, *self.command("forked"), options=["--env", f"WARREN_XGBOOST_ENGINE={engine}"])
            self.assertEqual(output.count("left"), 2, output)
            for rank in range(2):
                self.assertIn(f"ValueError: child of {rank}", output)

    @unittest.skipUnless(VERSION >= (1, 7), "XGBoost's module is rabit, whose second init does nothing")
    def test_14d_a_second_communicator_in_the_thread_of_the_job_is_an_error(self):
        output = self.submit_command(2, *self.command("joins_again"), code=1)
        self.assertRegex(output, r"RuntimeError: .*xgboost\.collective\.init, or CommunicatorContext, would take it out of the job")

    def test_14e_a_program_that_does_not_leave_the_job_leaves_it_at_exit(self):
        for workers in (1, 2):
            self.assertEqual(self.submit_command(workers, *self.command("never_left", "end")).count("trained"), workers)
        for how in ("raise", "finally"):
            output = self.submit_command(2, *self.command("never_left", how), code=1)
            self.assertRegex(output, r"error: worker 1 \(rank 1, .*\) exited with code 1 ")
            self.assertIn("ValueError: no such luck", output)

    @unittest.skipUnless(COLLECTIVE, "XGBoost's own communication notices no difference between calls")
    def test_16_a_call_that_had_ended_on_the_rank_that_made_it_alone_is_named(self):
        output = self.submit_command(2, *self.command("alone_in_a_call", "broadcast on 1"), code=1)
        self.assertRegex(output, r"\[0\] RuntimeError: rank 0 calls barrier .* where rank 1 calls broadcast")

    def test_17_the_rounds_and_the_time_left_are_told(self):
        for how in ("plain", "evaluated", "estimator", "checkpoints"):
            output = self.submit_command(2, *self.command("slow", how), options=["--log-format", "json"],
                                         sklearn=how == "estimator")
            said = [line for line in map(json.loads, re.findall(r"^\{.*\}$", output, re.MULTILINE)) if line.get("source") == "progress"]
            self.assertTrue(any(line.get("rounds") == 12 and line.get("seconds_left", 0) > 0 for line in said), output)
            self.assertGreaterEqual(said[-1]["round"], 9, output)  # reports come once per second
            # Reports do not remove metrics that were printed.
            self.assertEqual("train-rmse" in said[-1].get("metrics", {}), how == "evaluated", output)

    def test_18_a_digest_sees_every_value_and_the_same_in_every_process(self):
        said = {subprocess.run(self.command("digests"), capture_output=True, text=True, timeout=LIMIT_S, check=True, cwd=self.folder,
                               env={**environment(), "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
        self.assertEqual(len(said), 1, said)
        self.assertIn("digests", said.pop())


if __name__ == "__main__":
    unittest.main()

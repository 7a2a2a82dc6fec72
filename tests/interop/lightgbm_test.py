"""LightGBM from PyPI over Warren's engine, under dmlc-submit, compared with LightGBM over its own sockets."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import forking
from warren_testing import BIN, free_ports, package_environment

PLACE = BIN.parent / "interop/venv-lightgbm"
PYTHON = PLACE / "bin/python"
WORKER = pathlib.Path(__file__).with_name("lightgbm_worker.py")
LIMIT_S = 100
NAMED_S = 10  # all others must name a killed rank within this time, even on a busy machine; they usually take a few milliseconds
WAYS = 10  # number of ways in which the worker trains


class LightGbm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (PLACE / "ready").exists():
            subprocess.run(["/usr/bin/python3", "-m", "venv", PLACE], check=True)
            subprocess.run([PYTHON, "-m", "pip", "install", "-q", "lightgbm", "scipy", "scikit-learn"], check=True)
            (PLACE / "ready").touch()

    @property
    def warm(self):
        return [forking.python(PYTHON, "lightgbm")]

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def worker(self, workers, *command, code=0):
        """Runs a job, which must exit with `code`. Returns its output."""
        done = subprocess.run([BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", str(workers), *self.warm,
                               WORKER, *map(str, command)], capture_output=True, text=True, timeout=LIMIT_S,
                              env=package_environment(), cwd=self.folder, check=False)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, output)
        return output

    def found(self, word, output):
        return [json.loads(text) for text in re.findall(rf"{word} ([\[{{].*)", output)]

    def over_sockets(self, workers, tree_learner):
        ports = [f"127.0.0.1:{port}" for port in free_ports(WAYS * workers)]
        machines = ";".join(",".join(ports[way * workers:(way + 1) * workers]) for way in range(WAYS))
        processes = [subprocess.Popen([*self.warm, WORKER, "over_sockets", str(rank), machines, tree_learner], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=package_environment())
                     for rank in range(workers)]
        said = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
        found = [self.found("models", output) for output in said]
        self.assertTrue(all(found), said)
        return [models for models, in found]

    def test_models_are_those_over_its_own_sockets(self):
        for workers in (2, 3):
            ours, own = self.found("models", self.worker(workers, "over_warren", "data")), self.over_sockets(workers, "data")
            self.assertEqual(len(ours), workers)
            self.assertEqual(len(own[0]), WAYS)
            for name in own[0]:
                with self.subTest(name, workers=workers):
                    if (name, workers) != ("many_leaves", 3):  # with three workers, sums over leaves are added in another order
                        self.assertEqual({models[name] for models in ours}, {models[name] for models in own})
                    self.assertEqual(len({models[name] for models in ours}), 1, "the workers' models differ")

    def test_voting_is_served(self):
        ours, own = self.found("models", self.worker(2, "over_warren", "voting")), self.over_sockets(2, "voting")
        for name in own[0]:
            with self.subTest(name):
                self.assertEqual({models[name] for models in ours}, {models[name] for models in own})

    def test_bins_are_those_of_one_process_whatever_the_order_of_rows(self):
        alone, = self.found("in order", self.worker(1, "trains_in_order"))
        for found in self.found("in order", self.worker(3, "trains_in_order")):
            self.assertEqual(found, alone)

    def test_outside_a_job_it_trains_alone(self):
        alone = self.found("models", self.worker(1, "over_warren", "data"))
        done = subprocess.run([PYTHON, WORKER, "over_warren", "data"], capture_output=True, text=True, env=package_environment(),
                              timeout=LIMIT_S, check=True)
        self.assertEqual(self.found("models", done.stdout), alone)

    def test_early_stopping_decides_for_all_by_the_metrics_of_all(self):
        said = self.found("stopped", self.worker(3, "stops_early"))
        self.assertEqual(len(said), 3)
        _, best, losses, aucs, loss_of_all = said[0]
        self.assertLess(best, 200)
        for rank, *of_rank in said:
            self.assertEqual(of_rank, [best, losses, aucs, loss_of_all], rank)
        self.assertAlmostEqual(losses[best - 1], loss_of_all, delta=1e-9)  # the loss of the trees that are kept

    def test_rows_are_dealt_out_and_queries_stay_whole(self):
        lines = [f"{row % 3} qid:{row // 10} 0:{row % 7} 1:{row % 5} 2:{row % 11}" for row in range(300)]
        (self.folder / "rows.txt").write_text("\n".join(lines) + "\n")
        loaded = sorted(self.found("loaded", self.worker(3, "loads", "rows.txt")))
        self.assertEqual(sum(rows for _, rows, _, _, _ in loaded), 300)
        for _, rows, columns, group, _ in loaded:
            self.assertEqual((columns, group), (3, [10] * (rows // 10)))
            self.assertGreater(rows, 0)
        self.assertEqual(len({model for *_, model in loaded}), 1)

    def test_empty_cells_of_csv_are_missing(self):
        rows = [f"{int(row % 4 == 1)},{'' if row % 4 == 1 else row % 9 - 4},{row % 7}" for row in range(400)]
        (self.folder / "rows.csv").write_text("\n".join(rows) + "\n")
        for workers in (1, 2):
            for missing, nought in self.found("predicted", self.worker(workers, "loads_csv",
                                                                       "rows.csv?format=csv&label_column=0")):
                self.assertGreater(missing, 0.8)
                self.assertLess(nought, 0.2)

    def test_the_rows_of_a_query_have_its_weight(self):
        lines = [f"{row % 3}:{1 + row // 10 % 2} qid:{row // 10} 0:{row % 7} 1:{row % 5}" for row in range(300)]
        (self.folder / "rows.txt").write_text("\n".join(lines) + "\n")
        found = self.found("weights", self.worker(2, "weighs", "rows.txt"))
        self.assertEqual(sorted(sum(found, [])), 150 * [1.0] + 150 * [2.0])
        for weights in found:
            self.assertEqual([weights[row] for row in range(0, len(weights), 10) for _ in range(10)], weights)

    def test_what_a_worker_would_do_alone_is_refused_outside_of_the_communicator(self):
        (self.folder / "rows.txt").write_text("1 0:1\n")
        output = self.worker(2, "outside")
        for what, times in (("parameters: this process is one of 2 workers of a job and has not joined it", 2),
                            ("load_dataset: this process is one of 2 workers of a job and has not joined it", 2),
                            ("this process is already inside a communicator", 2),
                            ("this process has left its job and cannot join it again", 2),
                            ("parameters: this process is one of 2 workers of a job and has left it", 2), ("said nothing", 0)):
            self.assertEqual(output.count(what), times, what + output)

    def test_what_has_to_be_the_same_on_all_workers_is_looked_at(self):
        (self.folder / "few.txt").write_text("1 0:1\n0 0:2\n")
        self.assertEqual(self.worker(3, "differs", "classes").count("LGBMClassifier numbers the classes that a worker has"), 3)
        self.assertEqual(self.worker(2, "differs", "validation").count("all need the same validation sets"), 2)
        self.assertEqual(self.worker(3, "differs", "rows", "few.txt").count("has no rows, and LightGBM cannot train"), 3)
        output = self.worker(2, "differs", "datasets")
        for what in ("rank 0 has rows of 8 columns, and rank 1 of 7: all workers need the same columns", "rank 0 has columns=", "rank 0 has categories=",
                     "rank 0 has max_bin=15, and rank 1 max_bin=16", "rank 0 of 2 has no rows",
                     "rank 0 has learning_rate=0.5, and rank 1 learning_rate=1.5", "the workers are training different models"):
            self.assertEqual(output.count(what), 2, what + output)
        self.assertEqual(self.worker(2, "constructed_before").count("the workers are training different models"), 2)

    def test_what_trains_alone_is_warned_of(self):
        found = self.found("warnings", self.worker(2, "alone"))
        self.assertEqual([len(warned) for warned in found], [0, 3, 0, 3] if found[1] else [0, 0, 3, 3])
        for forgotten, linear, in_thread in filter(None, found):
            self.assertIn("trains on this thread's rows alone: of the 2 workers", in_thread)
            self.assertIn("lack warren.lightgbm.parameters()", forgotten)
            self.assertIn("linear trees", linear)

    def test_refit_which_uses_a_workers_own_rows_is_refused_inside_of_the_communicator(self):
        output = self.worker(2, "refits")
        for rank in (0, 1):
            refused = f"refused rank {rank}: Booster.refit fits the leaves to this worker's rows alone, and each of the 2 workers"
            self.assertEqual(output.count(refused), 2, output)
        models = self.found("refit", output)
        self.assertEqual((len(models), models[0]), (2, models[1]))

    def test_workers_that_all_train_on_the_same_rows_are_noticed_once(self):
        for how, times in (("whole", 1), ("made before", 1), ("estimator", 1), ("other rows", 0), ("other features", 0), ("few", 0)):
            output = self.worker(2, "same_rows", how)
            self.assertEqual(output.count("trained"), 2, output)
            rows = re.findall(r"SameRowsWarning: all 2 workers train on the same (\d+) rows, so that each row counts 2 times", output)
            self.assertEqual(rows, ["900"] * times, output)

    def test_a_killed_worker_is_named_by_all_and_ends_the_job(self):
        output = self.worker(3, "killed", code=137)
        self.assertRegex(output, r"error: worker 1 \(rank 1, .*\) was killed by signal 9")
        killed_at = float(re.search(r"killed (\S+)", output)[1])
        for _, at, message in self.found("error", output):
            self.assertRegex(message, "rank 1")
            self.assertLess(at - killed_at, NAMED_S)

    def test_the_traceback_shown_is_that_of_the_rank_that_evaluates_alone(self):
        output = self.worker(2, "evaluates_alone", code=1)
        self.assertRegex(output, r"error: worker 0 \(rank 0, ")
        self.assertIn("[0]     print(model.eval_valid())\n", output)
        self.assertNotIn("[1] RuntimeError", output)

    def test_what_cannot_be_is_refused(self):
        output = self.worker(2, "refuses")
        self.assertEqual(output.count("LightGBM supports feature-parallel training only in its command line"), 2, output)
        self.assertEqual(output.count("refused tree_learner is 'serial', expected one of data, voting"), 2, output)
        for what, times in (("num_machines=2 and tree_learner='serial': each of the 2 workers would train on its rows alone", 2),
                            ("num_machines=1 and tree_learner='data': each of the 2 workers would train", 2), ("machines='127.0.0.1:1", 4),
                            ("label=['y', 'z']: LightGBM takes one column of labels", 2), ("said nothing", 0), ("left as 0 of 2", 1),
                            ("left as 1 of 2", 1)):
            self.assertEqual(output.count(what), times, what + output)


if __name__ == "__main__":
    unittest.main()

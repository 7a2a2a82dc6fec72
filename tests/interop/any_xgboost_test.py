"""One version of XGBoost under dmlc-submit, through warren.xgboost. tests/interop/matrix runs this file for each version. The
interpreter XGBOOST_PYTHON imports XGBoost from the folder XGBOOST_PATH if that is set, otherwise from its own packages."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from warren_testing import AT_NIGHT, BIN, SOURCE, local_tracker, nightly, package_environment

PYTHON = os.environ.get("XGBOOST_PYTHON", "/usr/bin/python3")
FOLDER = pathlib.Path(__file__).parent
HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
LIMIT_S = 100
SAME = 1e-4
#: The number of workers in the largest job. Only scripts/nightly runs 64, since loading XGBoost takes each worker a second of CPU time.
MANY_WORKERS = int(os.environ.get("WARREN_WORKERS", "12"))
SEVERAL_MINUTES_S = 120  # surviving workers sleep this long unless they are terminated


def environment(sklearn=False) -> dict:
    """The environment of a worker. `sklearn`: whether XGBoost finds scikit-learn, which its estimators need. Without scikit-learn, XGBoost
    is imported much faster."""
    paths = [str(SOURCE / "python/src"), *([] if sklearn else [str(FOLDER / "without_sklearn")])]
    if os.environ.get("XGBOOST_PATH"):
        paths.insert(0, os.environ["XGBOOST_PATH"])
    return package_environment(PYTHONPATH=":".join(paths))


def version() -> tuple:
    code = "import warnings; warnings.simplefilter('ignore'); import xgboost; print(xgboost.__version__)"
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    return tuple(int(part) for part in done.stdout.split(".")[:2])


VERSION = version()
COLLECTIVE = VERSION >= (2, 1)


class Workers(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def submit_command(self, workers, *command, options=(), code=0, sklearn=False):
        """Runs a job and returns its output. The job must exit with `code`, or with any code except 0 if `code` is None."""
        done = subprocess.run(
            [BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", str(workers), *options,
             *map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, env=environment(sklearn), cwd=self.folder,
            check=False)
        output = done.stdout + done.stderr
        if code is None:
            self.assertNotEqual(done.returncode, 0, output)
        else:
            self.assertEqual(done.returncode, code, output)
        return output

    def submit(self, workers, *command, **options):
        """Like submit_command, for a Python program."""
        return self.submit_command(workers, PYTHON, *command, **options)


class AnyXgboost(Workers):
    def worker(self, workers, *command, **options):
        return self.submit(workers, FOLDER / "any_xgboost_worker.py", *command, **options)

    def assert_gone(self, output):
        """Checks that no process whose pid is in the output is left."""
        for pid in re.findall(r"pid (\d+)$", output, re.MULTILINE):
            self.assertFalse(os.path.exists(f"/proc/{pid}"), pid)

    def test_01_any_number_of_workers_trains_to_the_result_of_one_process(self):
        data = f"{HEART}?indexing_mode=1"
        alone = subprocess.run([PYTHON, FOLDER / "any_xgboost_worker.py", "train", data, "alone.json", "8"], text=True,
                               capture_output=True, check=True, env=environment(), cwd=self.folder, timeout=LIMIT_S)
        expected = float(re.search(r"evaluation (\S+)", alone.stdout)[1])
        for workers in range(1, 5):
            output = self.worker(workers, "train", data, "model.json", "8")
            self.assertAlmostEqual(float(re.search(r"evaluation (\S+)", output)[1]), expected, delta=SAME)
            rows = [int(count) for count in re.findall(r"rows (\d+) columns 13", output)]
            self.assertEqual((len(rows), sum(rows)), (workers, 270), output)
            (self.folder / "model.json").unlink()

    # This test has no row in the table of docs/how-to/xgboost.md, which covers dmlc-submit only.
    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "SKIPPED: no mpirun.openmpi; apt-get install openmpi-bin")
    def test_processes_of_mpirun_train_one_model(self):
        done = subprocess.run(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "3", PYTHON,
                               FOLDER / "any_xgboost_worker.py", "train", f"{HEART}?indexing_mode=1", "model.json", "4"],
                              text=True, capture_output=True, check=False, cwd=self.folder, timeout=LIMIT_S,
                              env={**environment(), "PYTHONUNBUFFERED": ""})  # buffered, so that lines do not mix
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [int(count) for count in re.findall(r"rows (\d+) columns 13", done.stdout)]
        self.assertEqual((len(rows), sum(rows)), (3, 270), done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("evaluation"), 1, done.stdout)

    def test_18_a_preloaded_library_says_when_it_cannot_serve_this_xgboost(self):
        def said(code):
            output = self.submit(1, "-c", code, options=["--env", f"LD_PRELOAD={BIN.parent}/lib/librabit_xgboost.so"])
            return next((line for line in output.splitlines() if "XGBoost did not communicate over it" in line), "")

        inside = said("import xgboost, warren.xgboost as wx\nwith wx.communicator():\n    pass")
        served = COLLECTIVE or (VERSION < (2, 0) and PYTHON == "/usr/bin/python3")  # Debian's library exports symbols that PyPI's hides
        self.assertEqual("does not export the functions of 1.7" in inside, not served, inside)
        self.assertEqual(inside == "", served, inside)
        if COLLECTIVE:
            self.assertIn("in Python use warren.xgboost.communicator()", said("import xgboost"))

    def test_17_workers_without_rows_are_reported_and_train_with_approx(self):
        (self.folder / "two.svm").write_text("1 0:1 1:2\n0 1:3\n")
        output = self.submit(3, "-c", "import xgboost, warren.xgboost as wx\nwith wx.communicator():\n"
                             "    matrix = wx.load_dmatrix('two.svm')\n"
                             "    xgboost.train({'tree_method': 'approx'}, matrix, 2)\n    print('trained')")
        self.assertEqual(output.count("1 of 3 workers have no rows of two.svm"), 1, output)
        self.assertEqual("wait for each other forever" in output, VERSION < (2, 0), output)
        self.assertEqual(output.count("trained"), 3, output)

    def test_02_ranks_follow_task_ids_and_every_worker_can_communicate(self):
        output = self.worker(4, "talk")
        said = sorted((json.loads(text) for text in re.findall(r"talk (\{.*\})", output)), key=lambda talk: talk["rank"])
        self.assertEqual(said, [{"task": rank, "rank": rank, "size": 4, "sum": 10.0, "max": 3.0, "said": {"from": 3}}
                                for rank in range(4)])
        for rank in range(4):
            self.assertEqual(output.count(f"printed by rank {rank}"), 1, output)

    def test_19_arguments_name_the_tracker_where_the_environment_does_not(self):
        self.assertEqual(self.worker(3, "named_tracker").count("size 3 said by rank 0"), 3)

    def test_03_queries_and_weights_reach_the_matrix(self):
        rows = [f"{row % 3}:{1 + row // 20} qid:{row // 10} 0:{row % 7} 1:{row % 5}" for row in range(200)]
        (self.folder / "ranking.txt").write_text("\n".join(rows) + "\n")
        output = self.worker(2, "rank_queries", "ranking.txt")
        self.assertEqual(sum(map(int, re.findall(r"groups (\d+)", output))), 20)
        # Each query has the weight of its rows.
        self.assertEqual(sum(map(float, re.findall(r"weight (\S+)", output))), sum(1 + row // 20 for row in range(0, 200, 10)))

    def test_04_a_worker_that_raises_ends_the_job_and_is_named(self):
        begin = time.monotonic()
        output = self.worker(3, "fail", "raise", code=1)
        self.assertLess(time.monotonic() - begin, SEVERAL_MINUTES_S / 4)
        self.assertRegex(output, r"error: worker 1 \(rank 1, .*\) exited with code 1 on attempt 1 of 1")
        self.assertIn("ValueError: no such luck", output)
        self.assert_gone(output)

    def test_05_a_killed_worker_ends_the_job_and_is_named(self):
        begin = time.monotonic()
        output = self.worker(3, "fail", "kill", code=128 + signal.SIGKILL)
        self.assertLess(time.monotonic() - begin, SEVERAL_MINUTES_S / 4)
        self.assertRegex(output, r"error: worker 1 \(rank 1, .*\) was killed by signal 9")
        self.assert_gone(output)

    def test_06_a_restart_costs_no_bit_of_the_model(self):
        data = f"{HEART}?indexing_mode=1"
        ways = [{}]
        if VERSION >= (3, 3):  # earlier versions drew random numbers from generators without a seed
            ways.append({"subsample": 0.5, "colsample_bytree": 0.5, "colsample_bynode": 0.7, "seed": 7})
            ways.append({"booster": "dart", "rate_drop": 0.5, "num_parallel_tree": 2, "subsample": 0.5})
        for number, sampling in enumerate(map(json.dumps, ways if AT_NIGHT else ways[-1:])):
            undisturbed, restarted = f"undisturbed{number}.json", f"restarted{number}.json"
            self.worker(3, "checkpointed", data, undisturbed, "9", "-1", sampling)
            output = self.worker(3, "checkpointed", data, restarted, "9", "5", sampling, options=["--max-restarts", "1"])
            self.assertIn("starting all 3 processes again (restart 1 of 1)", output)
            self.assertEqual((self.folder / restarted).read_bytes(), (self.folder / undisturbed).read_bytes(), sampling)

    @unittest.skipUnless(VERSION >= (3, 3), "random numbers come from generators that no seed reaches")
    def test_16_a_restart_costs_no_bit_with_any_parameter_that_draws_random_numbers(self):
        (self.folder / "ranking.txt").write_text("".join(
            f"{row % 3} qid:{row // 10} 0:{row % 7} 1:{row % 11} 2:{row % 13}\n" for row in range(300)))
        for workers in (1, 3) if AT_NIGHT else (2,):
            output = self.worker(workers, "resumed", f"{HEART}?indexing_mode=1", "ranking.txt")
            self.assertNotIn("differs", output)
            self.assertEqual(output.count(f"tried {24 if VERSION >= (3, 4) else 23}"), workers, output)

    def test_11_a_file_that_is_not_a_checkpoint_is_not_overwritten(self):
        mine = self.folder / "model.json.so-far.ubj"
        mine.write_text("what is this?")
        output = self.worker(2, "checkpointed", f"{HEART}?indexing_mode=1", "model.json", "9", "-1", code=1)
        self.assertRegex(output, "ValueError: .*so-far.ubj exists and is not a checkpoint")
        self.assertEqual(mine.read_text(), "what is this?")

    def test_12_a_worker_that_ends_during_collectives_is_named_although_the_others_fail_too(self):
        ends = {"kill": (128 + signal.SIGKILL, r"was killed by signal 9"), "exit": (3, "exited with code 3")}
        if COLLECTIVE:
            ends["vanish"] = (1, r"exited with code 0 \(rank 1 .* was lost: it ended without a shutdown\)")
        for how, (code, story) in ends.items():
            output = self.worker(4, "fail", how, "busy", code=code)
            self.assertRegex(output, rf"error: worker 1 \(rank 1, .*\) {story}")
            self.assert_gone(output)
        if COLLECTIVE:
            output = self.worker(3, "fail", "vanish", "busy", code=1, options=["--local-num-attempt", "1"])
            self.assertRegex(output, r"error: worker 1 .* was lost: .* on attempt 2 of 2")

    @unittest.skipUnless(VERSION >= (2, 0), "a DMatrix reads text by itself")
    def test_13_dmatrix_of_a_text_file_takes_the_arguments_of_2018(self):
        (self.folder / "train.txt").write_text("".join(f"{row % 2} 0:1 1:{row % 5}\n" for row in range(200)))
        code = """
import pathlib, numpy as np, xgboost as xgb
import warren.compat
seven = np.full(200, 7.0)
for matrix in (xgb.DMatrix("train.txt", seven), xgb.DMatrix(data="train.txt", label=seven)):
    assert (matrix.get_label() == 7).all()
assert (xgb.DMatrix("train.txt", weight=seven).get_weight() == 7).all()
assert (xgb.DMatrix("train.txt", base_margin=seven).get_base_margin() == 7).all()
named = xgb.DMatrix(pathlib.Path("train.txt"), feature_names=["a", "b"], feature_types=["int", "q"], group=[150, 50])
assert named.feature_names == ["a", "b"] and named.feature_types == ["int", "q"]
assert named.get_uint_info("group_ptr").tolist() == [0, 150, 200]
assert xgb.DMatrix("train.txt#dtrain.cache").num_row() == 200
named.save_binary("saved.data")
assert xgb.DMatrix("saved.data").num_row() == 200
try:
    xgb.DMatrix("train.txt", bogus=1)
    raise SystemExit("a bogus option was taken")
except TypeError:
    print("all well")
"""
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env=environment(), cwd=self.folder,
                              timeout=LIMIT_S, check=False)
        self.assertIn("all well", done.stdout, done.stderr)
        self.assertNotIn("Exception ignored", done.stderr)

    def test_07_many_workers_come_together(self):
        self.worker(MANY_WORKERS, "join")

    def test_08_a_script_of_2018_runs_unchanged(self):
        (self.folder / "train.txt").write_text(
            "".join(f"{row % 2} {row % 2}:1 2:{row % 5}\n" for row in range(200)))
        output = self.submit(2, "-W", "ignore", "-m", "warren.compat", FOLDER / "tutorial_2018.py", "train.txt", "a.model")
        self.assertEqual(output.count("Finished training"), 2, output)
        self.assertIn("train-error:0.0", output)
        self.assertTrue((self.folder / "a.model").exists())

    def test_14_idioms_of_the_versions_of_2018_still_work(self):
        (self.folder / "rows.txt").write_text("".join(
            f"{int(row % 7 > 2) ^ int(row % 11 == 0)} 0:{row % 7} 1:{row % 5} 2:{row % 3} 3:{row % 2}\n"
            for row in range(210)))
        script = FOLDER / "idioms_2018.py"
        done = subprocess.run([PYTHON, "-W", "ignore", "-m", "warren.compat", script, "rows.txt", self.folder],
                              capture_output=True, text=True, env=environment(sklearn=True), cwd=self.folder, timeout=LIMIT_S,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("done: "), script.read_text().count("def idiom_"), done.stdout)

    def test_15_exit_code_of_a_script_of_2018_becomes_that_of_its_worker(self):
        (self.folder / "train.txt").write_text("".join(f"{row % 2} 0:1 1:{row % 5}\n" for row in range(200)))
        ends = {"raise ValueError('no such luck')": (1, "ValueError: no such luck"), "sys.exit(7)": (7, ""),
                "sys.exit('no such luck')": (1, "no such luck"), "raise KeyboardInterrupt": (130, "KeyboardInterrupt")}
        for end, (code, story) in ends.items():
            (self.folder / "script.py").write_text(f"""
import sys, time
import xgboost as xgb
xgb.rabit.init()
bst = xgb.train({{"max_depth": 2}}, xgb.DMatrix("train.txt"), 2)
if xgb.rabit.get_rank() == 1:
    {end}
time.sleep({SEVERAL_MINUTES_S})
""")
            output = self.submit(3, "-W", "ignore", "-m", "warren.compat", "script.py", code=code)
            self.assertRegex(output, rf"error: worker 1 \(rank 1, .*\) exited with code {code} on attempt 1 of 1")
            self.assertIn(story, output)

    def test_20_compat_may_be_imported_before_and_after_xgboost_and_warren_xgboost(self):
        for names in ("warren.compat, warren.xgboost", "warren.xgboost, warren.compat", "warren.compat, xgboost, warren.xgboost"):
            code = f"import {names}; import xgboost; print('size', xgboost.rabit.get_world_size())"
            done = subprocess.run([PYTHON, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment(), cwd=self.folder,
                                  timeout=LIMIT_S, check=False)
            self.assertEqual(done.stdout, "size 1\n", names + done.stderr)

    @unittest.skipUnless(COLLECTIVE, "XGBoost up to 2.0 reads the environment itself")
    def test_21_compat_joins_scripts_that_name_no_tracker(self):
        ways = {"init": "collective.init()\ntell()\ncollective.finalize()",
                "context": "with collective.CommunicatorContext():\n    tell()",
                "failing": "with collective.CommunicatorContext():\n    tell()\n    if collective.get_rank() == 1:\n"
                           "        raise ValueError('no such luck')\n    collective.broadcast('', 1)"}
        for way, code in ways.items():
            (self.folder / "script.py").write_text(f"""
from xgboost import collective
def tell():
    print("sum", collective.get_world_size(), len(collective.broadcast("said", 1)))
{code}
""")
            fails = way == "failing"
            output = self.submit(2, "-W", "ignore", "-m", "warren.compat", "script.py", code=int(fails))
            self.assertEqual(output.count("sum 2 4"), 2, output)
            if fails:
                self.assertRegex(output, r"error: worker 1 \(rank 1, ")
                self.assertIn("ValueError: no such luck", output)

    @unittest.skipUnless(COLLECTIVE, "XGBoost up to 2.0 has no error port: a launcher ends its workers")
    def test_09_without_a_launcher_the_tracker_ends_the_survivors_of_a_killed_worker(self):
        tracker = self.enterContext(local_tracker(3))
        workers = [subprocess.Popen([PYTHON, FOLDER / "any_xgboost_worker.py", "fail", "kill"], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, cwd=self.folder,
                                    env={**environment(), **tracker.env, "DMLC_TASK_ID": str(task)}) for task in range(3)]
        begin = time.monotonic()
        codes = [worker.wait(LIMIT_S) for worker in workers]
        for worker in workers:
            worker.stdout.close()
        self.assertEqual(codes, [255, -signal.SIGKILL, 255])
        self.assertLess(time.monotonic() - begin, SEVERAL_MINUTES_S / 4)

    @unittest.skipUnless(COLLECTIVE, "the tracker of XGBoost up to 2.0 is another class")
    def test_10_scenarios_of_the_tests_of_xgboosts_tracker_pass(self):
        for host in ("127.0.0.1", *nightly("::1")):
            done = subprocess.run([PYTHON, FOLDER / "tracker_scenarios.py", host], capture_output=True, text=True,
                                  env=environment(), timeout=2 * LIMIT_S, check=False)
            self.assertIn("all well", done.stdout, done.stderr)
            for number in range(4):
                self.assertIn(f"heard from {number}\n", done.stderr)


if __name__ == "__main__":
    unittest.main()

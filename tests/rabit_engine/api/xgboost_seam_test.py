"""XGBoost 1.7 over our engine: each function of the engine, our errors as XGBoost's errors, threads, and the switch back to
XGBoost's engine.

tests/interop tests that training gives the same models.
"""

import os
import subprocess
import tempfile
import textwrap
import unittest

from api_testing import BIN, LIB, alone, environment, job
from warren_testing import Tracker

PYTHON = "/usr/bin/python3"
PRELOAD = f"LD_PRELOAD={LIB}/librabit_xgboost.so"


def python(code, preload=True):
    return ["env", PRELOAD if preload else "UNUSED=1", PYTHON, "-W", "ignore", "-c", textwrap.dedent(code)]


class EngineFunctions(unittest.TestCase):
    def test_each_does_what_xgboosts_own_does(self):
        for engine in ("warren", "own"):
            for workers in (1, 2, 3, 4):
                with self.subTest(engine=engine, workers=workers):
                    done = job(workers, BIN / "api-seam-caller", WARREN_XGBOOST_ENGINE=engine)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertRegex(done.stdout, r"(?m)^printed through the engine$")

    def test_errors_are_those_that_xgboost_catches(self):
        done = job(2, BIN / "api-seam-caller", "fail")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in range(2):
            self.assertIn(f"caught: rank {rank}: XGBoost's broadcast: the buffer of 8 bytes is NULL", done.stdout)

    def test_the_variable_that_chooses_the_engine_takes_three_values(self):
        done = alone(BIN / "api-seam-caller", WARREN_XGBOOST_ENGINE="other")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("WARREN_XGBOOST_ENGINE is 'other', expected 'own', 'warren' or 'auto'", done.stderr)


class Usage(unittest.TestCase):
    """The warning if XGBoost communicates by itself although librabit_xgboost.so is loaded."""

    LINE = "rabit: librabit_xgboost.so is loaded, but XGBoost did not communicate over it; "

    def test_the_order_of_libraries_is_named_in_a_job(self):
        with tempfile.TemporaryDirectory() as folder:
            for program, env, said in (("api-xgboost-before-seam", {"DMLC_TRACKER_URI": "127.0.0.1"}, 1),
                                       ("api-xgboost-before-seam", {}, 0),
                                       ("api-seam-caller", {"DMLC_TRACKER_URI": ""}, 0)):  # fmt: skip
                done = alone(BIN / program, os.path.join(folder, "model.json"), **env)
                if program == "api-xgboost-before-seam":
                    self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count(self.LINE + "XGBoost's own functions come first"), said, done.stderr)

    def test_a_job_that_communicates_over_it_says_nothing(self):
        self.assertNotIn(self.LINE, job(2, BIN / "api-seam-caller").stderr)


class Python(unittest.TestCase):
    ALLREDUCE = """
        import numpy, xgboost.collective as c
        c.init()
        total = c.allreduce(numpy.full(3, c.get_rank() + 1.0), c.Op.SUM)
        text = c.broadcast("hello" if c.get_rank() == 1 else None, 1)
        print(f"{c.get_rank()} of {c.get_world_size()}: {total.tolist()} {text} {bool(c.get_processor_name())}", flush=True)
        c.communicator_print("printed by %d\\n" % c.get_rank())
        c.finalize()
    """

    def test_preloading_puts_our_engine_under_pythons_xgboost(self):
        for preload in (True, False):
            done = job(3, *python(self.ALLREDUCE, preload), WARREN_PRINT_CHOICE="1")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for rank in range(3):
                self.assertIn(f"{rank} of 3: [6.0, 6.0, 6.0] hello True", done.stdout)
                self.assertRegex(done.stdout, rf"(?m)^printed by {rank}$")
            self.assertEqual("rabit: allreduce of" in done.stderr, preload, done.stderr)

    def test_the_variable_gives_the_communication_back_to_xgboost(self):
        done = job(3, *python(self.ALLREDUCE), WARREN_PRINT_CHOICE="1", WARREN_XGBOOST_ENGINE="own")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 3: [6.0, 6.0, 6.0] hello True", done.stdout)
        self.assertNotIn("rabit: allreduce of", done.stderr)

    def test_a_wrong_call_is_an_xgboost_error(self):
        done = job(2, *python("""
            import ctypes, xgboost, xgboost.collective as c
            from xgboost.core import _LIB, _check_call
            c.init()
            try:
                _check_call(_LIB.XGCommunicatorBroadcast(ctypes.byref(ctypes.c_int()), 4, 5))
            except xgboost.core.XGBoostError as error:
                print("caught", error, flush=True)
            c.finalize()
        """))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in range(2):
            self.assertIn(f"caught rank {rank}: XGBoost's broadcast: root 5 is not a rank; ranks are 0 to 1", done.stdout)

    def test_a_peer_that_dies_is_an_xgboost_error_and_no_crash(self):
        # This job is started without dmlc-submit, which would stop the survivor immediately.
        command = python("""
            import numpy, os, xgboost, xgboost.collective as c
            c.init()
            if c.get_rank() == 1: os._exit(7)
            try:
                c.allreduce(numpy.ones(100000), c.Op.SUM)
            except xgboost.core.XGBoostError as error:
                print("caught", error, flush=True)
            c.finalize()
        """)
        with Tracker("--num-workers", 2) as tracker:
            workers = [subprocess.Popen(command, env=environment(**{**tracker.env, "DMLC_TASK_ID": str(task)}),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                       for task in range(2)]
            outputs = [worker.communicate(timeout=60) for worker in workers]
        ends = sorted((worker.returncode, out) for worker, (out, _) in zip(workers, outputs))
        self.assertRegex(ends[0][1], r"caught rank 0: XGBoost's allreduce: .*rank 1", str(outputs))
        self.assertEqual([code for code, _ in ends], [0, 7], str(outputs))

    def test_a_tracker_that_is_not_there_is_an_xgboost_error_with_the_reason(self):
        done = alone(*python("""
            import xgboost, xgboost.collective as c
            try:
                c.init(DMLC_TRACKER_URI="127.0.0.1", DMLC_TRACKER_PORT=1, DMLC_WORKER_CONNECT_RETRY=1)
            except xgboost.core.XGBoostError as error:
                print("caught", error)
        """))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"caught XGBoost's Init: .*127\.0\.0\.1")

    def test_threads_of_one_process_can_be_workers_of_one_job(self):
        with Tracker("--num-workers", 2) as tracker:
            done = alone(*python(f"""
                import numpy, threading, xgboost.collective as c
                def work(task):
                    c.init(rabit_tracker_uri="{tracker.host}", rabit_tracker_port={tracker.port}, rabit_task_id=str(task))
                    total = c.allreduce(numpy.array([float(task + 1)]), c.Op.SUM)
                    print(f"{{c.get_rank()}} {{c.get_world_size()}} {{total}}\\n", end="", flush=True)
                    c.finalize()
                threads = [threading.Thread(target=work, args=[task]) for task in range(2)]
                for thread in threads: thread.start()
                for thread in threads: thread.join()
                print(c.get_rank(), c.get_world_size(), "outside")
            """))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(done.stdout.splitlines()), ["0 1 outside", "0 2 [3.]", "1 2 [3.]"])
            code, log = tracker.finish()
            self.assertEqual(code, 0, log)

    def test_training_without_a_job_does_not_notice(self):
        models = [alone(*python("""
            import numpy, xgboost
            x = numpy.arange(600.0).reshape(200, 3) % 17
            b = xgboost.train({"tree_method": "hist", "nthread": 1}, xgboost.DMatrix(x, x.sum(axis=1)), 3)
            print(b.save_raw("json").decode())
        """, preload)) for preload in (True, False)]
        self.assertEqual(models[0].returncode, 0, models[0].stderr)
        self.assertEqual(models[0].stdout, models[1].stdout)


if __name__ == "__main__":
    unittest.main()

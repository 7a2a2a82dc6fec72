"""Processes that do not know the job's token send pickles that run code. No pickle is loaded, and except for checkpoints, the error names
the sender's rank. There are two kinds of such processes. One has taken a rank before the job's worker could, and sends through XGBoost's
own communicator. The other is linked with the other ranks, and sends through each call that transfers Python objects."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import forking
from warren_testing import BIN, local_tracker, package_environment

PYTHON = os.environ.get("XGBOOST_PYTHON", "/usr/bin/python3")
FOLDER = pathlib.Path(__file__).parent
#: The packages that workers import, by library. XGBOOST_PATH is the folder of XGBoost if it is not an installed package.
PACKAGES = {"rabit": ("numpy", ), "xgboost": ("numpy", "xgboost"), "horovod": ("numpy", "torch.distributed")}
XGBOOST_PATH = os.environ.get("XGBOOST_PATH", "")
LIMIT_S = 100

# A stranger that takes a rank with XGBoost's own functions. With XGBoost 2.1 and later, workers then agree on whether to use Warren's
# engine: the stranger objects, and sends a pickle instead of its reason.
STRANGER = """
import os, sys
sys.path.insert(0, os.environ["WORKER_PATH"])
import numpy as np, xgboost
class Evil:
    def __reduce__(self):
        return exec, ("import os; open(os.environ['RAN'], 'w').close()",)
module = xgboost.collective
version = tuple(int(part) for part in xgboost.__version__.split(".")[:2])
if version >= (2, 1):
    arguments = dict(dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"], dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]),
                     dmlc_task_id=os.environ["DMLC_TASK_ID"])
else:
    arguments = dict(DMLC_TRACKER_URI=os.environ["DMLC_TRACKER_URI"], DMLC_TRACKER_PORT=os.environ["DMLC_TRACKER_PORT"],
                     DMLC_TASK_ID=os.environ["DMLC_TASK_ID"])
print("WAITS", flush=True)
module.init(**arguments)
print("RANK", module.get_rank(), flush=True)
if version >= (2, 1):
    from warren._xgboost import engine as _xgboost_engine
    module.allreduce(np.array((*_xgboost_engine._greeting(), 2 - module.get_rank(), 2), np.int32), module.Op.MAX)
for _ in range(4):
    module.broadcast(Evil(), module.get_rank())
"""
VICTIM = """
import os, sys
sys.path.insert(0, os.environ["WORKER_PATH"])
import warren.xgboost
from warren._xgboost import vouch
vouch.task_id_of = lambda task_id, *_: task_id
with warren.xgboost.communicator():
    print("JOINED as", warren.xgboost.get_rank(), flush=True)
    print("GOT", warren.xgboost.broadcast("from 0", 0), flush=True)
"""


class Pickles(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check_nothing_ran(self, output):
        self.assertFalse((self.folder / "ran-in-task-0").exists(), output)

    def send(self, face, door, arms="none", options=(), **more):
        done = subprocess.run([BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", "2", *options,
                               forking.python(PYTHON, *PACKAGES[face]), FOLDER / "pickles_worker.py", door, arms, self.folder, face],
                              capture_output=True, text=True, timeout=LIMIT_S, env=package_environment(**more), check=False)
        output = done.stdout + done.stderr
        self.assertIn("GOT", output)
        if arms == "right":  # with the right token the code must run; otherwise these tests would prove nothing
            self.assertTrue((self.folder / "ran-in-task-0").exists(), output)
            (self.folder / "ran-in-task-0").unlink()
            return output
        self.check_nothing_ran(output)
        self.assertRegex(output, r"GOT RuntimeError: .*the message of rank 1 was refused and not unpickled"
                         if door != "checkpoint" else r"GOT RuntimeError: .*was refused and not unpickled")
        return output

    def test_each_call_that_sends_objects_refuses_what_is_not_sealed_with_the_token(self):
        for door in ("rabit.broadcast", "broadcast", "allgather", "plain", "scatter", "gather"):
            with self.subTest(door):
                self.send("rabit", door, "right") if door not in ("scatter", "gather") else None
                self.assertIn("it is not sealed", self.send("rabit", door))
                self.assertIn("its seal does not match", self.send("rabit", door, "other"))

    def test_a_checkpoint_that_another_rank_sends_in_recovery_is_refused(self):
        options = ("--local-num-attempt", "1")
        self.send("rabit", "checkpoint", "right", options)
        self.assertIn("it is not sealed", self.send("rabit", "checkpoint", options=options))

    def test_horovods_objects_are_refused(self):
        found = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        if subprocess.run([PYTHON, "-c", found], check=False).returncode:
            self.skipTest("SKIPPED: no PyTorch")
        for door in ("horovod.broadcast_object", "horovod.allgather_object"):
            with self.subTest(door):
                self.send("horovod", door, "right")
                self.assertIn("it is not sealed", self.send("horovod", door))

    def test_over_xgboosts_own_communication_too(self):
        for door in ("xgboost.broadcast", "allgather"):
            for engine in ("own", "auto"):
                with self.subTest(door, engine=engine):
                    self.send("xgboost", door, "right", WARREN_XGBOOST_ENGINE=engine)
                    self.assertIn("it is not sealed", self.send("xgboost", door, WARREN_XGBOOST_ENGINE=engine))

    def start(self, code, tracker, task, **more):
        env = package_environment(**{**tracker.env, "DMLC_TASK_ID": str(task), "RAN": str(self.folder / f"ran-in-task-{task}"),
                                     "WORKER_PATH": XGBOOST_PATH, **more})
        if not more.get("DMLC_JOB_TOKEN", "set"):
            del env["DMLC_JOB_TOKEN"]
        python = forking.python(PYTHON, *PACKAGES["xgboost"], path=XGBOOST_PATH)
        process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_stranger_that_took_a_rank_of_a_job_sends_in_vain(self):
        """The tracker admits the stranger because of --admit any and because the worker joins without a ticket."""
        with local_tracker(2, "--admit", "any", "--sortby", "task") as tracker:
            stranger = self.start(STRANGER, tracker, 1, DMLC_JOB_TOKEN="")
            self.assertIn("WAITS", stranger.stdout.readline())
            victim = self.start(VICTIM, tracker, 0)
            output, _ = victim.communicate(timeout=LIMIT_S)
            self.check_nothing_ran(output)
            self.assertNotEqual(victim.returncode, 0, output)
            self.assertNotIn("JOINED", output)
            # XGBoost 2.1 and later may first notice that the stranger makes a different call. Then the call fails, or a thread of XGBoost
            # ends the process.
            self.assertRegex(output, "does not have the job's token|did not prove knowledge of the job's token|"
                             "failed while the workers proved the job's token to each other|Another worker is running into error")


if __name__ == "__main__":
    unittest.main()

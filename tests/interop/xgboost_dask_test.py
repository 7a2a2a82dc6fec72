"""xgboost.dask over Warren's engine: a LocalCluster of Dask, and an XGBoost, from PyPI."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from warren_testing import BIN, SOURCE

PLACE = BIN.parent / "interop/venv-dask"
PACKAGES = ["dask[distributed,array,dataframe]", "scipy", "xgboost-cpu==3.2.0"]
LIMIT_S = 200

PROGRAM = """
import json, os, signal, sys, time
import numpy as np
import dask.array as da
import xgboost as xgb
from dask.distributed import Client, LocalCluster
from xgboost import dask as dxgb

WORKERS, ROWS, COLUMNS = 3, 6000, 8

X = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.float32)

class Killer(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch == 3 and xgb.collective.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

def served():
    from warren import _xgboost_engine
    return _xgboost_engine.num_served()

def main():
    how = sys.argv[1]
    preload = ["warren.xgboost"] if how == "preload" else []
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, preload=preload) as cluster, \\
            Client(cluster) as client:
        if how in ("plugin", "kill", "restart"):
            import warren.xgboost
            client.register_plugin(warren.xgboost.dask_plugin())
        if how == "restart":  # a worker that is killed, which Dask starts again
            pids = set(client.run(os.getpid).values())
            os.kill(min(pids), signal.SIGKILL)
            while len(now := set(client.run(os.getpid, on_error="ignore").values())) < WORKERS or now == pids:
                time.sleep(0.1)
        x = da.from_array(X, chunks=(ROWS // 6, COLUMNS))
        y = da.from_array(Y, chunks=ROWS // 6)
        begin = time.monotonic()
        said = {}
        try:
            for _ in range(2):
                found = dxgb.train(client, {"tree_method": "hist", "nthread": 1, "objective": "binary:logistic"},
                                   dxgb.DaskDMatrix(client, x, y), 8, callbacks=[Killer()] if how == "kill" else None)
                said["trees"] = found["booster"].num_boosted_rounds()
                said["loss"] = float(found["booster"].eval(xgb.DMatrix(X, Y)).rpartition(":")[2])
        except xgb.core.XGBoostError as error:
            said["error"] = str(error)
        said["seconds"] = time.monotonic() - begin
        if how != "kill":
            said["served"] = list(client.run(served).values())
        print("said", json.dumps(said), flush=True)

if __name__ == "__main__":
    main()
"""


class XgboostDask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        python = PLACE / "bin/python"
        if not (PLACE / "ready").exists():
            subprocess.run(["/usr/bin/python3", "-m", "venv", PLACE], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
            (PLACE / "ready").touch()

    def said(self, how):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "program.py").write_text(PROGRAM)
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(BIN.parent),
                       "OMP_NUM_THREADS": "1"}
        done = subprocess.run([PLACE / "bin/python", folder / "program.py", how], capture_output=True, text=True, cwd=folder,
                              env=environment, timeout=LIMIT_S, check=False)
        found = re.search(r"said (\{.*\})", done.stdout)
        self.assertIsNotNone(found, done.stdout + done.stderr)
        return json.loads(found[1])

    def test_training_goes_over_warrens_engine(self):
        own = self.said("own")
        self.assertEqual((own["trees"], own["served"]), (8, [0, 0, 0]))
        for how in ("plugin", "preload", "restart"):
            ours = self.said(how)
            self.assertEqual(ours["trees"], 8)
            self.assertTrue(all(calls > 20 for calls in ours["served"]), ours)
            self.assertAlmostEqual(ours["loss"], own["loss"], delta=0.05)  # Dask deals the rows out otherwise each time

    def test_a_killed_worker_is_named(self):
        said = self.said("kill")
        self.assertRegex(said["error"], r"over Warren's engine: .*rank 1")


if __name__ == "__main__":
    unittest.main()

"""xgboost.dask over Warren's engine, in a LocalCluster, with Dask and XGBoost from PyPI."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from warren_testing import BIN, package_environment

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
    from warren._xgboost import engine as _xgboost_engine
    return _xgboost_engine.num_served()

def main():
    preload = ["warren.xgboost"] if sys.argv[1] == "preload" else []
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, preload=preload) as cluster, \\
            Client(cluster) as client:
        for how in sys.argv[1:]:
            print("said", json.dumps(train(client, how)), flush=True)

def train(client, how):
    if how == "plugin":
        import warren.xgboost
        client.register_plugin(warren.xgboost.dask_plugin())
    if how == "restart":  # a worker that is killed, which Dask starts again
        pids = set(client.run(os.getpid).values())
        os.kill(min(pids), signal.SIGKILL)
        while len(now := set(client.run(os.getpid, on_error="ignore").values())) < WORKERS or now == pids:
            time.sleep(0.1)
    before = client.run(served)
    x = da.from_array(X, chunks=(ROWS // 6, COLUMNS))
    y = da.from_array(Y, chunks=ROWS // 6)
    said = {}
    try:
        for _ in range(2):
            found = dxgb.train(client, {"tree_method": "hist", "nthread": 1, "objective": "binary:logistic"},
                               dxgb.DaskDMatrix(client, x, y), 8, callbacks=[Killer()] if how == "kill" else None)
            said["trees"] = found["booster"].num_boosted_rounds()
            said["loss"] = float(found["booster"].eval(xgb.DMatrix(X, Y)).rpartition(":")[2])
    except xgb.core.XGBoostError as error:
        said["error"] = str(error)
    if how != "kill":
        said["served"] = [calls - before[worker] for worker, calls in client.run(served).items()]
    return said

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

    def said(self, *hows):
        """Trains on a Dask cluster in each of these ways. Returns a report on each."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "program.py").write_text(PROGRAM)
        done = subprocess.run([PLACE / "bin/python", folder / "program.py", *hows], capture_output=True, text=True, cwd=folder,
                              env=package_environment(), timeout=LIMIT_S, check=False)
        found = re.findall(r"said (\{.*\})", done.stdout)
        self.assertEqual(len(found), len(hows), done.stdout + done.stderr)
        return [json.loads(said) for said in found]

    def test_training_goes_over_warrens_engine_and_a_killed_worker_is_named(self):
        own, *over_warren, killed = self.said("own", "plugin", "restart", "kill")
        self.assertEqual((own["trees"], own["served"]), (8, [0, 0, 0]))
        for ours in [*over_warren, *self.said("preload")]:
            self.assertEqual(ours["trees"], 8)
            self.assertTrue(all(calls > 20 for calls in ours["served"]), ours)
            self.assertAlmostEqual(ours["loss"], own["loss"], delta=0.05)  # Dask distributes the rows differently each time
        self.assertRegex(killed["error"], r"over Warren's engine: .*rank 1")


if __name__ == "__main__":
    unittest.main()

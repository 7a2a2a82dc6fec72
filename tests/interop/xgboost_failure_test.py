"""An XGBoost worker raises in the middle of training. By default, dmlc-submit shows only that worker's traceback, just before
dmlc-submit's own error."""

import pathlib
import subprocess
import tempfile
import unittest

from training import PYTHON, WITHOUT_SKLEARN
from warren_testing import BIN, package_environment

LIMIT_S = 120
WORKERS = 4
SCRIPT = """
import numpy, xgboost
from xgboost.callback import TrainingCallback

class Fails(TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch == 3 and xgboost.collective.get_rank() == 1:
            raise ValueError("no column 7 in round 3")
        return False

xgboost.collective.init()
values = numpy.random.default_rng(xgboost.collective.get_rank()).random((200, 5))
data = xgboost.DMatrix(values, (values[:, 0] > 0.5).astype(float))
xgboost.train({"nthread": 1}, data, 100, callbacks=[Fails()])
xgboost.collective.finalize()
"""
TRACEBACK = "Traceback (most recent call last):"


class XgboostFailure(unittest.TestCase):
    def train(self, *options):
        """Runs the job. Returns dmlc-submit's standard error, as lines, and the logs of the workers."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "train.py").write_text(SCRIPT)
            done = subprocess.run(
                [BIN / "dmlc-submit", "--num-workers", str(WORKERS), "--port", "0", "--log-dir", "logs", *options, PYTHON, "train.py"],
                cwd=folder, capture_output=True, text=True, timeout=LIMIT_S,
                env=package_environment(PYTHONPATH=str(WITHOUT_SKLEARN), PYTHONUNBUFFERED="1"))
            self.assertEqual(done.returncode, 1, done.stderr)
            logs = [path.read_text() for path in sorted((pathlib.Path(folder) / "logs").glob("*.log"))]
            return done.stderr.splitlines(), logs

    def test_the_only_traceback_is_that_of_the_one_that_raised(self):
        lines, logs = self.train()
        shown = "\n".join(lines)
        self.assertEqual(shown.count(TRACEBACK), 1, shown)
        begin = lines.index(f"[1] {TRACEBACK}")
        self.assertEqual(lines[-2], "[1] ValueError: no column 7 in round 3", shown)
        self.assertTrue(all(line.startswith("[1] ") for line in lines[begin:-1]), shown)
        self.assertRegex(lines[-1], r"^dmlc-submit: error: worker 1 \(rank 1, .*\) exited with code 1 on attempt 1 of 1")
        # The whole error is shown, as in the log.
        own = [line for line in logs[1].splitlines() if line]
        own = own[own.index(TRACEBACK):]
        self.assertEqual([line.partition("] ")[2] for line in lines[begin:-1]], own)
        echoes = sum(TRACEBACK in log for log in logs) - 1  # other workers may be stopped before they print anything
        self.assertEqual("failed as a consequence" in shown, echoes > 0, shown)

    def test_all_tracebacks_are_shown_when_asked_for(self):
        lines, logs = self.train("--show-all-errors")
        shown = "\n".join(lines)
        self.assertGreaterEqual(shown.count(TRACEBACK), sum(TRACEBACK in log for log in logs), shown)
        self.assertIn("dmlc-submit: the last output of worker 1:", shown)


if __name__ == "__main__":
    unittest.main()

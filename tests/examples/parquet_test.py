"""examples/parquet: in one process and as a job, reading from disk and from S3."""
import arrow_python  # noqa: F401  # pylint: disable=unused-import,wrong-import-order
import os
import pathlib
import re
import subprocess
import sys
import unittest

import pyarrow.parquet as pq

import object_stores
from programs import BIN, LIMIT_S, ProgramTest, environment

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
EXAMPLE = SOURCE / "examples/parquet"


class Parquet(ProgramTest):
    def run_it(self, *words, **more):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT_S, check=False, env={**environment(), "PYTHONPATH": str(SOURCE / "python/src"),
                                                                 "WARREN_NATIVE": os.path.dirname(BIN), **more})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_late_flights_are_foreseen_by_one_worker_and_by_three(self):
        self.run_it(sys.executable, EXAMPLE / "make_data.py", "bucket/flights", "30000")
        job = [os.path.join(BIN, "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", "3", "--"]
        with object_stores.S3Server(self.folder) as server:
            for start, data, workers, more in (([], "bucket/flights", 1, {}), (job, "bucket/flights", 3, {}),
                                               (job, "s3://bucket/flights", 3, server.environment())):
                with self.subTest(workers=workers, data=data):
                    output = f"predictions-{workers}-{len(data)}.parquet"
                    said = self.run_it(*start, sys.executable, EXAMPLE / "train.py", data, output, **more)
                    found = re.search(r"(\d) workers: AUC (0\.\d+) after \d+ rounds", said)
                    self.assertEqual(int(found[1]), workers)
                    self.assertGreater(float(found[2]), 0.62)
                    predicted = pq.read_table(self.path(output))["prediction"].to_pylist()
                    self.assertEqual(len(predicted), 7000)
                    self.assertTrue(all(0 < value < 1 for value in predicted))


if __name__ == "__main__":
    unittest.main()

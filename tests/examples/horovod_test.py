"""examples/horovod/train.py, with Debian's PyTorch, alone and as a job."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from warren_testing import BIN, SOURCE

PYTHON = "/usr/bin/python3"
TRAIN = SOURCE / "examples/horovod/train.py"
LIMIT_S = 120

found = subprocess.run([PYTHON, "-c", "import numpy, torch"], check=False, stderr=subprocess.DEVNULL)
WHY_NOT = None if found.returncode == 0 else f"SKIPPED: {PYTHON} has no PyTorch; apt-get install python3-torch"
if WHY_NOT:
    print(WHY_NOT, file=sys.stderr)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Train(unittest.TestCase):
    def run_well(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([*words, TRAIN, "--epochs", "4"], cwd=folder, text=True, timeout=LIMIT_S, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, "WARREN_NATIVE": str(BIN.parent), "PYTHONPATH": str(SOURCE / "python/src")})
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def expect_learned(self, said, size):
        self.assertEqual(said.count("epoch "), 4, said)
        right, count, ranks = re.search(r"(\d+) of (\d+) are right \(.*\), by (\d+) ranks", said).groups()
        self.assertEqual(int(ranks), size)
        self.assertGreater(int(right), int(count) * 0.8, said)

    def test_learns_alone(self):
        self.expect_learned(self.run_well(PYTHON), 1)

    def test_learns_on_three_ranks(self):
        self.expect_learned(self.run_well(BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", "3",
                                          PYTHON), 3)


if __name__ == "__main__":
    unittest.main()

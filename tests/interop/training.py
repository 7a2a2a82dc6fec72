"""Base class of the tests that train with real XGBoost."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from warren_testing import BIN, package_environment

HEART = "/usr/share/doc/liblinear-tools/examples/heart_scale"
PYTHON = "/usr/bin/python3"
WITHOUT_SKLEARN = pathlib.Path(__file__).parent / "without_sklearn"


class TrainingCase(unittest.TestCase):
    """Creates data in a temporary folder: heart.txt (270 rows), mushroom.train and .test (binary features), smooth.train (20 continuous
    features)."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chdir(cls.folder.name)
        with open(HEART) as heart, open("heart.txt", "w") as out:
            out.writelines(re.sub(r"^-1 ", "0 ", line) for line in heart)
        cls.make("mushroom.train", "--features", 126, "--density", 0.175, "--binary-features", "--rows", 6513)
        cls.make("mushroom.test", "--features", 126, "--density", 0.175, "--binary-features", "--rows", 1611,
                 "--first-row", 6513)
        cls.make("smooth.train", "--features", 20, "--density", 1, "--rows", 8000)

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.folder.cleanup()

    @classmethod
    def make(cls, path, *options):
        subprocess.run([BIN / "make_libsvm", *map(str, options), "--output", path], check=True)

    @staticmethod
    def read(name):
        return pathlib.Path(name).read_bytes()

    def run_program(self, command, fails=False, **environment):
        """Runs a program, which must fail if, and only if, `fails`. Returns its output, stdout first."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200,
                              env=package_environment(PYTHONPATH=str(WITHOUT_SKLEARN), **environment))
        self.assertEqual(done.returncode != 0, fails, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def distributed(self, count, command, **how):
        """Like run_program, with `count` workers."""
        return self.run_program([BIN / "dmlc-submit", "--num-workers", count, "--port", 0, *command], **how)

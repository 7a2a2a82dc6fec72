"""The examples for frameworks (torch, kvstore, horovod), as jobs of dmlc-submit and under mpirun, with which Horovod's users start jobs."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import forking
from programs import BIN, ProgramTest
from warren_testing import at_night

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
PYTHON = "/usr/bin/python3"
WORKERS = 3
HAS_DIGITS = subprocess.run([PYTHON, "-c", "import torch, sklearn"], stderr=subprocess.DEVNULL, check=False).returncode == 0
WITHOUT_MPIRUN = None if shutil.which("mpirun.openmpi") else "SKIPPED: no mpirun.openmpi for the examples; apt-get install openmpi-bin"
LAUNCHERS = ["dmlc-submit", *([] if WITHOUT_MPIRUN else ["mpirun"])]
needs_mpirun = unittest.skipIf(WITHOUT_MPIRUN, WITHOUT_MPIRUN)
needs_digits = unittest.skipUnless(HAS_DIGITS, "SKIPPED: python3-torch or python3-sklearn is not installed")


class Frameworks(ProgramTest):
    PATHS = {"PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(pathlib.Path(BIN).parent)}

    @property
    def warm(self):
        return [forking.python(PYTHON, *(["torch", "torch.nn.parallel", "sklearn.datasets"] if HAS_DIGITS else ["numpy"]))]

    def launched(self, launcher, *words):
        """Runs an example as a job of `launcher`, or as a single process if that is neither dmlc-submit nor mpirun. Returns its output."""
        if launcher == "dmlc-submit":
            start = [os.path.join(BIN, "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(WORKERS)]
        elif launcher == "mpirun":
            hosts = self.path(self.write("hosts", f"localhost slots={WORKERS}\n"))
            start = f"mpirun.openmpi --allow-run-as-root -np {WORKERS} --hostfile {hosts} -bind-to none -map-by slot -mca pml ob1 " \
                    "-mca btl ^openib".split()
        else:
            start = []
        return self.run_well("/usr/bin/env", *(f"{name}={value}" for name, value in self.PATHS.items()), *start,
                             *(self.warm if start else [PYTHON]), *words)

    @needs_digits
    def test_digits_are_learned_by_data_parallel_training(self):
        for launcher, epochs in zip(LAUNCHERS, ("--epochs=20", "--epochs=8")):
            with self.subTest(launcher=launcher):
                said = self.launched(launcher, SOURCE / "examples/torch/data_parallel.py", epochs)
                self.assertRegex(said, rf"warren, {WORKERS} ranks: (100\.0|9\d\.\d) % of the test digits")

    def learn_digits(self, launcher, *modes):
        for mode in modes:
            with self.subTest(launcher=launcher, mode=mode):
                said = self.launched(launcher, SOURCE / "examples/torch/digits.py", "--mode", mode)
                self.assertRegex(said, rf"{mode}, {WORKERS} workers: (100\.0|9\d\.\d) % of the test digits\n")

    @needs_digits
    def test_digits_are_learned_in_each_of_torchmpis_modes(self):
        self.learn_digits("dmlc-submit", "allreduce", "allreduce-async", "downpour", "easgd")

    @at_night
    @needs_mpirun
    @needs_digits
    def test_digits_are_learned_under_mpirun(self):
        self.learn_digits("mpirun", "easgd")

    def find_linear_model(self, launcher):
        for store in ("dist_sync_mpi", "dist_sync", "dist_async"):
            with self.subTest(launcher=launcher, store=store):
                said = self.launched(launcher, SOURCE / "examples/kvstore/train.py", "--kv-store", store)
                for worker in range(WORKERS):  # without a line end, since mpirun may mix the workers' output
                    self.assertIn(f"worker {worker} of {WORKERS}, {store}: weight [ 2.  -3.   0.5  4. ], bias [1.]", said)

    def test_the_linear_model_is_found_through_each_store(self):
        self.find_linear_model("dmlc-submit")

    @at_night
    @needs_mpirun
    def test_the_linear_model_is_found_through_each_store_under_mpirun(self):
        self.find_linear_model("mpirun")

    @needs_digits
    def test_horovods_training_learns_alone_and_as_a_job(self):
        for launcher in ["nobody", *LAUNCHERS]:
            with self.subTest(launcher=launcher):
                said = self.launched(launcher, SOURCE / "examples/horovod/train.py", "--epochs", "4")
                self.assertEqual(said.count("epoch "), 4, said)
                right, count, ranks = re.search(r"(\d+) of (\d+) are right \(.*\), by (\d+) ranks", said).groups()
                self.assertEqual(int(ranks), 1 if launcher == "nobody" else WORKERS)
                self.assertGreater(int(right), int(count) * 0.8, said)


if __name__ == "__main__":
    unittest.main()

"""examples/torch/digits.py and examples/kvstore/train.py, as jobs."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from programs import BIN, ProgramTest

SOURCE = pathlib.Path(os.environ["WARREN_SOURCE"])
PYTHON = "/usr/bin/python3"
HAS_DIGITS = subprocess.run([PYTHON, "-c", "import torch, sklearn"], stderr=subprocess.DEVNULL, check=False).returncode == 0


#: As the users of Horovod, TorchMPI and MXNet write it; the hosts are behind it.
MPIRUN = "mpirun.openmpi --allow-run-as-root -np {} -bind-to none -map-by slot -mca pml ob1 -mca btl ^openib --hostfile"


class ParameterServers(ProgramTest):
    def launched(self, launcher, *words):
        paths = {"PYTHONPATH": str(SOURCE / "python/src"), "WARREN_NATIVE": str(pathlib.Path(BIN).parent)}
        return self.run_well("/usr/bin/env", *(f"{name}={value}" for name, value in paths.items()), *launcher, PYTHON, *words)

    def job(self, workers, *words):
        submit = [os.path.join(BIN, "dmlc-submit"), "--cluster", "local", "--port", "0", "--num-workers", str(workers)]
        return self.launched(submit, *words)

    @unittest.skipUnless(shutil.which("mpirun.openmpi") and HAS_DIGITS, "SKIPPED: openmpi-bin, python3-torch or python3-sklearn "
                         "is not installed")
    def test_mpirun_starts_them_as_they_are(self):
        with tempfile.NamedTemporaryFile("w") as hosts:
            hosts.write("localhost slots=3\n")
            hosts.flush()
            mpirun = [*MPIRUN.format(3).split(), hosts.name]
            for store in ("dist_sync_mpi", "dist_async"):
                said = self.launched(mpirun, SOURCE / "examples/kvstore/train.py", "--kv-store", store)
                for worker in range(3):
                    self.assertIn(f"worker {worker} of 3, {store}: weight [ 2.  -3.   0.5  4. ], bias [1.]\n", said)
            for mode in ("allreduce-async", "easgd"):
                said = self.launched(mpirun, SOURCE / "examples/torch/digits.py", "--mode", mode)
                self.assertRegex(said, rf"(?m)^{mode}, 3 workers: (100\.0|9\d\.\d) % of the test digits$")

    @unittest.skipUnless(HAS_DIGITS, "SKIPPED: python3-torch or python3-sklearn is not installed")
    def test_digits_are_learned_in_each_mode(self):
        for mode in ("allreduce", "allreduce-async", "downpour", "easgd"):
            with self.subTest(mode=mode):
                said = self.job(2, SOURCE / "examples/torch/digits.py", "--mode", mode)
                self.assertRegex(said, rf"(?m)^\[0\] {mode}, 2 workers: (100\.0|9\d\.\d) % of the test digits$")

    def test_the_linear_model_is_found_through_each_store(self):
        for store in ("dist_sync_mpi", "dist_sync", "dist_async"):
            with self.subTest(store=store):
                said = self.job(3, SOURCE / "examples/kvstore/train.py", "--kv-store", store)
                for worker in range(3):
                    self.assertIn(f"worker {worker} of 3, {store}: weight [ 2.  -3.   0.5  4. ], bias [1.]\n", said)


if __name__ == "__main__":
    unittest.main()

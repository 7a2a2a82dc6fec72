"""scripts/gpu-check itself: what it packs runs elsewhere, on GPUs of the stand-in it passes, without a GPU it fails."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from devices import LIB
from warren_testing import BIN, SOURCE


class GpuCheck(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="warren-gpu-check-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name, "packed")
        packed = subprocess.run([SOURCE / "scripts" / "gpu-check", "--pack", self.folder, "--build", BIN.parent],
                                capture_output=True, text=True, check=False)
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertRegex(packed.stdout, r"6 files of ours, \d+ libraries")

    def check(self, **env):
        report = self.folder / "report.md"
        done = subprocess.run([self.folder / "gpu-check", "--tests-only", "--report", report], cwd=self.folder, text=True,
                              env={**os.environ, **env}, capture_output=True, timeout=420, check=False)
        return done, report.read_text(encoding="utf-8")

    def test_on_gpus_of_the_stand_in(self):
        for name in ("device_worker", "histgbt"):
            shutil.copy2(BIN / f"{name}_on_a_stand_in", self.folder / "bin" / name)
        for file, name in (("librabit_cuda_on_a_stand_in.so", "librabit_cuda.so"), ("libstand_in_cudart.so",) * 2):
            shutil.copy2(LIB / file, self.folder / "lib" / name)
        done, report = self.check(RABIT_NCCL_PATH=str(LIB / "libstand_in_nccl.so"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 failed,", report)
        for line in ("| 8 ranks share a GPU | passed |", "| 4 ranks on NCCL, one GPU | passed |",
                     "| rank 1 dies in version 0, call 0, NCCL | passed |", "| a rank hangs, the host | passed |",
                     "| histgbt on the GPU, 4 ranks | passed |"):
            self.assertIn(line, report)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU here")
    def test_without_a_gpu(self):
        done, report = self.check(RABIT_NCCL_PATH="/no/such/file")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("| one rank | FAILED |", report)
        self.assertIn("No GPU can be used here", report)

    def test_where_it_is_built_it_says_what_to_do(self):
        done = subprocess.run([SOURCE / "scripts" / "gpu-check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--pack FOLDER first", done.stderr)


if __name__ == "__main__":
    unittest.main()

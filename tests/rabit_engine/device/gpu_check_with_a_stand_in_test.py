"""scripts/gpu-check: its package runs in another folder, passes on the stand-in's GPUs, and fails without a GPU."""

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
        self.assertRegex(packed.stdout, r"7 files of Warren, \d+ libraries")

    def check(self, *words, **env):
        report = self.folder / "report.md"
        done = subprocess.run([self.folder / "gpu-check", *words, "--report", report], cwd=self.folder, text=True,
                              env={**os.environ, **env}, capture_output=True, timeout=420, check=False)
        return done, report.read_text(encoding="utf-8")

    def test_on_gpus_of_the_stand_in(self):
        for name in ("device_worker", "device-bench", "histgbt"):
            shutil.copy2(BIN / f"{name}_on_a_stand_in", self.folder / "bin" / name)
        for file, name in (("librabit_cuda_on_a_stand_in.so", "librabit_cuda.so"), ("libstand_in_cudart.so",) * 2):
            shutil.copy2(LIB / file, self.folder / "lib" / name)
        python = "/usr/bin/python3"  # has Debian's XGBoost, without CUDA
        xgboost = subprocess.run([python, "-W", "ignore", "-c", "import xgboost; print(xgboost.__version__)"], text=True,
                                 capture_output=True, check=True).stdout.strip()
        done, report = self.check("--rows", "5000", "--most", "65536", "--python", python,
                                  WARREN_NCCL_PATH=str(LIB / "libstand_in_nccl.so"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 failed,", report)
        for line in ("| 8 ranks share a GPU | passed |", "| 4 ranks on NCCL, one GPU | passed |",
                     "| rank 1 dies in version 0, call 0, NCCL | passed |", "| a rank hangs, the host | passed |",
                     "| histgbt on the GPU, 4 ranks | passed |", "| a CUDA graph, 2 ranks on NCCL | passed |",
                     "| 9 ranks share a GPU | passed |", f"| XGBoost {xgboost} hist | cuda | failed | |"):
            self.assertIn(line, report)
        # The measured numbers mean nothing here, but must be in the report.
        number = r"[0-9.,]+"
        for line in (rf"A sum of 1,024 bytes of host memory by a handle, 2 ranks, .* both at once {number} us",
                     rf"Copies on the device: {number} GB/s", rf"The histogram kernel, 5,000 rows of 28 features: {number} us",
                     rf"\| 65,536( \| {number}){{8}} \|", rf"\| 16,384 \| {number} \| {number} \| {number}% \|",
                     rf"\| histgbt \| cuda \| {number} \| {number} \|", rf"\| XGBoost \S+ hist \| cpu \| {number} \| {number} \|"):
            self.assertRegex(report, line)
        self.assertEqual(report.count("failed | |"), 1, report)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU here")
    def test_without_a_gpu(self):
        done, report = self.check("--tests-only", WARREN_NCCL_PATH="/no/such/file")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("| one rank | FAILED |", report)
        self.assertIn("No GPU can be used here", report)

    def test_where_it_is_built_it_says_what_to_do(self):
        done = subprocess.run([SOURCE / "scripts" / "gpu-check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run it with --pack FOLDER", done.stderr)


if __name__ == "__main__":
    unittest.main()

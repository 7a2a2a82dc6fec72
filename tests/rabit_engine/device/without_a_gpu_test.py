"""The errors of the real CUDA part on a machine without a driver, and the error if the CUDA part is missing."""

import os
import unittest

from devices import LIB, run


@unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU here")
class WithoutGpuTest(unittest.TestCase):
    def run_real(self, **env):
        return run(2, "check", worker="device_worker", env={"WARREN_CUDA_LIBRARY": str(LIB / "librabit_cuda.so"), **env})

    def test_no_driver(self):
        result = self.run_real()
        self.assertNotEqual(result.code, 0, str(result))
        self.assertRegex(result.errors, r"rank \d: RabitDeviceSelect: counting GPUs: CUDA reported 'CUDA driver version is "
                                        r"insufficient for CUDA runtime version' \(cudaErrorInsufficientDriver\)\. No GPU can be "
                                        r"used here: either there is no NVIDIA driver, or it is too old .*check with `nvidia-smi`")

    def test_it_is_found_beside_librabit(self):
        result = self.run_real(WARREN_CUDA_LIBRARY="")
        self.assertIn("CUDA reported", result.errors)

    def test_no_cuda_part(self):
        result = self.run_real(WARREN_CUDA_LIBRARY="/no/such/file.so")
        self.assertNotEqual(result.code, 0, str(result))
        self.assertRegex(result.errors, r"device collectives need librabit_cuda.so, and it could not be loaded:\n.*/no/such/file.so")


if __name__ == "__main__":
    unittest.main()

"""Runs coll_check on this machine's processor and, cross-compiled and under an emulator, on 64-bit Arm."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from warren_testing import BIN, SOURCE

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
SOURCES = (
    "rabit_engine/base/descriptor.cc",
    "rabit_engine/xgboost/coll_calls.cc",
    "rabit_engine/xgboost/coll_table.cc",
    "rabit_engine/xgboost/loaded_library.cc",
    "rabit_engine/xgboost/vtable.cc",
    "tests/rabit_engine/xgboost/coll_check.cc",
)
CONVENTIONS = ("by_reference", "by_value", "with_context")
LIMIT_S = 250


class CollCalls(unittest.TestCase):
    def check(self, *command):
        for convention in CONVENTIONS:
            with self.subTest(convention):
                done = subprocess.run([*command, convention], capture_output=True, text=True, timeout=LIMIT_S, check=False)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "all calls arrive as they were made\n", ""))

    @unittest.skipIf("address" in os.environ.get("WARREN_SANITIZE", ""),
                     "SKIPPED: the search for a vtable reads all constants of a library, and the sanitizer forbids what is between them")
    def test_calls_arrive_here(self):
        self.check(BIN / "xgboost-coll-check")

    def test_calls_arrive_on_64_bit_arm(self):
        for program in (COMPILER, EMULATOR):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        with tempfile.TemporaryDirectory(prefix="warren-arm-") as folder:
            os.symlink("/usr/include/fmt", pathlib.Path(folder) / "fmt")  # a header-only library
            program = pathlib.Path(folder) / "coll_check"
            subprocess.run(
                [COMPILER, "-std=c++20", "-O2", "-static", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY", f"-I{SOURCE}",
                 "-isystem", folder, *(str(SOURCE / file) for file in SOURCES), "-o", program], check=True, timeout=LIMIT_S)  # fmt: skip
            self.check(EMULATOR, program)


if __name__ == "__main__":
    unittest.main()

"""The NEON kernels return the results of the plain parser. They are cross-compiled and run under an emulator."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from warren_testing import SOURCE

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
SOURCES = ("data/array.cc", "data/error.cc", "data/row_block.cc", "data/text/libsvm.cc", "data/text/number.cc",
           "data/text/simd/kernels.cc", "data/text/simd/neon.cc", "tests/data/neon_check.cc")
# These libraries are header-only, so this machine's copies can be used.
HEADERS = ("fmt", "fast_float")
LIMIT_S = 250


class Neon(unittest.TestCase):
    def test_it_reads_what_the_plain_parser_reads(self):
        for program in (COMPILER, EMULATOR):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        with tempfile.TemporaryDirectory(prefix="warren-neon-") as folder:
            for header in HEADERS:
                os.symlink(pathlib.Path("/usr/include") / header, pathlib.Path(folder) / header)
            program = pathlib.Path(folder) / "neon_check"
            subprocess.run([COMPILER, "-std=c++20", "-O2", "-static", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY",
                            f"-I{SOURCE}", "-isystem", folder, *(str(SOURCE / file) for file in SOURCES), "-o", program],
                           check=True, timeout=LIMIT_S)
            done = subprocess.run([EMULATOR, program], capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, "20000 texts are the same\n"))


if __name__ == "__main__":
    unittest.main()

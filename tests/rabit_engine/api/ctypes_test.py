"""librabit.so loaded from Python with ctypes, alone and in jobs."""

import sys
import unittest

from api_testing import HERE, LIB, alone, job


class Ctypes(unittest.TestCase):
    def test_a_python_program_needs_nothing_but_the_library(self):
        command = [sys.executable, HERE / "ctypes_worker.py", LIB / "librabit.so"]
        done = alone(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        for workers in (1, 2, 3):
            done = job(workers, *command)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(done.stdout.count("printed from Python"), 1)
            for rank in range(workers):
                self.assertIn(f"worker {rank} done", done.stdout)


if __name__ == "__main__":
    unittest.main()

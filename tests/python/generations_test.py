"""Workers that leave their communicator and join the next generation's leak nothing, over each transport."""
import os
import pathlib
import re
import subprocess
import unittest

from warren_testing import AT_NIGHT, BIN, SOURCE

WORKER = pathlib.Path(__file__).with_name("generations_worker.py")
NUMBER = 1000 if AT_NIGHT else 60
LIMIT_S = 800
#: How much memory may differ, in KiB: allocators keep some. A thousand leaks of the vector that is reduced would be 800 MB.
SLACK_KIB = 4000


class Generations(unittest.TestCase):
    def check(self, *options, **transport):
        done = subprocess.run([BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", "3:3", *options, "/usr/bin/python3", WORKER, str(NUMBER)],
                              env={**os.environ, "WARREN_NATIVE": str(BIN.parent), "PYTHONPATH": str(SOURCE / "python/src"), **transport},
                              text=True, timeout=LIMIT_S, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        found = re.findall(r"held (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", done.stdout)
        self.assertEqual(len(found), 3, done.stdout[-3000:])
        for words in found:
            files, threads, memory, files_late, threads_late, memory_late = map(int, words)
            self.assertLessEqual((files_late, threads_late), (files, threads))
            self.assertLess(memory_late, memory + SLACK_KIB)

    def test_a_program_that_joins_no_generation_is_told_what_to_do(self):
        program = "from warren import rabit; rabit.init()"
        done = subprocess.run([BIN / "dmlc-submit", "--cluster", "local", "--port", "0", "--num-workers", "1:2", "/usr/bin/python3", "-c", program],
                              env={**os.environ, "WARREN_NATIVE": str(BIN.parent), "PYTHONPATH": str(SOURCE / "python/src")},
                              text=True, timeout=LIMIT_S, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("with a fixed number, --num-workers N", done.stdout)
        self.assertNotIn("dropped", done.stdout)

    def test_over_shared_memory(self):
        self.check()

    def test_over_tcp(self):
        self.check(WARREN_SHARED_MEMORY="off")

    def test_over_tls(self):
        self.check("--tls", WARREN_SHARED_MEMORY="off")


if __name__ == "__main__":
    unittest.main()

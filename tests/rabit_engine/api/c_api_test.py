"""The C APIs from C: programs that check their own results, and the errors of invalid calls."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from api_testing import HERE, INCLUDE, LIB, SANITIZE, WARNINGS, alone, job

ERROR_EXIT_CODE = 255


def compiled(name, folder):
    """Compiles a C program of users/, links it with librabit and returns the path of the executable."""
    program = pathlib.Path(folder) / name
    sanitize = [f"-fsanitize={SANITIZE}"] if SANITIZE else []
    subprocess.run([os.environ["WARREN_CXX"], "-x", "c", "-std=c99", *WARNINGS, *sanitize, "-I", INCLUDE,
                    HERE / f"users/{name}.c", "-x", "none", "-L", LIB, "-lrabit", "-lm", f"-Wl,-rpath,{LIB}", "-o", program],
                   check=True)
    return program


class C(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.program = compiled("program", cls.folder)

    def check(self, program, printed):
        """Checks that the program ends well and prints a line, alone and in jobs of 1 to 4 workers."""
        for done in [alone(program), *(job(workers, program) for workers in (1, 2, 3, 4))]:
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(printed, done.stdout)

    def test_a_c_program_finds_all_it_expects(self):
        self.check(self.program, "printed from C\n")

    def test_calls_with_one_count_for_each_rank_and_lightgbms(self):
        slices = compiled("slices", self.folder)
        self.check(slices, "all slices well\n")
        for setting in ({"WARREN_SHARED_MEMORY": "off"}, {"WARREN_HOST_GROUP": "alone"}):
            done = job(4, slices, **setting)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_calls_without_waiting_and_their_options(self):
        self.check(compiled("handles", self.folder), "all handles well\n")

    def test_misuse_is_printed_with_rank_and_call_and_ends_the_process(self):
        for how, message in {
            "early": "rank unknown: RabitAllreduce: called before Init",
            "late": "rank 0: RabitBroadcast: called after Finalize",
            "null": "rank 0: RabitAllreduce: the buffer of 3 elements is NULL",
            "type": "rank 0: RabitAllreduce: 12 is not an element type",
            "operation": "rank 0: RabitAllreduce: -1 is not an operation",
            "or": "rank 0: RabitAllreduce: there is no bitwise or of double",
            "half or": "rank 0: RabitAllreduce: there is no bitwise or of float16",
            "root": "rank 0: RabitBroadcast: root 99 is not a rank; ranks are 0 to 0",
        }.items():
            with self.subTest(how):
                done = alone(self.program, f"misuse={how}")
                self.assertEqual(done.returncode, ERROR_EXIT_CODE, done.stderr)
                self.assertTrue(done.stderr.startswith(message), done.stderr)

    def test_an_init_that_fails_prints_why_and_returns_false(self):
        done = alone(self.program, DMLC_TRACKER_URI="127.0.0.1", DMLC_TRACKER_PORT="1", DMLC_WORKER_CONNECT_RETRY="1")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("RabitInit: ", done.stderr)
        self.assertIn("127.0.0.1", done.stderr)


if __name__ == "__main__":
    unittest.main()

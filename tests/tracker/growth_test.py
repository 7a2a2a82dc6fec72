"""The tracker's cost per worker hardly grows with the number of workers. Compares counts, not times, of whole jobs of 500 and of 2,000
workers, from the first hello to the last shutdown. Callgrind counts instructions, with nearly the same result every time."""

import re
import subprocess
import tempfile
import unittest

from warren_testing import BIN

FEW, MANY = 500, 2000
# A worker among 2,000 costs as much as one among 500, except for searches in trees: log(2000) / log(500) = 1.22.
MOST = 1.25


def counts(*arguments):
    """Returns the numbers of instructions, allocations and allocated bytes of a job."""
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", BIN / "whole_job",
                               *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"whole_job {arguments}: exit code {done.returncode}\n{done.stderr}")
    instructions = int(re.search(r"Collected : (\d+)", done.stderr)[1])
    allocations, allocated = map(int, re.fullmatch(r"(\d+) allocations, (\d+) bytes\n", done.stdout).groups())
    return {"instructions": instructions, "allocations": allocations, "bytes allocated": allocated}


class Growth(unittest.TestCase):
    def check(self, *arguments):
        few, many = (counts(arguments[0], workers, *arguments[1:]) for workers in (FEW, MANY))
        for what, count in few.items():
            ratio = many[what] / MANY / (count / FEW)
            print(f"{' '.join(arguments)}: {count // FEW} {what} a worker of {FEW}, {many[what] // MANY} of {MANY}")
            self.assertLess(ratio, MOST, f"{what} a worker")

    def test_of_rabit(self):
        self.check("classic")

    def test_of_xgboost_2_1(self):
        self.check("collective")

    def test_of_ours(self):
        self.check("classic", "authenticated")


if __name__ == "__main__":
    unittest.main()

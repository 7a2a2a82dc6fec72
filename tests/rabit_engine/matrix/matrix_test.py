"""Every algorithm over every transport with real processes: all results are exact to the bit and the same everywhere.

WARREN_MATRIX=full ctest -R engine_matrix: every type with every operation around every size where the engine may change the
algorithm or how it divides the data, about 40 minutes on 2 cores.
"""

import os
import subprocess
import unittest

from jobs import TCP, WORKER, Job

OVER_LINKS = subprocess.run([WORKER, "algorithms"], check=True, capture_output=True, text=True).stdout.split()
SANITIZED = os.environ.get("WARREN_SANITIZED") == "1"
FULL = os.environ.get("WARREN_MATRIX") == "full"
RANKS = [int(n) for n in os.environ.get("WARREN_MATRIX_RANKS", "1 2 3 4 5 6 7 8 9").split()]


class MatrixTest(unittest.TestCase):
    def checksum(self, num_workers, *arguments, seconds=240, **how):
        with Job(num_workers, *arguments, **how) as job:
            return job.checksum(self, seconds)

    def test_every_way_gives_the_bits_of_the_reference(self):
        ways = [("shared memory", {}), ("TCP", TCP)]
        for algorithm in OVER_LINKS:
            ways.append((f"{algorithm} over TCP", {**TCP, "WARREN_ALGORITHM": algorithm}))
            ways.append((f"{algorithm} over TCP, packed", {**TCP, "WARREN_ALGORITHM": algorithm, "WARREN_PACKING": "always"}))
            ways.append((f"{algorithm} over rings", {"WARREN_ALGORITHM": algorithm}))
        if SANITIZED:
            ways = ways[:2] + ways[2::3]
        for num_workers in RANKS:
            seen = {}
            for name, env in ways:
                with self.subTest(ranks=num_workers, way=name):
                    seen[name] = self.checksum(num_workers, "all", env=env)
                    if FULL:
                        seen[name] += self.checksum(num_workers, "every", env=env, seconds=3000)
            self.assertEqual(len(set(seen.values())), 1, f"{num_workers} ranks: {seen}")

    def test_random_sequences_of_collectives(self):
        for num_workers in RANKS:
            expected = self.checksum(num_workers, "random", 150, env=TCP)
            with self.subTest(ranks=num_workers):
                self.assertEqual(self.checksum(num_workers, "random", 150), expected)
                self.assertEqual(self.checksum(num_workers, "random", 150, env={**TCP, "WARREN_PACKING": "always"}), expected)


if __name__ == "__main__":
    unittest.main()

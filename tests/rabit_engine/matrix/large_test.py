"""Buffers of more than 4 GiB, with 2 ranks: a longer run, which needs 12 GiB of memory and takes several minutes.

WARREN_MATRIX=full ctest -R engine_large
"""

import os
import unittest

from jobs import TCP, Job

FULL = os.environ.get("WARREN_MATRIX") == "full"
WAYS = {
    "shared memory": {},
    "TCP": TCP,
    "ring": {**TCP, "WARREN_ALGORITHM": "ring"},
}


@unittest.skipUnless(FULL, "SKIPPED: a longer run: WARREN_MATRIX=full")
class LargeTest(unittest.TestCase):
    def test_buffers_of_more_than_four_gib(self):
        for name, env in WAYS.items():
            with self.subTest(way=name), Job(2, "large", 2**32 + 1_000_003, env=env) as job:
                job.checksum(self, 1500)


if __name__ == "__main__":
    unittest.main()

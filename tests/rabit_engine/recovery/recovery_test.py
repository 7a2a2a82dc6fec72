"""A worker that dies at any call comes back, and what comes out has the bits it would have had."""

import os
import unittest

from training import CALLS, VERSIONS, train

FULL = os.environ.get("WARREN_SWEEP") == "full"
TCP = {"RABIT_SHARED_MEMORY": "off"}
RANKS = 4


class RecoveryCase(unittest.TestCase):
    undisturbed = {}

    def expected(self, num_workers, *words):
        key = (num_workers, words)
        if key not in self.undisturbed:
            # The order of reduction is fixed by rank alone: hosts and transports give the same bits.
            result = train(num_workers, *(word for word in words if not word.startswith("hosts=")))
            self.assertEqual(result.code, 0, result.errors)
            self.assertEqual(len(result.digests), num_workers)
            self.undisturbed[key] = result.digests
        return self.undisturbed[key]

    def check(self, *deaths, num_workers=RANKS, words=(), env=None, attempts=3):
        mocks = [f"mock={rank},{version},{call},{trial}" for rank, version, call, trial in deaths]
        result = train(num_workers, *words, *mocks, attempts=attempts, env=env)
        self.assertEqual(result.code, 0, result.errors)
        self.assertEqual(result.errors.count(" as mock="), len(deaths), result.errors)
        self.assertEqual(result.digests, self.expected(num_workers, *words), result.errors)


class SweepTest(RecoveryCase):
    def sweep(self, words, env, step):
        points = [(rank, version, call) for rank in range(RANKS) for version in range(VERSIONS)
                  for call in range(CALLS + 1)]
        for number, (rank, version, call) in enumerate(points):
            if FULL or number % step == 0:
                with self.subTest(rank=rank, version=version, call=call):
                    self.check((rank, version, call, 0), words=words, env=env)

    def test_every_call_over_shared_memory(self):
        self.sweep((), None, 5)

    def test_every_call_over_tcp(self):
        self.sweep((), TCP, 7)

    def test_every_call_between_two_hosts(self):
        self.sweep(("hosts=2",), None, 11)

    def test_every_call_with_lazy_checkpoints(self):
        self.sweep(("lazy",), None, 11)


class SeveralTest(RecoveryCase):
    def test_the_end(self):
        self.check((1, VERSIONS, 0, 0))

    def test_two_at_the_same_call(self):
        self.check((0, 1, 4, 0), (2, 1, 4, 0))

    def test_all_but_one(self):
        self.check((0, 1, 2, 0), (1, 1, 3, 0), (3, 1, 2, 0))

    def test_again_while_it_catches_up(self):
        self.check((2, 1, 6, 0), (2, 1, 3, 1), (2, 1, 6, 2))

    def test_another_while_one_catches_up(self):
        self.check((2, 1, 6, 0), (0, 1, 6, 0), (1, 1, 7, 0))

    def test_one_that_leaves_without_finalize_ends_the_job(self):
        result = train(RANKS, "leaves=1", attempts=3)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.errors, r"worker \d \(.*\) exited with code 0 without Finalize, where others wait for it: "
                                        r"the job can never go on; the other 3 processes were stopped")

    def test_at_a_checkpoint_and_right_after_it(self):
        self.check((3, 0, CALLS, 0), (1, 1, 0, 0))


if __name__ == "__main__":
    unittest.main()

"""A rank dies while named operations are agreed on, carried out or ended: all other ranks report which rank has died."""

import random
import re
import signal
import time
import unittest

from jobs import SOON_SECONDS, TCP, Job, on_hosts
from warren_testing import BIN

AIMED = BIN / "named_loss_worker"
NAMED = BIN / "named_worker"
TRANSPORTS = {"shared memory": {}, "TCP": {"env": TCP}, "hosts": on_hosts("aabba")}
# The ranks' actions, and the points where one rank dies: see named_loss_worker.cc.
NEGOTIATION = [("new", point, when) for point in ("lengths", "names", "answer-length", "answer") for when in ("before", "after")]
PACKING = [("packed", "packed", "before"), ("packed", "packed", "after")]
JOIN = [("join", "words", "before"), ("joined", "one", "before"), ("joined", "one", "after")]
CLOSE = [("close", "words", "before"), ("leave", "words", "before")]


class NamedLoss(unittest.TestCase):
    def sweep(self, points):
        for transport, environment in TRANSPORTS.items():
            for point in points:
                # One victim is an ordinary rank, the other is rank 0, the coordinator.
                for ranks, victim in ((4, 2), (5, 0)):
                    with self.subTest(transport=transport, point=point, ranks=ranks, victim=victim), \
                            Job(ranks, *point, victim, program=AIMED, **environment) as job:
                        self.are_told(job, victim, f"{transport}: {' '.join(point)}")

    def are_told(self, job, victim, what):
        for worker in job.workers:
            job.by_rank[int(worker.stdout.readline().split()[1])] = worker
        _, said = job.by_rank[victim].communicate(timeout=20)
        died = self.said_at("dies", said)
        self.assertEqual(job.by_rank[victim].returncode, -signal.SIGKILL)
        seconds = []
        for rank, worker in job.by_rank.items():
            if rank == victim:
                continue
            _, errors = worker.communicate(timeout=20)
            self.assertEqual(worker.returncode, 2, errors)
            self.assertRegex(errors, rf"rank {victim}\b")
            seconds.append(self.said_at("told", errors) - died)
        print(f"{what}: all others told of rank {victim} within {max(seconds):.3f} s")
        self.assertLess(max(seconds), SOON_SECONDS)

    def said_at(self, what, said):
        found = re.search(rf"^{what} at ([\d.]+)$", said, re.MULTILINE)
        self.assertIsNotNone(found, said)
        return float(found[1])

    def test_a_rank_that_dies_in_the_negotiation_of_new_names_is_named(self):
        self.sweep(NEGOTIATION)

    def test_a_rank_that_dies_in_a_packed_operation_is_named(self):
        self.sweep(PACKING)

    def test_a_rank_that_dies_while_others_join_is_named(self):
        self.sweep(JOIN)

    def test_a_rank_that_dies_while_others_end_the_named_operations_is_named(self):
        self.sweep(CLOSE)

    def test_a_rank_that_dies_at_any_time_is_named(self):
        for transport, environment in TRANSPORTS.items():
            for seed in range(6):
                with self.subTest(transport=transport, seed=seed), Job(5, "storm", seed, program=NAMED, **environment) as job:
                    drawn = random.Random(seed)
                    victim = drawn.randrange(5)
                    job.await_ready()
                    time.sleep(drawn.random() / 10)
                    begin = time.monotonic()
                    job.kill(victim, self)
                    print(f"{transport}: any time: all others ended {time.monotonic() - begin:.3f} s after rank {victim}")


if __name__ == "__main__":
    unittest.main()

"""warren/collectives.h: every call over every transport, the loss of a rank in every kind of call, and timeouts."""

import unittest

from jobs import TCP, Job, on_hosts
from warren_testing import BIN

WORKER = BIN / "collectives_face_worker"
OPERATIONS = ("allreduce", "small allreduce", "reduce", "reduce-scatter", "broadcast", "allgather", "gather", "scatter",
              "all-to-all", "barrier", "receive", "send", "split", "handle", "handle of a message")
BEGUN = ("handle", "handle of a message", "handle of a small allreduce", "handle of an all-to-all", "handle of a broadcast",
         "handle of a barrier")


class EveryCall(unittest.TestCase):
    def test_gives_the_right_result_over_every_transport(self):
        for ranks in (1, 2, 3, 4, 7):
            for name, environment in {"shared memory": {}, "TCP": {"env": TCP}, "hosts": on_hosts("abababa"),
                                      "rings": {"env": {"WARREN_ALGORITHM": "pairwise"}}}.items():
                with self.subTest(ranks=ranks, transport=name), Job(ranks, "check", program=WORKER, **environment) as job:
                    job.succeed(self, 60)

    def test_hosts_are_those_of_the_ranks(self):
        with Job(5, "check", program=WORKER, **on_hosts("aabbb")) as job:
            _, results = job.finish(60)
            said = sorted(out.partition(" is ")[2].strip() for out, _ in results)
            self.assertEqual(said, sorted(["0 of 2 on its host and 0 of 2 across", "1 of 2 on its host and 0 of 2 across",
                                           "0 of 3 on its host and 1 of 2 across", "1 of 3 on its host and 1 of 2 across",
                                           "2 of 3 on its host and 0 of 1 across"]), results)


class Loss(unittest.TestCase):
    def sweep(self, ranks, victim, **environment):
        for operation in OPERATIONS:
            with self.subTest(operation=operation, ranks=ranks), \
                    Job(ranks, "wait", operation, victim, program=WORKER, **environment) as job:
                job.await_ready()
                job.kill(victim, self)

    def test_in_every_call_all_others_are_told_within_a_second_over_shared_memory(self):
        self.sweep(4, 2)

    def test_in_every_call_all_others_are_told_within_a_second_over_tcp(self):
        self.sweep(4, 1, env=TCP)

    def test_in_every_call_all_others_are_told_within_a_second_on_several_hosts(self):
        self.sweep(5, 3, **on_hosts("aabba"))


class Late(unittest.TestCase):
    def test_a_call_with_a_timeout_ends_with_its_name_and_the_rank_that_does_not_come(self):
        for ranks, name, environment in ((2, "shared memory", {}), (2, "TCP", {"env": TCP}), (3, "shared memory", {}),
                                         (3, "TCP", {"env": TCP}), (4, "hosts", on_hosts("aabb"))):
            for operation in BEGUN:
                with self.subTest(operation=operation, ranks=ranks, transport=name), \
                        Job(ranks, "late", operation, 1, program=WORKER, **environment) as job:
                    job.await_ready()
                    for rank in set(job.by_rank) - {1}:
                        worker = job.by_rank[rank]
                        errors = worker.communicate(timeout=20)[1]
                        self.assertEqual(worker.returncode, 2, errors)
                        self.assertRegex(errors, rf"^rank {rank}, .*: Warren\w+Async 'gradients': ")
                        if ranks == 2:  # with more ranks, a rank may wait for another that is itself waiting
                            self.assertRegex(errors, r" has waited \d\S* s for .*rank 1\b")


if __name__ == "__main__":
    unittest.main()

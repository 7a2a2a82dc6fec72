"""Ranks that wait for each other's messages get an error; a very long wait is reported with the rank that is waited for."""

import contextlib
import re
import unittest

from jobs import TCP, Job, on_hosts
from warren_testing import BIN

WORKER = BIN / "deadlock_worker"
TRANSPORTS = {"shared memory": ({}, {}), "TCP": (TCP, {}), "hosts": ({}, on_hosts("abab")), "other hosts": ({}, on_hosts("aabb"))}


class Deadlock(unittest.TestCase):
    def over_every_transport(self, what, ranks, where="world", env=None):
        """Runs one job per transport, all in parallel since they mostly wait. Yields each transport's name, exit codes and errors."""
        with contextlib.ExitStack() as stack:
            jobs = {name: stack.enter_context(Job(ranks, what, where, program=WORKER, **environment,
                                                  env={**(env or {}), **variables}))
                    for name, (variables, environment) in TRANSPORTS.items()}
            for name, job in jobs.items():
                codes, results = job.finish(60)
                yield name, codes, [errors for _, errors in results]

    def check(self, what, ranks, circles, where="world", or_else=None):
        """Checks that all ranks fail: some report one of `circles`, which are cycles of waiting ranks, and the errors of the others name such a
        rank. Instead, `or_else`, if given, may match the errors over a transport where no rank reports a cycle."""
        for transport, codes, errors in self.over_every_transport(what, ranks, where):
            said = f"{what} over {transport}: " + "".join(errors)
            self.assertEqual(codes, [2] * ranks, said)
            found = re.findall("rank ([0-9]+): ranks wait for each other's messages, and none of them can go on: "
                               "((?:rank [0-9]+ waits for )+)rank ([0-9]+)\\. Let one of two ranks send first", said)
            if not found and or_else:
                self.assertRegex(said, or_else)
                continue
            self.assertTrue(found, said)
            for rank, path, last in found:
                self.assertEqual(rank, last)
                circle = [int(number) for number in re.findall("[0-9]+", path)]
                lowest = circle.index(min(circle))
                self.assertIn(circle[lowest:] + circle[:lowest], circles, said)
            for error in errors:
                if "each other's messages" not in error:
                    self.assertRegex(error, "rank (%s)\\b" % "|".join(rank for rank, _, _ in found))

    def test_two_ranks_that_receive_of_each_other(self):
        self.check("receives", 4, [[0, 1]])
        self.check("handles", 3, [[0, 1]])
        self.check("after messages", 4, [[0, 1]])

    def test_in_a_group_messages_name_the_ranks_of_the_job(self):
        self.check("receives", 4, [[2, 3]], "group")
        self.check("receives", 2, [[0, 1]], "group")

    def test_a_circle_of_receives_or_of_sends(self):
        self.check("circle of receives", 4, [[0, 1, 2, 3]])
        self.check("circle of sends", 3, [[0, 1, 2]])
        self.check("circle of sends", 4, [[0, 3, 2, 1]], "group")

    def test_a_message_of_a_rank_that_waits_in_a_call_of_all(self):
        # In a collective that works within hosts and between them, rank 0 may wait for rank 1 through other ranks. If the collective and
        # the message use the same link, the error is that of mismatched calls.
        circles = [[0, 1], [0, 2, 1], [0, 3, 1], [0, 2, 3, 1], [0, 3, 2, 1]]
        meet = "rank [01] calls .* where rank [01] calls .*All ranks must make the same calls in the same order"
        self.check("a call and a message", 4, circles, or_else=meet)
        self.check("a call and a message", 2, circles, "group", or_else=meet)

    def test_ranks_that_are_late_are_waited_for(self):
        for what in ("a late chain", "late sends"):
            for transport, codes, errors in self.over_every_transport(what, 4):
                self.assertEqual(codes, [0] * 4, (what, transport, errors))

    def test_it_is_said_who_does_not_come(self):
        for transport, codes, errors in self.over_every_transport("late", 4, env={"WARREN_STALL_SECONDS": "1"}):
            said = f"over {transport}: " + "".join(errors)
            self.assertEqual(codes, [0] * 4, said)
            self.assertRegex(said, "rabit: rank [023] has waited [0-9]+ s for rank 1\\b.* in barrier \\(call 1\\), in the "
                                   "communicator world")
            self.assertEqual(set(re.findall("s for (rank [0-9])", said)), {"rank 1"}, said)
            # One rank per host reports the wait, after 2 and 4 s; reports by all three would be six lines. If the reporting rank gets no
            # core for long, another rank reports once in its place.
            self.assertLessEqual(said.count("on the same host"), 4, said)


if __name__ == "__main__":
    unittest.main()

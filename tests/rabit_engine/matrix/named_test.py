"""Named operations of warren/collectives.h: random programs compared with plain calls, errors, and timelines."""

import json
import os
import signal
import tempfile
import unittest

from jobs import TCP, Job, on_hosts
from warren_testing import BIN

WORKER = BIN / "named_worker"


class Named(unittest.TestCase):
    def finish(self, ranks, *arguments, **environment):
        with Job(ranks, *arguments, program=WORKER, **environment) as job:
            return job.succeed(self, 120)[1]

    def test_results_are_those_of_the_plain_calls(self):
        for seed in range(12):
            ranks = seed % 6 + 1
            for name, environment in {"shared memory": {}, "TCP": {"env": TCP}, "hosts": on_hosts("abbaab")}.items():
                with self.subTest(seed=seed, ranks=ranks, transport=name):
                    self.finish(ranks, "random", seed, **environment)

    def test_ranks_that_differ_are_told_and_go_on(self):
        for ranks in (2, 3):
            self.finish(ranks, "wrong")

    def test_who_is_waited_for_is_named(self):
        said = self.finish(3, "stall")
        self.assertIn("'x' (an allreduce (sum) of 1 elements of double) has been ready on ranks 0, 2 but not on rank 1 for", said)

    def test_where_it_is_wanted_waiting_ends_with_an_error(self):
        self.finish(3, "give-up")
        self.finish(3, "give-up", env=TCP)

    def test_a_rank_that_was_stopped_is_named(self):
        for environment in ({}, TCP):
            with self.subTest(env=environment), \
                    Job(3, "wait", 1, 4, program=WORKER, env={**environment, "WARREN_STALL_SECONDS": "1"}) as job:
                job.await_ready()
                job.by_rank[1].send_signal(signal.SIGSTOP)
                said = {rank: job.by_rank[rank].communicate(timeout=60)[1] for rank in (0, 2)}
                self.assertRegex("".join(said.values()), "rabit: rank [02] has waited [1-4] s for rank 1\\b")
                for rank, errors in said.items():
                    self.assertEqual(job.by_rank[rank].returncode, 2, errors)
                    # Rank 1 is named even if this rank waited for the other survivor, which waited for rank 1.
                    self.assertRegex(errors, "rank 1\\b")
                self.assertRegex("".join(said.values()), "for rank 1\\b.*stopped, stuck")

    def test_ranks_with_fewer_batches_join(self):
        for ranks in (1, 2, 4, 5):
            self.finish(ranks, "join")
            self.finish(ranks, "join", env=TCP)

    def test_whoever_ends_it_ends_it_for_all(self):
        self.finish(3, "leave")
        self.finish(4, "leave", env=TCP)

    def test_a_rank_that_dies_is_named_within_a_second(self):
        for environment in ({}, TCP):
            for ranks, victim in ((2, 1), (4, 2), (4, 0)):
                with self.subTest(ranks=ranks, victim=victim, env=environment), \
                        Job(ranks, "wait", victim, program=WORKER, env=environment) as job:
                    job.await_ready()
                    job.kill(victim, self)

    def test_a_timeline_says_what_happened_when(self):
        with tempfile.TemporaryDirectory() as folder:
            self.finish(3, "random", 5, env={"WARREN_TIMELINE": os.path.join(folder, "trace.json")})
            self.assertEqual(sorted(os.listdir(folder)), ["trace.0.json", "trace.1.json", "trace.2.json"])
            for rank in range(3):
                with open(os.path.join(folder, f"trace.{rank}.json"), encoding="utf-8") as file:
                    self.check_timeline(json.load(file), rank)

    def check_timeline(self, events, rank):
        self.assertEqual({event["pid"] for event in events}, {rank})
        lines = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertTrue({"world", "n0"} <= set(lines.values()), lines)
        ends = {}
        seen = set()
        for event in events:
            if event["ph"] == "M":
                continue
            self.assertEqual(event["ph"], "X")
            self.assertGreaterEqual(event["dur"], 0)
            # Events on one line do not overlap, at the nanosecond resolution of viewers.
            begin = round(event["ts"] * 1000)
            self.assertGreaterEqual(begin, ends.get(event["tid"], 0), event)
            ends[event["tid"]] = begin + round(event["dur"] * 1000)
            seen.add(event["name"])
        self.assertTrue({"wait for all ranks", "run", "WarrenAllreduce", "WarrenBarrier"} <= seen, seen)

    def test_a_timeline_that_cannot_be_written_is_an_error(self):
        with Job(1, "join", program=WORKER, env={"WARREN_TIMELINE": "/no/such/folder/trace.json"}) as job:
            codes, results = job.finish(60)
            self.assertEqual(codes, [2], results)
            self.assertIn("WARREN_TIMELINE: '/no/such/folder/trace.0.json' cannot be written", results[0][1])

    def test_a_timeline_that_cannot_be_written_any_more_is_mentioned_once_and_fails_no_job(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink("/dev/full", os.path.join(folder, "trace.0.json"))
            said = self.finish(1, "join", env={"WARREN_TIMELINE": os.path.join(folder, "trace.json")})
        self.assertEqual(said.count("trace.0.json' cannot be written any more, so the timeline is incomplete: No space left"), 1, said)


if __name__ == "__main__":
    unittest.main()

"""A rank that dies, is stuck, or makes a different call: the other ranks report it soon and by name, and none hangs."""

import os
import re
import signal
import unittest

from jobs import TCP, Job, on_hosts

TRANSPORTS = {
    "shared memory": {},
    "TCP": TCP,
    "rings": {"WARREN_ALGORITHM": "tree"},
    "tree over TCP": {**TCP, "WARREN_ALGORITHM": "tree"},
}


def shared_memory(pid):
    """Returns the inodes of the engine's segments that a process maps."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return {line.split()[4] for line in maps if "memfd:warren" in line}
    except OSError:
        return set()


class LossTest(unittest.TestCase):
    def test_a_killed_rank_is_named_by_all_others(self):
        for name, env in TRANSPORTS.items():
            for ranks, victim in ((2, 1), (5, 3), (6, 0)):
                with self.subTest(transport=name, ranks=ranks), Job(ranks, "wait", victim, env=env) as job:
                    job.await_ready()
                    job.kill(victim, self)

    def test_a_killed_rank_is_named_on_all_hosts_where_hosts_are_no_subtrees(self):
        # The victim either leads its host or communicates through shared memory only.
        for layout, victim in (("aaabbb", 3), ("aaabbb", 5), ("aaabbcccc", 0)):
            with self.subTest(layout=layout, victim=victim), Job(len(layout), "wait", victim, **on_hosts(layout)) as job:
                job.await_ready()
                job.kill(victim, self)

    def test_nobody_waits_longer_than_the_deadline_for_a_stuck_rank(self):
        for name, env in TRANSPORTS.items():
            with self.subTest(transport=name):
                env = {**env, "rabit_timeout": "1", "rabit_timeout_sec": "1"}
                with Job(3, "wait", 1, env=env) as job:
                    job.await_ready()
                    told = ""
                    for rank, worker in job.by_rank.items():
                        if rank != 1:
                            _, errors = worker.communicate(timeout=20)
                            told += errors
                            self.assertEqual(worker.returncode, 2, errors)
                            # Rank 1 is named even if this rank waited for the other survivor, which waited for rank 1.
                            self.assertRegex(errors, r"rank 1\b.*(has waited|gave up|gives up|lost)|for rank 1\b")
                    self.assertRegex(told, rf"rank [02] on {os.uname().nodename} has waited [12]\.\d s for "
                                           r"rank 1(, on the same host| at [\d.:]+)")

    def test_segments_are_gone_with_their_processes(self):
        def files():
            """Returns the files in /dev/shm, except those of MPI libraries, which other tests use at the same time."""
            return {name for name in os.listdir("/dev/shm") if not name.startswith(("vader_segment", "mpich_", "Intel_MPI_"))}

        before = files()
        with Job(4, "wait", 2) as job:
            job.await_ready()
            self.assertEqual(files() - before, set())
            pids = [worker.pid for worker in job.workers]
            memory = set.intersection(*map(shared_memory, pids))
            self.assertEqual(len(memory), 1)
            for worker in job.workers:
                worker.send_signal(signal.SIGKILL)
            for worker in job.workers:
                worker.communicate()
            for pid in pids:
                self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertEqual(files() - before, set())
        # The memory has no name in a file system, so it is freed when no process maps it or has it open.
        self.assertEqual([pid for pid in filter(str.isdigit, os.listdir("/proc")) if shared_memory(pid) & memory], [])


class MisuseTest(unittest.TestCase):
    def test_ranks_that_call_different_things_are_told_both_calls(self):
        for name, env in TRANSPORTS.items():
            for what, patterns in {
                "counts": (r"allreduce of 10 float", r"allreduce of 11 float"),
                "operations": (r"10 float, sum", r"10 float, max"),
                "collectives": (r"allreduce of 10 float", r"broadcast of 40 bytes"),
                "large counts": (r"allreduce of 100000 float", r"allreduce of 100001 float"),
            }.items():
                with self.subTest(transport=name, mismatch=what), Job(2, "mismatch", what, env=env) as job:
                    self.are_told(job, *patterns)

    def test_ranks_whose_calls_go_by_different_means_are_told_both_calls(self):
        # Hosts of one to three ranks: some ranks wait in shared memory, others for links that their peers never make.
        for layout in ("aabb", "abab", "aab", "abbb", "aaabbb"):
            for who in ("means", "hosts"):
                with self.subTest(layout=layout, who=who), Job(len(layout), "mismatch", who, **on_hosts(layout)) as job:
                    self.are_told(job, r"allreduce of 10 float", rf"allgather of {40 * len(layout)} bytes")
        forced = {"env_of_task": lambda task: {"WARREN_ALGORITHM": "tree"} if task == 1 else {}}
        with self.subTest("one rank with an algorithm of its own"), Job(3, "mismatch", "operations", **forced) as job:
            self.are_told(job, r"calls barrier.*algorithm 1,", r"calls barrier.*algorithm 8,")

    def test_ranks_that_take_different_ranks_for_the_root_are_told(self):
        for name, env in TRANSPORTS.items():
            for ranks in (2, 3):
                with self.subTest(transport=name, ranks=ranks), Job(ranks, "mismatch", "roots", env=env) as job:
                    # Over a link, the rank that has finished its broadcast finds the other rank's broadcast in place of its next call.
                    other = r"broadcast of 40 bytes from root 0" if name == "shared memory" else r"rank \d calls"
                    self.are_told(job, other, r"calls broadcast of 40 bytes from root [01]")

    def are_told(self, job, *patterns):
        """Checks that no rank hangs, all fail, and one of them reports all `patterns`."""
        codes, outputs = job.finish(20)
        self.assertNotIn(0, codes, outputs)
        self.assertTrue(any(all(re.search(part, errors) for part in patterns) for _, errors in outputs), outputs)

    def test_senseless_arguments_are_refused_with_rank_and_call(self):
        with Job(2, "senseless") as job:
            for worker in job.workers:
                out, errors = worker.communicate(timeout=30)
                self.assertEqual(worker.returncode, 0, errors)
                self.assertRegex(out, r"rank \d: broadcast: root 2 is not a rank; ranks are 0 to 1")
                self.assertRegex(out, r"rank \d: broadcast: root -1 is not a rank; ranks are 0 to 1")
                self.assertRegex(out, r"rank \d: allreduce: the buffer of 10 elements is NULL")
                self.assertRegex(out, r"rank \d: reduce-scatter: expected the 3 offsets of 2 slices, ascending from 0")


if __name__ == "__main__":
    unittest.main()

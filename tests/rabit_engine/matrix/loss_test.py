"""A rank that dies, is stuck, or calls something else: the others say so, by name and soon, and none hangs."""

import os
import signal
import time
import unittest

from jobs import Job

TRANSPORTS = {
    "shared memory": {},
    "TCP": {"RABIT_SHARED_MEMORY": "off"},
    "rings": {"RABIT_ALGORITHM": "tree"},
    "tree over TCP": {"RABIT_SHARED_MEMORY": "off", "RABIT_ALGORITHM": "tree"},
}
# On a crowded machine; the engine itself looks every 20 ms.
SOON_SECONDS = 1.0


def shared_memory(pid):
    """The segments that a process maps, by inode."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return {line.split()[4] for line in maps if "memfd:warren" in line}
    except OSError:
        return set()


class LossTest(unittest.TestCase):
    def test_a_killed_rank_is_named_by_all_others_within_a_second(self):
        for name, env in TRANSPORTS.items():
            for ranks, victim in ((2, 1), (5, 3), (6, 0)):
                with self.subTest(transport=name, ranks=ranks), Job(ranks, "wait", victim, env=env) as job:
                    job.await_ready()
                    begin = time.monotonic()
                    job.by_rank[victim].send_signal(signal.SIGKILL)
                    for rank, worker in job.by_rank.items():
                        if rank == victim:
                            continue
                        _, errors = worker.communicate(timeout=20)
                        self.assertLess(time.monotonic() - begin, SOON_SECONDS)
                        self.assertEqual(worker.returncode, 2, errors)
                        self.assertRegex(errors, rf"rank {victim}\b")

    def test_nobody_waits_longer_than_the_deadline_for_a_stuck_rank(self):
        for name, env in TRANSPORTS.items():
            with self.subTest(transport=name):
                env = {**env, "rabit_timeout": "1", "rabit_timeout_sec": "1"}
                with Job(3, "wait", 1, env=env) as job:
                    job.await_ready()
                    for rank, worker in job.by_rank.items():
                        if rank != 1:
                            _, errors = worker.communicate(timeout=20)
                            self.assertEqual(worker.returncode, 2, errors)
                            # It names the rank it waited for, or one whose deadline came first.
                            self.assertRegex(errors, r"rank [012]\b.*(in vain|in time|gave up|lost)")

    def test_segments_are_gone_with_their_processes(self):
        before = set(os.listdir("/dev/shm"))
        with Job(4, "wait", 2) as job:
            job.await_ready()
            self.assertEqual(set(os.listdir("/dev/shm")), before)
            pids = [worker.pid for worker in job.workers]
            memory = set.intersection(*map(shared_memory, pids))
            self.assertEqual(len(memory), 1)
            for worker in job.workers:
                worker.send_signal(signal.SIGKILL)
            for worker in job.workers:
                worker.communicate()
            for pid in pids:
                self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertEqual(set(os.listdir("/dev/shm")), before)
        # The memory has no name anywhere: only a process that maps it could keep it.
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
                    codes, outputs = job.finish(30)
                    self.assertEqual(codes, [2, 2], outputs)
                    told = [err for _, err in outputs if all(part in err for part in patterns)]
                    self.assertTrue(told, outputs)

    def test_senseless_arguments_are_refused_with_rank_and_call(self):
        with Job(2, "senseless") as job:
            for worker in job.workers:
                out, errors = worker.communicate(timeout=30)
                self.assertEqual(worker.returncode, 0, errors)
                self.assertRegex(out, r"rank \d: broadcast was given root 2; expected 0 to 1")
                self.assertRegex(out, r"rank \d: broadcast was given root -1; expected 0 to 1")
                self.assertRegex(out, r"rank \d: allreduce of 40 bytes was given a null pointer")
                self.assertRegex(out, r"rank \d: reduce-scatter needs 3 ascending offsets")


if __name__ == "__main__":
    unittest.main()

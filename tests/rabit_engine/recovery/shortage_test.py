"""A worker whose process or host lacks descriptors, memory, ports or permission reports this and fails immediately; if it only cannot share
memory, it uses TCP instead. No other rank is reported lost in its place, and no rank waits for it. If workers are restarted, the job's results are
bit-identical to those of a run without faults."""

import re
import unittest

from training import train

RANKS = 4
TCP = {"WARREN_SHARED_MEMORY": "off"}
# Starts a worker. In the first process of task 1, the system calls that $FAULT selects fail.
INJECT = """
[ "$DMLC_NUM_ATTEMPT.$DMLC_TASK_ID" = 0.1 ] || exec "$@"
exec strace -f -o /dev/zero -e "inject=$FAULT" "$@"
"""
NO_LEAK_CHECK = {"ASAN_OPTIONS": "detect_leaks=0"}  # LeakSanitizer cannot run under strace
# The rank that others report as lost.
BLAME = re.compile(r"rank \d (?:on \S+ )?(?:lost|gives up because) rank (\d)|because rank (\d)")
ENDED = re.compile(r"worker (\d) \(.*\) (?:exited with code|was killed)")


class ShortageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        undisturbed = train(RANKS)
        assert undisturbed.code == 0, undisturbed.errors
        cls.expected = undisturbed.digests

    def trained(self, *words, env=None, under=(), dead=()):
        """Runs a job in which rank 1 lacks something and the ranks `dead` die. Checks the results, and that no other rank fails or is reported
        lost. Returns the job's messages."""
        result = train(RANKS, *words, attempts=3, env={**NO_LEAK_CHECK, **(env or {})}, under=under)
        self.assertEqual((result.code, result.digests), (0, self.expected), result.errors)
        self.assertLessEqual(set(map(int, ENDED.findall(result.errors))), {1, *dead}, result.errors)
        blamed = {int(one or other) for one, other in BLAME.findall(result.errors)}
        self.assertLessEqual(blamed, {1, *dead}, result.errors)
        return result.errors

    def test_out_of_descriptors_while_it_is_linked_again(self):
        """Another rank dies, so rank 1 is linked again. Tries all descriptor limits, from too low to high enough."""
        told = 0
        for limit in range(3, 13):
            with self.subTest(limit=limit):
                errors = self.trained("mock=2,1,3,0", f"files=1,{limit}", env=TCP, dead=[2])
                failed = "worker 1 (" in errors
                self.assertEqual(failed, "Too many open files" in errors, errors)
                if failed:
                    self.assertRegex(errors, rf"\[1\].*rank 1.* failed on \S+, its own host: Too many open files. "
                                             rf"\d+ of the {limit} files that this process may open \(ulimit -n\) are open")
                    told += 1
        self.assertGreater(told, 2)

    def test_out_of_descriptors_when_it_joins(self):
        told = 0
        for limit in range(3, 13):
            with self.subTest(limit=limit):
                told += "Too many open files" in self.trained(f"files=1,{limit},init", env=TCP)
        self.assertGreater(told, 2)

    def test_a_job_whose_workers_are_not_started_again_ends_and_names_it(self):
        result = train(RANKS, "files=1,5,init", env=TCP)
        self.assertNotEqual(result.code, 0)
        self.assertRegex(result.errors, r"\[1\].* failed on \S+, its own host: Too many open files")
        self.assertRegex(result.errors, r"error: worker 1 \(.*\) was killed by signal 6")

    def test_each_call_that_fails_for_want_of_something(self):
        faults = [("socket", error, when) for error in ("EMFILE", "ENFILE", "ENOBUFS", "ENOMEM") for when in (1, 2, 3, 4)]
        faults += [("connect", error, when) for error in ("EADDRNOTAVAIL", "EACCES", "EPERM", "ENOBUFS") for when in (1, 2)]
        faults += [("accept4", error, 1) for error in ("EMFILE", "ENFILE", "ENOMEM", "ENOBUFS")]
        faults += [("bind", "ENOBUFS", 1), ("listen", "ENOBUFS", 1), ("epoll_create1", "EMFILE", 1), ("epoll_ctl", "ENOMEM", 1),
                   ("sendto", "ENOBUFS", 3), ("recvfrom", "ENOMEM", 3)]
        told = 0
        for call, error, when in faults:
            with self.subTest(call=call, error=error, when=when):
                fault = {"FAULT": f"{call}:error={error}:when={when}+"}
                errors = self.trained(env={**TCP, **fault}, under=["sh", "-c", INJECT, "worker"])
                if "worker 1 (" in errors:
                    self.assertRegex(errors, r"failed on \S+, its own host: ")
                    told += 1
        self.assertGreater(told, len(faults) // 2)

    def test_ranks_of_a_host_that_cannot_share_memory_say_why_and_use_tcp(self):
        for task, call in (0, "memfd_create"), (1, "eventfd2"), (1, "pidfd_open,pipe2"):
            with self.subTest(call=call):
                errors = self.trained(env={"FAULT": f"{call}:error=EMFILE:when=1+"},
                                      under=["sh", "-c", INJECT.replace("0.1 ]", f"0.{task} ]"), "worker"])
                self.assertRegex(errors, rf"\[{task}\] rabit: rank {task} shares no memory with the other ranks of its host, though it "
                                         r"could, and uses TCP: .*: Too many open files")


if __name__ == "__main__":
    unittest.main()

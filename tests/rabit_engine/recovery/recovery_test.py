"""A worker that dies at any call is restarted, and the results are bit-identical to those of a run without faults."""

import os
import pathlib
import tempfile
import unittest

from training import CALLS, VERSIONS, train

FULL = os.environ.get("WARREN_SWEEP") == "full"
TCP = {"WARREN_SHARED_MEMORY": "off"}
RANKS = 4
END_KILLS = int(os.environ.get("WARREN_END_KILLS", "20"))


class RecoveryCase(unittest.TestCase):
    undisturbed = {}

    def expected(self, num_workers, *words):
        key = (num_workers, words)
        if key not in self.undisturbed:
            # The reduction order depends on ranks only, so all host layouts and all transports give the same bits.
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
        return result.errors


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


class MockTest(RecoveryCase):
    """As in rabit, the setting `mock` counts versions and calls from LoadCheckPoint on."""

    def test_a_death_that_is_meant_for_later_does_not_come_before_load_check_point(self):
        words = ("before=3", "rabit_bootstrap_cache=1")
        for deaths in ([(1, 0, 1, 0)], [(0, 1, 1, 0), (0, 1, 1, 1)]):
            with self.subTest(deaths=deaths):
                errors = self.check(*deaths, words=words)
                version = deaths[0][1]
                self.assertEqual(errors.count(f"ends before broadcast of version {version}, call 1"), len(deaths), errors)


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
        self.assertRegex(result.errors, r"worker \d \(.*\) exited with code 0 without Finalize while others wait for it; "
                                        r"the job cannot continue; the other 3 processes were stopped")

    def test_one_that_is_killed_when_all_have_left_is_no_failure(self):
        for shape in {}, TCP:
            result = train(RANKS, "killed=1", attempts=3, env=shape)
            self.assertEqual(result.code, 0, result.errors)
            self.assertEqual(len(result.digests), RANKS)
            self.assertRegex(result.errors, r"worker \d \(.*\) was killed by signal 9 \(SIGKILL\) after all workers had left "
                                            r"the job; the job is complete, but the program may not have finished its work")

    def test_kills_around_the_end(self):
        """Kills one worker at various times between its start and just after its end."""
        expected = self.expected(RANKS)
        for i in range(END_KILLS):
            victim, moment = i % RANKS, 0.005 + 0.06 * i / END_KILLS
            kill = ["sh", "-c", f'if [ "$DMLC_NUM_ATTEMPT.$DMLC_TASK_ID" = 0.{victim} ]; then (sleep {moment}; kill -9 $$) & '
                                'fi; exec "$@"', "sh"]
            result = train(RANKS, attempts=3, under=kill, env=TCP if i // RANKS % 2 else {})
            self.assertEqual((result.code, result.digests), (0, expected), f"{moment:.4f} s: {result.errors}")

    def test_a_fault_of_its_own_after_finalize_is_a_failure(self):
        result = train(RANKS, "faulty=1", attempts=3)
        self.assertEqual(result.code, 134, result.errors)
        self.assertRegex(result.errors, r"worker \d \(.*\) was killed by signal 6 .*, not started again because it had already "
                                        r"left the job")

    def test_links_and_memory_are_gone_before_the_last_word(self):
        """Counts the close and munmap calls that a worker makes after the tracker has released it."""
        for shape in {}, TCP:
            with tempfile.TemporaryDirectory() as folder:
                # The shell only expands the name of the trace file; exec then replaces the shell with strace.
                trace = ["sh", "-c", f'exec strace -e trace=close,munmap,recvfrom -o {folder}/$DMLC_TASK_ID "$@"', "sh"]
                # LeakSanitizer cannot run under strace.
                result = train(RANKS, attempts=3, under=trace, env={"ASAN_OPTIONS": "detect_leaks=0", **shape})
                self.assertEqual(result.code, 0, result.errors)
                for task in range(RANKS):
                    calls = (pathlib.Path(folder) / str(task)).read_text().splitlines()
                    last_word = max(i for i, call in enumerate(calls) if "recvfrom(" in call and call.endswith("= 4"))
                    after = [call for call in calls[last_word + 1:] if call.startswith(("close(", "munmap("))]
                    self.assertLessEqual(len(after), 1, "\n".join(calls[last_word:]))  # only the connection to the tracker

    def test_at_a_checkpoint_and_right_after_it(self):
        self.check((3, 0, CALLS, 0), (1, 1, 0, 0))


if __name__ == "__main__":
    unittest.main()

"""A worker is stopped: the other workers name it once they have waited too long, and continue if it resumes in time."""

import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import training
from warren_testing import wait_for

RANKS = 3
VERSIONS = 100
PATIENCE_S = 2
LIMIT_S = 60
PATIENT = {"rabit_timeout": "1", "rabit_timeout_sec": str(PATIENCE_S)}
TRANSPORTS = {"shared memory": {}, "TCP": {"WARREN_SHARED_MEMORY": "off"}}


class Job:
    """A training job that reports its versions, so that a test can act in the middle of it."""

    def __init__(self, test, env):
        self.out, self.err = (tempfile.TemporaryFile("w+") for _ in range(2))
        self.process = subprocess.Popen(training.command(RANKS, "sleep=20", "tell", versions=VERSIONS),
                                        env={**os.environ, **PATIENT, **env}, stdout=self.out, stderr=self.err)
        test.addCleanup(self.close)
        wait_for(lambda: len(set(re.findall(r"rank (\d): version 2\b", self.errors()))) == RANKS, LIMIT_S, "version 2")

    def workers(self):
        done = subprocess.run(["pgrep", "-P", str(self.process.pid), "-f", "training_worker"], capture_output=True,
                              text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    @staticmethod
    def text(file):
        # The file is opened again, since reading through `file` would move the position at which the processes write.
        with open(f"/proc/self/fd/{file.fileno()}", encoding="utf-8") as again:
            return again.read()

    def errors(self):
        return self.text(self.err)

    def output(self):
        return self.text(self.out)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.out.close()
        self.err.close()


class Stuck(unittest.TestCase):
    def test_the_others_say_for_whom_and_how_long_they_have_waited(self):
        for name, env in TRANSPORTS.items():
            with self.subTest(transport=name):
                job = Job(self, env)
                begin = time.monotonic()
                os.kill(job.workers()[1], signal.SIGSTOP)
                job.process.wait(LIMIT_S)
                errors = job.errors()
                self.assertNotEqual(job.process.returncode, 0)
                # PATIENCE_S for the call, PATIENCE_S for the rank to be linked again, and the time to end all ranks.
                self.assertLess(time.monotonic() - begin, 2 * PATIENCE_S + 4)
                waited = re.search(rf"rank \d on {os.uname().nodename} has waited (\d\.\d) s for (rank \d.*, )?"
                                   r"rank \d(, on the same host| at [\d.:]+) \(rabit_timeout_sec, ", errors)
                self.assertTrue(waited, errors)
                self.assertGreaterEqual(float(waited.group(1)), PATIENCE_S)
                self.assertIn(f"Not all ranks were linked again within {PATIENCE_S} s", errors)

    def test_one_that_goes_on_within_that_time_is_taken_back(self):
        calm = training.train(RANKS, versions=VERSIONS)
        for name, env in TRANSPORTS.items():
            with self.subTest(transport=name):
                job = Job(self, env)
                pid = job.workers()[1]
                os.kill(pid, signal.SIGSTOP)
                wait_for(lambda: job.errors().count("waiting to be linked again") > 0, LIMIT_S, "the end of patience")
                os.kill(pid, signal.SIGCONT)
                job.process.wait(LIMIT_S)
                self.assertEqual(job.process.returncode, 0, job.errors())
                self.assertEqual(training.digests(job.output()), calm.digests)


if __name__ == "__main__":
    unittest.main()

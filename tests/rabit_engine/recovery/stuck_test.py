"""A worker that is stopped: the others name it when their patience ends, and go on when it does."""

import os
import re
import signal
import subprocess
import time
import unittest

import training
from warren_testing import wait_for

RANKS = 3
VERSIONS = 100
PATIENCE_S = 2
LIMIT_S = 60
PATIENT = {"rabit_timeout": "1", "rabit_timeout_sec": str(PATIENCE_S)}
TRANSPORTS = {"shared memory": {}, "TCP": {"RABIT_SHARED_MEMORY": "off"}}


def workers_of(job):
    done = subprocess.run(["pgrep", "-P", str(job.pid), "-f", "training_worker"], capture_output=True, text=True,
                          check=False)
    return [int(pid) for pid in done.stdout.split()]


class Stuck(unittest.TestCase):
    def start(self, env, attempts):
        job = subprocess.Popen(training.command(RANKS, "sleep=20", attempts=attempts, versions=VERSIONS),
                               env={**os.environ, **PATIENT, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
        self.addCleanup(lambda: (job.kill(), job.communicate()))
        wait_for(lambda: len(workers_of(job)) == RANKS, LIMIT_S, "the workers")
        time.sleep(0.7)
        return job

    def test_the_others_say_for_whom_and_how_long_they_have_waited(self):
        for name, env in TRANSPORTS.items():
            with self.subTest(transport=name):
                job = self.start(env, 0)
                begin = time.monotonic()
                os.kill(workers_of(job)[1], signal.SIGSTOP)
                _, errors = job.communicate(timeout=LIMIT_S)
                self.assertNotEqual(job.returncode, 0)
                # As long for the call as for the rank to come again, and what it takes to end all.
                self.assertLess(time.monotonic() - begin, 2 * PATIENCE_S + 4)
                waited = re.search(rf"rank \d on {os.uname().nodename} has waited (\d\.\d) s for (rank \d.*, )?"
                                   r"rank \d(, on the same host| at [\d.:]+) \(rabit_timeout_sec\)", errors)
                self.assertTrue(waited, errors)
                self.assertGreaterEqual(float(waited.group(1)), PATIENCE_S)
                self.assertIn(f"not together again within {PATIENCE_S} s", errors)

    def test_one_that_goes_on_within_that_time_is_taken_back(self):
        calm = training.train(RANKS, versions=VERSIONS)
        for name, env in TRANSPORTS.items():
            with self.subTest(transport=name):
                job = self.start({"rabit_debug": "1", **env}, 0)
                pid = workers_of(job)[1]
                os.kill(pid, signal.SIGSTOP)
                time.sleep(PATIENCE_S + 1)
                os.kill(pid, signal.SIGCONT)
                output, errors = job.communicate(timeout=LIMIT_S)
                self.assertEqual(job.returncode, 0, errors)
                self.assertIn("waiting to be linked again", errors)
                self.assertEqual(training.digests(output), calm.digests)


if __name__ == "__main__":
    unittest.main()

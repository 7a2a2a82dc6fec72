"""The tracker dies: workers continue while they do not need it, and a tracker that is restarted with the same state takes over."""

import os
import signal
import tempfile
import unittest

import training
from training import LIMIT_S, Job
from warren_testing import Tracker, wait_for

RANKS = 4
VERSIONS = 60


class TrackerDeath(unittest.TestCase):
    expected = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = os.path.join(folder.name, "state")
        if TrackerDeath.expected is None:
            calm = training.train(RANKS, versions=VERSIONS)
            self.assertEqual(calm.code, 0, calm.errors)
            TrackerDeath.expected = calm.digests

    def tracker(self, *options):
        tracker = Tracker("--num-workers", RANKS, "--host-ip", "127.0.0.1", "--port", 0, "--sortby", "task", *options)
        self.addCleanup(tracker.__exit__)
        return tracker

    def job(self, tracker, env=None):
        job = Job(tracker.env, RANKS, VERSIONS, env)
        self.addCleanup(job.close)
        return job

    def check_end(self, job, tracker=None):
        """Checks that the job ends as if nothing had happened and that the tracker, if given, exits with 0. Returns the workers' stderr
        and the tracker's log."""
        codes, output, errors = job.finish()
        self.assertEqual(codes, [0] * RANKS, errors)
        self.assertEqual(training.digests(output), self.expected)
        if tracker is None:
            return errors, ""
        code, log = tracker.finish()
        self.assertEqual(code, 0, log)
        return errors, log

    def read_state(self):
        with open(self.state) as file:
            return file.read()

    def die(self, tracker):
        tracker.process.send_signal(signal.SIGKILL)
        tracker.process.wait()

    def test_workers_finish_without_it_and_say_so(self):
        tracker = self.tracker()
        job = self.job(tracker)
        job.await_version(1)
        self.die(tracker)
        errors, _ = self.check_end(job)
        for rank in range(RANKS):
            self.assertRegex(errors, rf"rank {rank} on \S+ has finished, but could not tell the tracker")

    def test_a_loss_that_it_cannot_mend_names_both(self):
        tracker = self.tracker()
        job = self.job(tracker)
        job.await_version(1)
        self.die(tracker)
        job.kill(2)
        codes, _, errors = job.finish()
        self.assertNotIn(0, codes)
        self.assertRegex(errors, r"rank 2.*It cannot be linked again: the tracker at 127\.0\.0\.1:\d+ cannot be reached")

    def test_another_takes_the_job_over_and_mends_a_loss(self):
        tracker = self.tracker("--state", self.state)
        job = self.job(tracker)
        job.await_version(1)
        self.die(tracker)
        second = self.tracker("--state", self.state)
        self.assertEqual(second.port, tracker.port)
        job.kill(2)
        job.start(2, 1)
        _, log = self.check_end(job, second)
        self.assertIn("has taken over the job", log)
        self.assertFalse(os.path.exists(self.state))

    def test_a_loss_while_it_is_away_waits_for_the_next(self):
        tracker = self.tracker("--state", self.state)
        job = self.job(tracker, {"rabit_debug": "1"})
        job.await_version(1)
        self.die(tracker)
        job.kill(1)
        wait_for(lambda: job.text("err").count("waiting to be linked again") == RANKS - 1, LIMIT_S, "the loss")
        second = self.tracker("--state", self.state)
        job.start(1, 1)
        self.check_end(job, second)

    def test_its_death_while_it_links_them_again_is_no_more(self):
        tracker = self.tracker("--state", self.state)
        job = self.job(tracker)
        job.await_version(1)
        job.kill(3)
        # The other ranks are being linked again and wait for the missing rank.
        wait_for(lambda: "assigned 0" in self.read_state().partition("listens 3")[2], LIMIT_S, "a recovery")
        self.die(tracker)
        second = self.tracker("--state", self.state)
        job.start(3, 1)
        self.check_end(job, second)

    def test_a_file_of_another_job_is_refused(self):
        tracker = self.tracker("--state", self.state)
        job = self.job(tracker)
        job.await_version(1)
        busy = Tracker("--num-workers", RANKS, "--host-ip", "127.0.0.1", "--state", self.state)
        code, log = busy.finish()
        self.assertEqual(code, 1)
        self.assertIn("another tracker is using it", log)
        self.die(tracker)
        other = Tracker("--num-workers", RANKS + 1, "--host-ip", "127.0.0.1", "--state", self.state)
        code, log = other.finish()
        self.assertEqual(code, 1)
        self.assertIn(f"belongs to a job of {RANKS} workers, not {RANKS + 1}", log)
        del job


if __name__ == "__main__":
    unittest.main()

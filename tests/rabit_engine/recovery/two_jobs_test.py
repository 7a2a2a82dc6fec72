"""Two successive jobs whose trackers use the same port, and whose workers and trackers die and are restarted in every order: neither job
receives anything from the other. Both jobs make calls of the same sizes, so that only the job's token keeps their data apart, and have
different models, so that mixed data changes the results.

TWO_JOBS_RUNS=200 runs 200 pairs of jobs instead of a few, and TWO_JOBS_SEED varies them; the output ends with a summary."""

import concurrent.futures
import os
import random
import signal
import time
import unittest

import training
from training import LIMIT_S, Job
from warren_testing import Tracker, wait_for

RANKS = 3
VERSIONS = 25
RUNS = int(os.environ.get("TWO_JOBS_RUNS", 8))
SEED = int(os.environ.get("TWO_JOBS_SEED", 1))
# The fates of the first job around the time when the second job's tracker takes the port.
FATES = ("goes on", "loses a worker", "loses a worker that comes back", "comes back as a whole", "ends first")


class TwoJobs(unittest.TestCase):
    calm = {}

    def expected(self, seed):
        if seed not in self.calm:
            result = training.train(RANKS, f"seed={seed}", versions=VERSIONS)
            self.assertEqual(result.code, 0, result.errors)
            self.calm[seed] = result.digests
        return self.calm[seed]

    def tracker(self, port):
        tracker = Tracker("--num-workers", RANKS, "--host-ip", "127.0.0.1", "--port", port, "--port-end", port,
                          "--sortby", "task")
        self.addCleanup(tracker.__exit__)
        self.assertIn("DMLC_TRACKER_PORT", tracker.env, "the port is still taken")
        return tracker

    def job(self, tracker, seed):
        job = Job(tracker.env, RANKS, VERSIONS, {"WARREN_CONNECT_TIMEOUT": "3", "DMLC_WORKER_CONNECT_RETRY": "2"},
                  [f"seed={seed}"])
        self.addCleanup(job.close)
        return job

    def end_tracker(self, tracker, how):
        tracker.process.send_signal(how)
        tracker.process.wait()

    def play(self, rng):
        """Runs one pair of jobs. Returns the fate of the first job."""
        fate = rng.choice(FATES)
        first_tracker = self.tracker(0)
        first = self.job(first_tracker, 0)
        if fate == "ends first":
            codes, output, errors = first.finish()
            self.assertEqual(codes, [0] * RANKS, errors)
            self.assertEqual(first_tracker.finish()[0], 0)
        else:
            first.await_version(rng.randrange(1, 6))
            self.end_tracker(first_tracker, rng.choice((signal.SIGKILL, signal.SIGTERM)))
        victim = rng.randrange(RANKS)
        early = rng.random() < 0.5
        if fate.startswith("loses") and early:
            first.kill(victim)
        second_tracker = self.tracker(first_tracker.port)
        if rng.random() < 0.5:
            time.sleep(rng.random() * 0.3)  # only workers of the first job connect to the port now
        second = self.job(second_tracker, 1)
        if rng.random() < 0.5:
            second.await_version(rng.randrange(1, 6))
        if fate.startswith("loses") and not early:
            first.kill(victim)
        if fate == "loses a worker that comes back":
            first.start(victim, 1)
        elif fate == "comes back as a whole":
            for task in range(RANKS):
                first.kill(task)
            for task in range(RANKS):
                first.start(task, 1)
        lost = rng.random() < 0.5
        if lost:
            second.await_version(rng.randrange(1, 10))
            other = rng.randrange(RANKS)
            second.kill(other)
            second.start(other, 1)
        story = f"the first {fate}{', early' if early else ''}{'; the second loses a worker' if lost else ''}"

        codes, output, errors = second.finish()
        self.assertEqual(codes, [0] * RANKS, f"{story}\n{errors}\n--- the first:\n{first.text('err')}")
        self.assertEqual(training.digests(output), self.expected(1), story)
        code, log = second_tracker.finish()
        self.assertEqual(code, 0, f"{story}\n{log}")

        codes, output, errors = first.finish()
        if fate in ("goes on", "ends first"):
            self.assertEqual(codes, [0] * RANKS, f"{story}\n{errors}")
            self.assertEqual(training.digests(output), self.expected(0), story)
        else:
            # The first job has lost its tracker: its workers report that, and none succeeds.
            self.assertEqual([code for code in codes if code == 0], [], f"{story}\n{errors}")
            self.assertRegex(errors, "the tracker at 127.0.0.1:[0-9]+ (closed the connection|cannot be reached)")
        return fate

    def test_jobs_on_one_port_never_mix(self):
        for seed in (0, 1):
            self.expected(seed)
        rng = random.Random(SEED)
        played = {}
        begin = time.monotonic()
        for run in range(RUNS):
            state = rng.getrandbits(64)
            with self.subTest(run=run, state=state):
                fate = self.play(random.Random(state))
                played[fate] = played.get(fate, 0) + 1
                self.doCleanups()
        print(f"{sum(played.values())} of {RUNS} pairs of jobs on one port did not mix, seed {SEED}, "
              f"{time.monotonic() - begin:.0f} s: " +
              ", ".join(f"the first {fate}: {count}" for fate, count in sorted(played.items())))

    def test_two_launchers_at_once_begin_at_ports_of_their_own(self):
        """Trackers without --port begin at random ports of the default range, so that simultaneous jobs rarely compete for a port."""
        with concurrent.futures.ThreadPoolExecutor() as both:
            results = list(both.map(lambda seed: training.train(RANKS, f"seed={seed}", versions=3), (0, 1)))
        self.assertEqual([result.code for result in results], [0, 0])
        ports = set()
        for _ in range(12):
            tracker = Tracker("--num-workers", 1, "--host-ip", "127.0.0.1")
            ports.add(tracker.port)
            self.assertTrue(9091 <= tracker.port <= 9999, tracker.port)
            tracker.__exit__()
        self.assertGreater(len(ports), 6)


class WithoutTheToken(unittest.TestCase):
    """Workers whose token was removed: the tracker refuses them in a job that has a token."""

    def test_what_speaks_for_a_rank_without_the_token_is_refused_in_a_job_that_has_one(self):
        with Tracker("--num-workers", RANKS, "--host-ip", "127.0.0.1", "--port", 0) as tracker:
            job = Job(tracker.env, RANKS, VERSIONS)
            self.addCleanup(job.close)
            job.await_version(1)
            job.kill(1)
            job.env["DMLC_JOB_TOKEN"] = ""
            job.start(1, 1)
            self.assertNotEqual(job.processes[1].wait(LIMIT_S), 0)
            self.assertIn("closed the connection", job.text("err"))
            del job.env["DMLC_JOB_TOKEN"]
            job.env.update(tracker.env)
            job.start(1, 2)
            codes, output, errors = job.finish()
            self.assertEqual(codes, [0] * RANKS, errors)
            code, log = tracker.finish()
            self.assertEqual(code, 0, log)
            self.assertIn("it does not prove the job's token (DMLC_JOB_TOKEN), but the workers of this job do", log)


if __name__ == "__main__":
    unittest.main()

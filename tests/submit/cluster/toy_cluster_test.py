"""A cluster that is unknown to Warren's libraries: the program toy_cluster.cc registers it."""

import os
import unittest

from submit_case import SubmitCase
from warren_testing import BIN

TWO_WORKERS = r"""
import os
from warren_testing import ClassicWorker
address = os.environ['DMLC_TRACKER_URI'], int(os.environ['DMLC_TRACKER_PORT'])
worker = ClassicWorker(address, int(os.environ['DMLC_TASK_ID']))
worker.start()
print('rank', worker.rank, 'of', os.environ['DMLC_NUM_WORKER'], os.environ['DMLC_JOB_CLUSTER'], os.nice(0))
worker.shutdown()
"""


class ToyCluster(SubmitCase):
    program = str(BIN / "submit_toy_cluster")

    def test_a_job_of_two_processes_runs_on_it(self):
        self.file("worker.py").write_text(TWO_WORKERS)
        process = self.submit("--cluster", "nice", "--nice-by", 3, "--num-workers", 2, "/usr/bin/python3", "worker.py")
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(sorted(process.out.splitlines()), [f"[{r}] rank {r} of 2 nice {os.nice(0) + 3}" for r in range(2)])
        self.assertEqual(process.err, "")  # no warning about options without effect

    def test_a_process_of_it_that_fails_ends_the_job(self):
        process = self.submit("--cluster", "nice", "--num-workers", 2, "sh", "-c",
                              "test $DMLC_TASK_ID = 1 && exit 4; exec sleep 600")
        self.assertEqual(process.returncode, 4)
        self.assertRegex(self.last_line(process), "worker 1 .* exited with code 4 .*; the other process was stopped")

    def test_the_registry_makes_what_is_said_of_it(self):
        text = self.submit("--help").out
        self.assertIn("nice (this machine, behind everybody else's processes)", " ".join(text.split()))
        self.assertRegex(text, r"Only with --cluster nice:\n  --nice-by N ")
        page = self.submit("--help-markdown").out
        self.assertRegex(page, r"`--nice-by N` .* \| nice \|")
        self.assertRegex(page, r"`--jobname NAME` .* \| all \|")
        self.assertIn("is not one of local, ssh, mpi, slurm, sge, yarn, kubernetes, nice",
                      self.submit("--cluster", "moon", "--num-workers", 1, "true").err)
        shown = self.submit("--cluster", "nice", "--dry-run", "--num-workers", 1, "true", "a b").out
        self.assertRegex(shown, r"nice -n 5 \S*true 'a b'\n$")

    def test_a_job_that_may_lose_workers_is_refused(self):
        process = self.submit("--cluster", "nice", "--num-workers", "1:2", "true")
        self.assertEqual(process.returncode, 2, process.err)
        self.assertIn("--num-workers 1:2: --cluster nice cannot go on without a worker: give one number, and --max-restarts", process.err)

    def test_an_option_that_does_nothing_on_it_is_named(self):
        process = self.submit("--cluster", "nice", "--queue", "q", "--num-workers", 1, "true")
        self.assertIn("no effect with --cluster nice: --queue", process.err)
        process = self.submit("--nice-by", 3, "--num-workers", 1, "true")
        self.assertIn("no effect with --cluster local: --nice-by", process.err)


if __name__ == "__main__":
    unittest.main()

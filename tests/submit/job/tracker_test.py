"""dmlc-submit and its tracker: ranks, prints, workers that never arrive, the end of the job."""

import json
import re
import time
import unittest

from submit_case import SubmitCase

# Prepares a worker that can join the job as rabit does. Code after it may use `worker` and `task`.
JOIN = r"""
import os, pathlib, sys, time
from warren_testing import ClassicWorker, wait_for
task = int(os.environ['DMLC_TASK_ID'])
address = os.environ['DMLC_TRACKER_URI'], int(os.environ['DMLC_TRACKER_PORT'])
worker = ClassicWorker(address, task)
"""


class WithTracker(SubmitCase):
    def workers(self, count, code, *options, **settings):
        self.file("worker.py").write_text(JOIN + code)
        return self.submit("--num-workers", count, *options, "/usr/bin/python3", "worker.py", **settings)

    def test_workers_find_each_other_and_the_job_succeeds(self):
        process = self.workers(4, "worker.start(); print('rank', worker.rank); worker.shutdown()", exit_code=0)
        self.assertEqual(sorted(process.out.splitlines()), [f"[{r}] rank {r}" for r in range(4)])

    def test_prefix_is_the_rank_once_it_is_known(self):
        code = (
            "print('task', flush=True)\n"
            "worker.rank = 1 - task\n"  # requests a rank other than its task number
            "worker.start(); print('ranked', worker.rank, task, flush=True); worker.shutdown()"
        )
        process = self.workers(2, code, exit_code=0)
        self.assertEqual(
            sorted(process.out.splitlines()), ["[0] ranked 0 1", "[0] task", "[1] ranked 1 0", "[1] task"]
        )

    def test_logs_are_found_by_rank(self):
        code = "worker.rank = 1 - task\nworker.start(); print('ranked', worker.rank, flush=True); worker.shutdown()"
        self.workers(2, code, "--log-dir", "logs", exit_code=0)
        for rank in range(2):
            self.assertEqual((self.file("logs") / f"rank-{rank}.log").resolve().name, f"worker-{1 - rank}.log")
            self.assertEqual((self.file("logs") / f"rank-{rank}.log").read_text(), f"ranked {rank}\n")

    def test_last_line_has_the_rank(self):
        code = "worker.rank = 1 - task\nworker.start()\nif task == 1: sys.exit(6)\ntime.sleep(600)"
        process = self.workers(2, code, exit_code=6)
        self.assertRegex(self.last_line(process), r"worker 1 \(rank 0, host .*, pid \d+\) exited with code 6")

    def test_prints_of_workers_are_shown_as_they_are(self):
        code = "worker.start()\nif task == 0: worker.print('[3] train-error:0.1'); worker.print('two\\nlines\\n')\n"
        process = self.workers(2, code + "worker.shutdown()", exit_code=0)
        self.assertEqual(process.out, "[3] train-error:0.1\ntwo\nlines\n")

    def test_prints_of_workers_are_in_the_logs(self):
        code = "worker.start()\nif task == 0: worker.print('[3] train-error:0.1'); worker.print('two\\nlines\\n')\nworker.shutdown()"
        self.workers(2, code, "--log-dir", "logs", "--log-file", "log", exit_code=0)
        self.assertEqual(self.file("logs/tracker.log").read_text(), "[3] train-error:0.1\ntwo\nlines\n")
        printed = re.findall(r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} tracker: (.*)$", self.file("log").read_text())
        self.assertEqual(printed, ["[3] train-error:0.1", "two", "lines"])
        self.assertEqual(self.file("logs/tracker.log").stat().st_mode & 0o777, 0o600)
        self.workers(2, code, "--log-file", "json", "--log-format", "json")
        said = [json.loads(line) for line in self.file("json").read_text().splitlines()]
        self.assertEqual([line["text"] for line in said if line["source"] == "tracker"], ["[3] train-error:0.1", "two", "lines"])
        self.submit("--num-workers", 1, "--log-dir", "quiet", "true", exit_code=0)
        self.assertFalse(self.file("quiet/tracker.log").exists(), "nothing was printed")

    def test_workers_may_run_on_after_the_tracker_is_done(self):
        code = "worker.start(); worker.shutdown(); time.sleep(0.5); open(f'saved-{task}', 'w').write('yes')"
        self.workers(2, code, exit_code=0)
        self.assertTrue(self.file("saved-0").exists() and self.file("saved-1").exists())

    def test_failure_after_the_tracker_is_done_fails_the_job_without_a_restart(self):
        code = (
            "worker.start(); worker.shutdown(); open(f'down-{task}', 'w').close()\n"
            "if task == 0:\n"
            "    wait_for(lambda: pathlib.Path('down-1').exists()); time.sleep(0.2); sys.exit(4)"
        )
        process = self.workers(2, code, "--local-num-attempt", 3, exit_code=4)
        self.assertIn("on attempt 1 of 4, not started again because it had already left the job", self.last_line(process))

    def test_exit_0_without_shutdown_is_a_success(self):
        self.workers(3, "worker.start()", exit_code=0)

    def test_restarted_worker_gets_its_rank_back(self):
        # The other workers report their links as lost, as rabit does when a peer dies.
        code = (
            "worker.start()\nprint('rank', worker.rank, flush=True)\n"
            "if os.environ['DMLC_NUM_ATTEMPT'] == '0' and task == 1: sys.exit(1)\n"
            "if os.environ['DMLC_NUM_ATTEMPT'] == '0':\n"
            "    for link in worker.links.values(): link.sock.recv(1)\n"
            "    worker.links.clear(); worker.start('recover')\n"
            "worker.shutdown()"
        )
        process = self.workers(2, code, "--local-num-attempt", 1, exit_code=0)
        ranks = sorted(process.out.splitlines())
        self.assertEqual(len(ranks), 3)
        self.assertTrue(ranks[0] == ranks[1] or ranks[1] == ranks[2], ranks)

    def test_worker_that_leaves_without_joining_while_others_wait_is_named(self):
        code = "time.sleep(0.3) if task == 1 else worker.start()"
        process = self.workers(3, code, exit_code=1)
        self.assertRegex(
            self.last_line(process),
            r"worker 1 \(host .*, pid \d+\) exited with code 0 without joining the job at the tracker while "
            r"others wait for it; the job cannot start; the other 2 processes were stopped",
        )

    def test_it_does_not_matter_whether_the_others_join_before_or_after(self):
        process = self.workers(3, "None if task == 1 else (time.sleep(0.5), worker.start())", exit_code=1)
        self.assertIn("worker 1 (", self.last_line(process))

    def test_missing_worker_ends_the_job_at_the_timeout_with_a_list(self):
        process = self.workers(2, "time.sleep(600) if task == 1 else worker.start()", "--timeout", "1.5", exit_code=1)
        said = process.err[process.err.index("error:") :]
        self.assertIn("127.0.0.1", said)
        self.assertRegex(said, "(?i)task 0")
        self.assertNotIn("[", self.last_line(process))

    def test_workers_that_never_connect_end_at_the_timeout(self):
        begin = time.monotonic()
        process = self.submit("--num-workers", 2, "--timeout", "0.5", "sleep", "600", exit_code=1)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertIn("error:", process.err)

    def test_timeout_0_waits_for_ever(self):
        self.submit("--num-workers", 2, "--timeout", "0", "sleep", "0.5", exit_code=0)

    def test_port_that_is_taken_is_passed_over_or_named(self):
        import socket

        taken = socket.create_server(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        process = self.submit("--num-workers", 1, "--port", port, "true", exit_code=1)
        self.assertIn(str(port), self.last_line(process))
        process = self.workers(1, "print(address[1])", "--port", port, "--port-end", min(port + 50, 65535), exit_code=0)
        self.assertGreater(int(process.out.split()[1]), port)
        taken.close()


if __name__ == "__main__":
    unittest.main()

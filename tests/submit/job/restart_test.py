"""dmlc-submit --max-restarts: a job that fails is stopped and started again as a whole."""

import json
import os
import signal
import unittest

from submit_case import IDLE, LIMIT_S, SubmitCase, python
from warren_testing import wait_for

# Each worker records its attempt and its pid, waits for all workers of the same start, and then runs the code that a test appends.
TOGETHER = r"""
import json, os, pathlib, signal, sys, time
task, attempt = os.environ['DMLC_TASK_ID'], int(os.environ['DMLC_NUM_ATTEMPT'])
starts = len(list(pathlib.Path('.').glob(f'start-{task}-*')))
pathlib.Path(f'start-{task}-{starts}').write_text(json.dumps([attempt, os.getpid()]))
while len(list(pathlib.Path('.').glob(f'start-*-{starts}'))) < int(os.environ['DMLC_NUM_WORKER']):
    time.sleep(0.01)
"""


class Restart(SubmitCase):
    def attempts(self, workers):
        """For each worker, the value of DMLC_NUM_ATTEMPT at each of its starts."""
        found = []
        for task in range(workers):
            count = len(list(self.directory.glob(f"start-{task}-*")))
            found.append([json.loads(self.file(f"start-{task}-{i}").read_text())[0] for i in range(count)])
        return found

    def test_all_workers_are_started_again_with_the_attempt_counted_up(self):
        code = TOGETHER + "if attempt == 0: sys.exit(7) if task == '1' else time.sleep(600)"
        process = self.submit("--num-workers", 3, "--max-restarts", 2, *python(code), exit_code=0)
        self.assertEqual(self.attempts(3), [[0, 1]] * 3)
        self.assertRegex(process.err, r"warning: worker 1 \(host \S+, pid \d+\) exited with code 7 on attempt 1 of 1; "
                                      r"starting all 3 processes again \(restart 1 of 2\)")

    def test_the_last_failure_is_told_when_the_restarts_are_used_up(self):
        process = self.submit("--num-workers", 2, "--max-restarts", 2,
                              *python(TOGETHER + "sys.exit(9) if task == '0' else time.sleep(600)"), exit_code=9)
        self.assertEqual(self.attempts(2), [[0, 1, 2]] * 2)
        self.assertIn("exited with code 9 on attempt 1 of 1, after the job had been started again 2 times; the other "
                      "process was stopped", self.last_line(process))

    def test_workers_that_ignore_sigterm_are_started_again_too(self):
        code = ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TOGETHER +
                "if attempt == 0: sys.exit(7) if task == '1' else time.sleep(600)\ntime.sleep(1.5)")
        process = self.submit("--num-workers", 2, "--max-restarts", 1, *python(code))
        # The workers of the second start run for longer than the grace time that began when the first start was stopped.
        self.assertEqual(process.returncode, 0, process.err)
        self.assertEqual(self.attempts(2), [[0, 1]] * 2)

    def test_a_worker_has_its_own_restarts_first_and_all_count_on_from_the_highest(self):
        # Worker 1 fails only after worker 0 has recorded its start, since the failure stops worker 0.
        code = TOGETHER.replace("while", "while task != '1' and") + (
            "while not os.path.exists('start-0-0'): time.sleep(0.01)\n"
            "if attempt < 2: sys.exit(7) if task == '1' else time.sleep(600)")
        self.submit("--num-workers", 2, "--local-num-attempt", 1, "--max-restarts", 1, *python(code), exit_code=0)
        self.assertEqual(self.attempts(2), [[0, 2], [0, 1, 2]])

    def test_a_worker_that_was_done_is_started_again_with_the_others(self):
        code = TOGETHER + "if attempt == 0 and task == '1': time.sleep(0.5); sys.exit(7)"
        self.submit("--num-workers", 2, "--max-restarts", 1, *python(code), exit_code=0)
        self.assertEqual(self.attempts(2), [[0, 1]] * 2)

    def test_workers_that_stay_away_from_the_tracker_are_a_reason(self):
        # Worker 0 sends "start" to the tracker and waits. Worker 1 sleeps, so no worker is linked.
        code = TOGETHER + """
import socket, struct
if attempt == 0 and task == '1': time.sleep(600)
if attempt == 0:
    tracker = socket.create_connection((os.environ['DMLC_TRACKER_URI'], int(os.environ['DMLC_TRACKER_PORT'])))
    tracker.sendall(struct.pack('@iiii', 0xff99, -1, -1, 1) + b'0' + struct.pack('@i', 5) + b'start')
    time.sleep(600)
"""
        process = self.submit("--num-workers", 2, "--max-restarts", 1, "--timeout", 1, *python(code), exit_code=0)
        self.assertIn("workers are missing after 1 s", process.err)
        self.assertEqual(self.attempts(2), [[0, 1]] * 2)

    def test_a_command_that_cannot_be_started_is_not_tried_again(self):
        process = self.submit("--num-workers", 2, "--max-restarts", 5, "./no-such-command")
        self.assertNotEqual(process.returncode, 0)
        self.assertNotIn("again", process.err)

    def test_ctrl_c_ends_it_whatever_restarts_are_left(self):
        process = self.start("--num-workers", 2, "--max-restarts", 5, *python(TOGETHER + IDLE))
        self.wait_for_files("start-0-0", "start-1-0")
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(self.attempts(2), [[0]] * 2)

    def test_ctrl_c_while_it_is_being_stopped_to_be_started_again_ends_it(self):
        code = ("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TOGETHER +
                "if task == '1': sys.exit(7)\ntime.sleep(600)")
        process = self.start("--num-workers", 2, "--max-restarts", 5, *python(code))
        seen = self.wait_for_text(process.stderr, "restart 1 of 5")
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 130, seen + err.decode())
        self.assertEqual(self.attempts(2), [[0]] * 2)

    def test_nothing_of_an_earlier_start_is_left_beside_a_later_one(self):
        # A process that leaves its process group and session survives when its parent's group is killed.
        stray = ("import subprocess\nstray = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                 "pathlib.Path(f'stray-{task}-{starts}').write_text(str(stray.pid))\n")
        code = TOGETHER.replace("while", stray + "while", 1) + (
            "while not os.path.exists(f'stray-0-{starts}'): time.sleep(0.01)\n"  # task 1's failure ends task 0, whose stray must exist by then
            "if attempt == 0: sys.exit(7) if task == '1' else time.sleep(600)\n"
            "while not os.path.exists('seen'): time.sleep(0.01)")
        process = self.start("--num-workers", 2, "--max-restarts", 1, *python(code))
        first, second = (set(), set())
        for number, pids in enumerate((first, second)):
            texts = self.wait_for_files(f"start-0-{number}", f"start-1-{number}")
            pids.update(json.loads(text)[1] for text in texts)
            pids.update(int(text) for text in self.wait_for_files(f"stray-0-{number}", f"stray-1-{number}"))
        wait_for(lambda: second <= set(self.marked()), LIMIT_S, "the second start")
        self.assertFalse(first & set(self.marked()))
        self.file("seen").write_text("")
        self.assertEqual(process.wait(LIMIT_S), 0)


if __name__ == "__main__":
    unittest.main()

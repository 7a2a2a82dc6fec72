"""The failure of a process of a job: exit code, last output, restarts, and the end of the other processes."""

import os
import re
import signal
import subprocess
import sys
import time
import unittest

from submit_case import AT_ONCE_S, IDLE, LIMIT_S, PROGRAM, STOP_LIMIT_S, STOP_LIMIT_SLACK_S, TRIES, SubmitCase, python
from warren_testing import wait_for

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "

# Once all workers are up, worker 1 runs the code that a test appends. The other workers sleep.
ONE_FAILS = r"""
import os, pathlib, signal, sys, time
task = os.environ['DMLC_TASK_ID']
pathlib.Path('up-' + task).write_text(str(os.getpid()))
if task != '1':
    time.sleep(600)
while len(list(pathlib.Path('.').glob('up-*'))) < int(os.environ['DMLC_NUM_WORKER']):
    time.sleep(0.01)
"""


class Failure(SubmitCase):
    def test_exit_code_is_0_when_all_succeed(self):
        self.submit("--num-workers", 3, "true", exit_code=0)

    def test_programs_that_never_joined_their_job_are_told_of_and_the_exit_code_stays_0(self):
        self.file("xgboost.py").write_text("")  # a stand-in for the library
        self.file("plain.py").write_text("import xgboost\n")
        process = self.submit("--num-workers", 2, "--quiet", sys.executable, "plain.py", exit_code=0)
        self.assertEqual(process.err.count("no worker joined the job: 2 separate programs ran. plain.py uses xgboost"), 1, process.err)
        for words in (["--num-workers", 1, sys.executable, "plain.py"], ["--num-workers", 2, "--no-tracker", sys.executable, "plain.py"],
                      ["--num-workers", 2, "hostname"], ["--num-workers", 2, "sh", "-c", "echo $RANK; sleep 0.1"],
                      ["--num-workers", 2, *python("print('xgboost')")]):  # fmt: skip
            process = self.submit(*words, exit_code=0)
            self.assertNotIn("joined", process.err)

    def test_exit_code_is_that_of_the_first_worker_that_failed(self):
        self.submit("--num-workers", 3, *python(ONE_FAILS + "sys.exit(42)"), exit_code=42)

    def test_exit_code_is_128_and_the_signal_for_a_worker_that_was_killed(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            code = f"import os; os.kill(os.getpid(), {int(number)})"
            process = self.submit("--num-workers", 1, *python(code), exit_code=128 + number)
            self.assertIn(f"killed by signal {int(number)} ({number.name}", self.last_line(process))

    def test_last_line_names_the_worker_host_pid_code_and_attempts(self):
        process = self.submit("--num-workers", 3, *python(ONE_FAILS + "sys.exit(3)"))
        pid = self.file("up-1").read_text()
        self.assertEqual(
            self.last_line(process),
            f"dmlc-submit: error: worker 1 (host {os.uname().nodename}, pid {pid}) exited with code 3 "
            "on attempt 1 of 1; the other 2 processes were stopped",
        )

    def test_last_output_of_the_failed_worker_is_repeated(self):
        code = ONE_FAILS + "print('\\n'.join(f'line {i}' for i in range(100))); print('why', file=sys.stderr, end='')"
        process = self.submit("--num-workers", 2, *python(code + "; sys.exit(1)"))
        lines = process.err.splitlines()
        start = lines.index("dmlc-submit: the last output of worker 1:")
        told = lines[start + 1 : -1]
        self.assertEqual(len(told), 12)
        self.assertEqual(told[-1], "dmlc-submit:   | why")
        self.assertIn("dmlc-submit:   | line 99", told)

    def test_a_worker_that_fails_is_started_again_with_its_attempt_counted_up(self):
        code = ONE_FAILS.replace("time.sleep(600)", "sys.exit(0)") + (
            "open('attempts', 'a').write(os.environ['DMLC_NUM_ATTEMPT'] + ' '); "
            "sys.exit(0 if os.environ['DMLC_NUM_ATTEMPT'] == '2' else 9)"
        )
        process = self.submit("--num-workers", 2, "--local-num-attempt", 2, *python(code), exit_code=0)
        self.assertEqual(self.file("attempts").read_text(), "0 1 2 ")
        self.assertIn("exited with code 9 on attempt 2 of 3; starting it again", process.err)

    def test_job_ends_when_the_attempts_are_used_up(self):
        code = ONE_FAILS + "open('attempts', 'a').write(os.environ['DMLC_NUM_ATTEMPT'] + ' '); sys.exit(9)"
        process = self.submit("--num-workers", 2, "--local-num-attempt", 1, *python(code), exit_code=9)
        self.assertEqual(self.file("attempts").read_text(), "0 1 ")
        self.assertIn("on attempt 2 of 2", self.last_line(process))

    def stop_time(self, others, before=""):
        """Returns the seconds from the failure of worker 1 until dmlc-submit and all other processes are gone.

        The other workers run the code `others`; worker 1 runs `before` before it fails."""
        code = ONE_FAILS.replace("time.sleep(600)", others)
        failing = before + "open('failing', 'w').write(str(time.monotonic())); sys.exit(5)"
        for path in self.directory.iterdir():
            path.unlink()
        process = self.start("--num-workers", 4, *python(STUBBORN + code + failing))
        self.wait_for_files("failing")
        self.assertEqual(process.wait(timeout=30), 5)
        wait_for(lambda: not self.marked(), LIMIT_S, "the end of all processes")
        return time.monotonic() - float(self.file("failing").read_text())

    def test_the_others_are_gone_within_a_second_even_when_they_ignore_sigterm(self):
        seconds = self.stop_time("time.sleep(600)")
        self.assertLess(seconds, STOP_LIMIT_S + STOP_LIMIT_SLACK_S)
        self.assertGreater(seconds, AT_ONCE_S)  # the other workers had time to end cleanly

    def test_the_others_are_gone_at_once_when_they_heed_sigterm(self):
        heeding = "signal.signal(signal.SIGTERM, signal.SIG_DFL); time.sleep(600)"
        self.assertTrue(any(self.stop_time(heeding) < AT_ONCE_S for _ in range(TRIES)))

    def test_a_stopped_worker_is_asked_and_ended_too(self):
        code = (
            "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path('asked').touch()); "
            "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)"
        )
        all_stopped = (
            "def stopped(pid): return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] == 'T'\n"
            "while not all(stopped(p.read_text()) for p in pathlib.Path('.').glob('up-[023]')): time.sleep(0.01)\n"
        )
        self.assertLess(self.stop_time(code, all_stopped), STOP_LIMIT_S + STOP_LIMIT_SLACK_S)
        self.assertTrue(self.file("asked").exists())

    def test_a_worker_is_asked_before_it_is_killed(self):
        code = ONE_FAILS.replace(
            "time.sleep(600)",
            "signal.signal(signal.SIGTERM, lambda *_: (open('asked', 'w').write('yes'), sys.exit(0)));"
            "open('ready', 'w').write('yes'); time.sleep(600)",
        ).replace("glob('up-*'))) < int(os.environ['DMLC_NUM_WORKER'])", "glob('ready'))) < 1")
        self.submit("--num-workers", 2, *python(code + "sys.exit(5)"), exit_code=5)
        self.assertEqual(self.file("asked").read_text(), "yes")

    def test_command_that_cannot_be_found_is_127_and_starts_nothing(self):
        for command in ("nonesuch-program", "./nonesuch"):
            process = self.submit("--num-workers", 3, command, exit_code=127)
            self.assertIn(f"cannot start '{command}'", self.last_line(process))

    def test_command_that_cannot_be_executed_is_126(self):
        self.file("text").write_text("true\n")
        process = self.submit("--num-workers", 3, "./text", exit_code=126)
        self.assertIn("not executable", self.last_line(process))
        self.file("text").chmod(0o755)
        process = self.submit("--num-workers", 3, "./text", exit_code=126)
        self.assertIn("Exec format error (is it a script without a first line such as #!/bin/sh?)", process.err)

    def test_script_whose_interpreter_is_missing_is_explained(self):
        self.file("script").write_text("#!/nonesuch/interpreter\n")
        self.file("script").chmod(0o755)
        process = self.submit("--num-workers", 3, "./script", exit_code=127)
        self.assertIn("cannot start './script': No such file or directory (the file exists,", process.err)

    def test_any_process_of_a_parameter_server_job_decides(self):
        for role in ("scheduler", "server", "worker"):
            code = f"import os, sys; sys.exit(7) if os.environ['DMLC_ROLE'] == '{role}' else None; {IDLE}"
            process = self.submit("--num-workers", 1, "--num-servers", 1, *python(code), exit_code=7)
            name = "scheduler" if role == "scheduler" else role + " 0"
            self.assertRegex(self.last_line(process), f"error: {re.escape(name)} \\(host")

    def test_limit_on_open_files_that_is_too_low_is_explained(self):
        script = 'ulimit -n 200; exec "$0" --num-workers 100 true'
        process = subprocess.run(
            ["sh", "-c", script, PROGRAM], env=self.environment(), capture_output=True, text=True, timeout=60
        )
        self.assertEqual(process.returncode, 1)
        self.assertIn("open files at once, but the limit is 200", process.stderr)

    def test_limits_on_open_files_under_which_nothing_begins_are_explained(self):
        for limit in range(4, 14):
            with self.subTest(limit=limit):
                script = f'ulimit -n {limit}; exec "$0" --num-workers 1 true'
                process = subprocess.run(
                    ["sh", "-c", script, PROGRAM], env=self.environment(), capture_output=True, text=True, timeout=60
                )
                self.assertEqual(process.returncode, 1, process.stderr)
                self.assertRegex(process.stderr, "dmlc-submit: error: .*ulimit")


if __name__ == "__main__":
    unittest.main()

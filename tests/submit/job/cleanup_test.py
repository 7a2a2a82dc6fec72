"""However dmlc-submit ends, nothing of the job is left behind."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

from submit_case import AT_ONCE_S, LIMIT_S, PROGRAM, STOP_LIMIT_S, STOP_LIMIT_SLACK_S, TRIES, SubmitCase, kill_at_once, python
from warren_testing import wait_for

# A shell and its child, which both ignore SIGTERM, as a worker script and its Python process might.
FAMILY = r"""
trap '' TERM
python3 -c '
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("up-" + os.environ["DMLC_TASK_ID"], "w").write(str(os.getpid()))
time.sleep(600)' &
wait
sleep 600
"""
WITHIN_S = STOP_LIMIT_S + STOP_LIMIT_SLACK_S


class Cleanup(SubmitCase):
    def start_families(self, count=3, **settings):
        process = self.start("--num-workers", count, "bash", "-c", FAMILY, **settings)
        self.wait_for_files(*(f"up-{task}" for task in range(count)))
        self.assertGreater(len(self.marked()), 2 * count)
        return process

    def watchdog(self):
        """The pid of the marked process with the watchdog's name, or None."""
        for pid in self.marked():
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "warren-watchdog\n":
                return pid
        return None

    def check_signal(self, number):
        process = self.start_families()
        begin = time.monotonic()
        process.send_signal(number)
        self.assertEqual(process.wait(LIMIT_S), 128 + number)
        wait_for(lambda: not self.marked(), LIMIT_S, "the end of all processes")
        self.assertLess(time.monotonic() - begin, WITHIN_S)
        self.assertEqual(
            process.stderr.read().decode().splitlines()[-1],
            f"dmlc-submit: error: the job was interrupted by {number.name}; its 3 processes were stopped",
        )

    def test_ctrl_c_ends_everything_within_a_second(self):
        self.check_signal(signal.SIGINT)

    def test_sigterm_ends_everything_within_a_second(self):
        self.check_signal(signal.SIGTERM)

    def test_hangup_ends_everything_within_a_second(self):
        self.check_signal(signal.SIGHUP)

    def seconds_to_end_by_two_ctrl_c(self):
        for path in self.directory.iterdir():
            path.unlink()
        process = self.start_families()
        begin = time.monotonic()
        while process.poll() is None:
            process.send_signal(signal.SIGINT)  # signals in quick succession may be merged into one
            time.sleep(0.05)
        # The last signal may arrive after everything has been stopped, and then kills dmlc-submit itself.
        self.assertIn(process.returncode, (130, -signal.SIGINT))
        return time.monotonic() - begin

    def test_second_ctrl_c_kills_at_once(self):
        self.assertTrue(any(self.seconds_to_end_by_two_ctrl_c() < AT_ONCE_S for _ in range(TRIES)))

    def test_nohup_keeps_the_job_running(self):
        process = self.start_families(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT_S), 143)

    def test_nothing_is_left_when_dmlc_submit_is_killed(self):
        process = self.start_families()
        begin = time.monotonic()
        process.kill()
        process.wait()
        wait_for(lambda: not self.marked(), LIMIT_S, "the end of all processes")
        self.assertLess(time.monotonic() - begin, WITHIN_S)

    def test_workers_are_asked_first_when_dmlc_submit_is_killed(self):
        code = (
            "import os, signal, sys, time\n"
            "def end(*_):\n    time.sleep(0.1)\n    open('asked', 'w').write('yes')\n    sys.exit(0)\n"
            "signal.signal(signal.SIGTERM, end)\nopen('up', 'w').write('yes')\ntime.sleep(600)"
        )
        process = self.start("--num-workers", 1, *python(code))
        self.wait_for_files("up")
        process.kill()
        self.wait_for_files("asked")

    def test_nothing_is_left_when_dmlc_submit_is_killed_while_it_starts_workers(self):
        for delay_ms in (1, 3, 10, 20, 40, 80, 120):
            process = self.start("--num-workers", 100, "sh", "-c", "trap '' TERM; sleep 600 & sleep 601; sleep 602")
            time.sleep(delay_ms / 1000)  # dmlc-submit is killed at different moments of the start
            process.kill()
            process.wait()
            self.check_nothing_is_left(10)

    def test_watchdog_is_not_killed_with_all_that_is_called_dmlc_submit(self):
        process = self.start_families()
        watchdog = self.watchdog()
        self.assertIsNotNone(watchdog)
        command_line = pathlib.Path(f"/proc/{watchdog}/cmdline").read_bytes()
        self.assertNotIn(b"dmlc-submit", command_line)
        self.assertIn(b"warren-watchdog", command_line)
        self.assertNotEqual(os.getsid(watchdog), os.getsid(process.pid))
        self.assertEqual(len(os.listdir(f"/proc/{watchdog}/fd")), 1)

    def test_watchdog_that_was_killed_is_replaced(self):
        process = self.start_families()
        first = self.watchdog()
        kill_at_once(first)
        wait_for(lambda: self.watchdog() not in (None, first), LIMIT_S, "another watchdog")
        process.kill()
        process.wait()
        self.check_nothing_is_left()

    def test_nothing_is_left_on_success(self):
        # The workers leave a background process: in the first job with redirected output, in the second with the worker's output.
        for redirection in (">/dev/null 2>&1", ""):
            process = self.submit("--num-workers", 2, "sh", "-c", f"sleep 600 {redirection} & echo done", exit_code=0)
            self.assertEqual(sorted(process.out.splitlines()), ["[0] done", "[1] done"])

    def test_reader_of_a_killed_dmlc_submit_sees_the_end(self):
        process = self.start_families()
        process.kill()
        process.communicate(timeout=LIMIT_S)

    def test_reader_sees_the_end_even_when_a_descendant_escapes_with_the_output(self):
        # setsid takes the background process out of the process group. dmlc-submit must not wait until that process closes its output.
        process = self.start("--num-workers", 1, "sh", "-c", "setsid sleep 600 & echo $! > escaped; echo done")
        out, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, out), (0, b"[0] done\n"))

    def test_processes_that_left_their_group_are_gone_after_sigterm_and_after_sigkill(self):
        # timeout creates its own process group, so the shell that it runs might be left over.
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = self.start("--num-workers", 2, "bash", "-c",
                                 "timeout 600 bash -c 'echo up > up$DMLC_TASK_ID; sleep 600; true'; true")
            self.wait_for_files("up0", "up1")
            process.send_signal(number)
            process.communicate(timeout=LIMIT_S)
            self.check_nothing_is_left()
            for name in ("up0", "up1"):
                self.file(name).unlink()

    def test_terminal_ctrl_c_reaches_dmlc_submit_only(self):
        code = (
            "import os, signal, sys, time\n"
            "signal.signal(signal.SIGINT, lambda *_: open('interrupted', 'w').write('yes'))\n"
            "open('up', 'w').write('yes')\ntime.sleep(600)"
        )
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        process = subprocess.Popen(
            ["setsid", "--ctty", PROGRAM, "--num-workers", "1", *python(code)],
            stdin=slave, stdout=slave, stderr=slave, cwd=self.directory,
            env=self.environment({"DMLC_SUBMIT_CLUSTER": "local"}),
        )  # fmt: skip
        self.addCleanup(self.end, process)
        os.close(slave)
        self.wait_for_files("up")
        os.write(master, b"\x03")
        self.assertEqual(process.wait(LIMIT_S), 130)
        self.assertFalse(self.file("interrupted").exists())


if __name__ == "__main__":
    unittest.main()

"""Samples and stacks of a running job's processes on this machine. The log has samples at --log-level DEBUG; SIGUSR2 requests stacks."""

import os
import pathlib
import re
import shutil
import signal
import unittest

from submit_case import LIMIT_S, SubmitCase, python_with
from warren_testing import wait_for

STUCK = "import time\ndef waits_here(): time.sleep(600)\nopen('ready', 'w').write('x')\nwaits_here()\n"
# A shell runs between dmlc-submit and each program, as is common.
WORKER = ("case $DMLC_TASK_ID in 0) sh -c 'while :; do :; done' ;; 1) sleep 600 ;; 2) sh -c 'kill -STOP $$' ;; esac; true")
# The programs that the script which reads stacks needs.
TOOLS = ("sh", "cat", "sed", "tr", "cut", "head", "tail", "grep", "readlink", "uname", "id", "sleep")


def state_of(pid):
    return (pathlib.Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]


class Samples(SubmitCase):
    def test_who_burns_cpu_who_sleeps_and_who_is_stopped(self):
        process = self.start("--num-workers", 3, "--no-tracker", "--log-level", "DEBUG", "sh", "-c", WORKER)
        seen = ""
        patterns = (r"worker 0: state R, (\d+\.\d) s of CPU, [1-9]\d* MB", r"worker 1: state S, 0\.\d s", r"worker 2: state T, ")
        while not all(re.search(pattern, seen) for pattern in patterns):
            seen += self.wait_for_text(process.stderr, "state")
        burnt = [float(seconds) for seconds in re.findall(patterns[0], seen)]
        while len(burnt) < 2:
            seen += self.wait_for_text(process.stderr, "worker 0: state R")
            burnt = [float(seconds) for seconds in re.findall(patterns[0], seen)]
        self.assertGreater(burnt[1], burnt[0], "the CPU time of what a worker has started grows")
        self.assertGreater(burnt[0], 0)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)


class Stacks(SubmitCase):
    def stacks(self, command, text, **settings):
        """Starts a job of one worker and requests its stacks. Returns dmlc-submit's process and its standard error up to `text`."""
        process = self.start("--num-workers", 1, "--no-tracker", *command, **settings)
        self.wait_for_files("ready")
        process.send_signal(signal.SIGUSR2)
        said = self.wait_for_text(process.stderr, text)
        self.assertIn("worker 0 (host", said)
        return process, said

    def finish(self, process):
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LIMIT_S)
        self.check_nothing_is_left()

    def test_py_spy_shows_the_line_of_a_python_program_below_a_shell(self):
        self.file("program.py").write_text(STUCK)
        process, _ = self.stacks(["sh", "-c", f"{python_with('py-spy')} program.py; true"], "waits_here (program.py:2)")
        self.finish(process)

    @unittest.skipUnless(shutil.which("gdb"), "there is no gdb here")
    def test_gdb_shows_where_a_stopped_program_is_and_leaves_it_stopped(self):
        process, said = self.stacks(["sh", "-c", "echo $$ > ready; kill -STOP $$"], "#0 ")
        self.assertIn("T (stopped)", said)
        self.assertIn("#0 ", said)
        pid = self.file("ready").read_text().strip()
        wait_for(lambda: state_of(pid) == "T", LIMIT_S, "the state it had")
        self.finish(process)

    def test_without_tools_the_kernel_says_what_it_knows_and_the_user_what_to_install(self):
        tools = self.folder_of_programs(*TOOLS)
        process, said = self.stacks(["sh", "-c", "echo x > ready; exec sleep 600"], "gdb is not installed on ", environment={"PATH": tools})
        self.assertRegex(said, r"process \d+ \(sleep\): S \(sleeping\)")
        self.finish(process)

    def test_of_python_without_py_spy_it_says_what_to_install_also_where_there_is_gdb(self):
        tools = self.folder_of_programs(*TOOLS)
        (tools / "python3").symlink_to(os.path.realpath("/usr/bin/python3"))
        (tools / "gdb").write_text("#!/bin/sh\necho 'Thread 1'\necho '#0  clock_nanosleep ()'\n")
        (tools / "gdb").chmod(0o755)
        self.file("program.py").write_text(STUCK)
        process, said = self.stacks([str(tools / "python3"), "program.py"], "py-spy is not installed on ", environment={"PATH": tools})
        self.assertIn("#0  clock_nanosleep", said)
        self.assertRegex(said, r"py-spy is not installed on \S+; it shows lines of Python: pip install py-spy")
        self.finish(process)

    def test_a_job_that_ends_while_it_is_asked_ends_well(self):
        self.file("gdb").write_text("#!/bin/sh\necho x > asked\nexec sleep 600\n")
        self.file("gdb").chmod(0o755)
        process = self.start("--num-workers", 1, "--no-tracker", "sh", "-c",
                             "echo x > ready; while ! [ -e asked ]; do sleep 0.05; done",
                             environment={"PATH": f"{self.directory}:{os.environ['PATH']}"})  # fmt: skip
        self.wait_for_files("ready")
        process.send_signal(signal.SIGUSR2)
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()

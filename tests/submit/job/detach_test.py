"""dmlc-submit --detach: the job outlives the terminal, its output is kept, and errors of its start are shown as without --detach."""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import unittest

from submit_case import LIMIT_S, SubmitCase, python
from warren_testing import free_ports, wait_for

#: A Python program that prints a line, writes the file up-TASK, waits for a file "go", and then prints a line to each stream.
WAIT_FOR_GO = r"""
import os, sys, time
task = os.environ["DMLC_TASK_ID"]
print("began", task, flush=True)
open("up-" + task, "w").write("up")
while not os.path.exists("go"):
    time.sleep(0.01)
print("went on", task)
print("error text", task, file=sys.stderr)
"""


class Detach(SubmitCase):
    def environment(self, extra=None):
        return super().environment({"XDG_STATE_HOME": self.file("state"), **(extra or {})})

    @property
    def jobs(self):
        return self.file("state/warren/jobs")

    def record(self, job):
        return json.loads((self.jobs / f"{job}.json").read_text())

    def end_of(self, job):
        """Waits for the end of the job. Returns the job's record."""
        return wait_for(lambda: "how" in self.record(job) and self.record(job), LIMIT_S, "the end of the job")

    def detach(self, *words, **settings):
        """Starts a job with --detach in a new session. Returns the job's ID."""
        starter = self.start("--detach", *words, start_new_session=True, **settings)
        out, err = starter.communicate(timeout=LIMIT_S)
        self.assertEqual(starter.returncode, 0, err)
        self.assertRegex(out.decode(), r"^\d{8}T\d{6}Z-\d+\n$")
        starter.err = err.decode()
        return out.decode().strip()

    def log(self, job, name="launcher.log"):
        return pathlib.Path(self.record(job)["log_dir"], name).read_text()

    def test_a_job_goes_on_when_its_terminal_is_gone_and_its_logs_have_everything(self):
        words = ["--num-workers", "2", "--quiet", *python(WAIT_FOR_GO)]
        shell, terminal = pty.fork()
        if shell == 0:
            os.chdir(self.directory)
            # The shell stays until the terminal is gone, and is the leader of the terminal's session.
            os.execve("/bin/bash", ["bash", "-c", '"$0" "$@"; cat', self.program, "--detach", *words], self.environment())
        job = self.wait_for_text(terminal, "\n").strip()
        self.wait_for_files("up-0", "up-1")
        launcher = self.record(job)["pid"]
        self.assertNotEqual(os.getsid(launcher), shell)
        self.assertEqual(os.readlink(f"/proc/{launcher}/fd/0"), "/dev/null")
        os.killpg(shell, signal.SIGHUP)
        os.close(terminal)
        os.waitpid(shell, 0)
        os.kill(launcher, 0)
        self.file("go").touch()
        record = self.end_of(job)
        self.assertEqual((record["how"], record["exit_code"], record["detached"]), ("succeeded", 0, True))
        self.check_nothing_is_left(LIMIT_S)
        self.assertEqual(record["log_dir"], str(self.jobs / job))
        lines = self.log(job).splitlines()
        for task in range(2):
            expected = [f"[{task}] {text} {task}" for text in ("began", "went on", "error text")]
            self.assertEqual(sorted(line for line in lines if line.startswith(f"[{task}]")), sorted(expected))
            self.assertEqual(sorted(self.log(job, f"worker-{task}.log").splitlines()),
                             sorted(line.partition(" ")[2] for line in expected))
        self.assertEqual(os.stat(self.jobs / job / "launcher.log").st_mode & 0o777, 0o600)

    def test_the_launcher_keeps_nothing_of_the_process_that_started_it(self):
        reader, writer = os.pipe()
        with open(reader, "rb") as inherited:
            job = self.detach("--num-workers", 1, "--quiet", *python(WAIT_FOR_GO), pass_fds=[writer])
            os.close(writer)
            self.assertTrue(select.select([inherited], [], [], LIMIT_S)[0], "somebody still has the pipe")
            self.assertEqual(inherited.read(), b"")
        place = pathlib.Path(f"/proc/{self.record(job)['pid']}/fd")
        self.assertEqual([os.readlink(place / number) for number in "012"],
                         ["/dev/null", *2 * [str(self.jobs / job / "launcher.log")]])
        self.assertEqual(os.getsid(int(job.partition("-")[2])), int(job.partition("-")[2]))
        self.file("go").touch()
        self.end_of(job)

    def test_messages_of_the_start_are_shown_and_kept(self):
        job = self.detach("--num-workers", 1, "--dashboard", "--queue", "q", *python(WAIT_FOR_GO))
        shown = self.started[-1].err
        self.assertIn("no effect with --cluster local: --queue", shown)
        page = re.search(r"dashboard: (http\S+)", shown).group(1)
        self.assertEqual(self.record(job)["dashboard"], page)
        self.assertTrue(self.log(job).startswith(shown), (shown, self.log(job)))
        self.file("go").touch()
        self.assertNotIn("dashboard", self.end_of(job))

    def test_the_end_of_the_record_comes_after_the_last_output(self):
        job = self.detach("--num-workers", 1, *python("import sys; print('x' * 1000000); sys.exit(3)"))
        self.assertEqual(self.end_of(job)["exit_code"], 3)
        self.assertRegex(self.log(job).splitlines()[-1], "worker 0 .* exited with code 3")

    def test_a_log_folder_that_is_given_is_used_and_keeps_the_logs_of_the_job_before(self):
        for number in range(2):
            job = self.detach("--num-workers", 1, "--log-dir", "logs", "echo", f"job {number}")
            self.end_of(job)
            self.check_nothing_is_left(LIMIT_S)
        self.assertEqual(self.log(job).splitlines()[-1], "[0] job 1")
        self.assertEqual((self.file("logs") / "earlier/launcher.log").read_text(), "[0] job 0\n")
        self.assertFalse((self.jobs / job).exists())

    def test_a_start_that_fails_looks_as_without_it_and_leaves_nothing(self):
        port, = free_ports(1)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            taken.listen()
            for words in (["true"], ["--num-workers", 1, "--no-such-option", "true"], ["--num-workers", 1, "no-such-program"],
                          ["--num-workers", 1, "--port", port, "--port-end", port, "true"],
                          ["--num-workers", 1, "--dashboard", port, "true"],
                          ["--num-workers", 1, f"--dashboard={port}", "true"],
                          ["--num-workers", 1, "--log-dir", "/dev/null", "true"],
                          ["--num-workers", 1, "--cluster", "ssh", "--host-file", "no-such-file", "true"]):
                with self.subTest(words=words):
                    plain, detached = self.submit(*words), self.submit("--detach", *words)
                    self.assertNotEqual(plain.returncode, 0)
                    self.assertEqual((detached.returncode, detached.out, detached.err), (plain.returncode, "", plain.err))
        self.assertFalse(self.file("state").exists())

    def test_where_nothing_would_be_started_it_is_refused(self):
        for words in (["--dry-run"], ["--cluster", "kubernetes", "--kube-worker-image", "x", "--kube-manifest", "jobs.yaml"]):
            process = self.submit("--detach", "--num-workers", 1, *words, "true")
            self.assertEqual((process.returncode, process.out), (2, ""))
            self.assertIn(f"--detach: with {words[-2] if len(words) > 1 else words[0]}", process.err)
            self.assertIn("there is no job that could continue; give one of the two", process.err)
        self.assertFalse(self.file("jobs.yaml").exists())
        process = self.submit("--detach", "--num-workers", 1, "--until-stdin-closes", "true")
        self.assertEqual((process.returncode, process.out), (2, ""))
        self.assertIn("--detach: with --until-stdin-closes the job would end at once", process.err)

    def test_a_job_without_a_record_is_not_started(self):
        self.file("a file").write_text("")
        for environment, said in (({"XDG_STATE_HOME": self.file("a file")}, "cannot record the job"),
                                  ({"XDG_STATE_HOME": "", "HOME": ""}, "neither XDG_STATE_HOME nor HOME is set")):
            process = self.submit("--detach", "--num-workers", 1, "--log-dir", "logs", "touch", "started", environment=environment)
            self.assertEqual((process.returncode, process.out), (1, ""))
            self.assertIn(said, process.err)
        self.assertFalse(self.file("started").exists())

    def test_an_id_that_cannot_be_printed_is_told(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            process = self.submit("--detach", "--num-workers", 1, "true", stdout=full)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(process.err, r"warning: cannot print the job's ID, \d{8}T\d{6}Z-\d+\n$")

    @contextlib.contextmanager
    def held_up(self, **settings):
        """Starts a detached job whose launcher blocks before the job begins. Yields the waiting dmlc-submit and the pid of the launcher."""
        os.mkfifo(self.file("pipe"))  # the launcher blocks in opening it until there is a reader
        process = self.start("--detach", "--num-workers", 1, "--timeline", "pipe", "touch", "started", **settings)
        wait_for(lambda: len(self.marked()) == 3, LIMIT_S, "the launcher and its watchdog")
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        yield process, int(children.read_text())

    def test_a_start_whose_caller_is_killed_ends(self):
        with self.held_up() as (process, _):
            process.kill()
            self.check_nothing_is_left(LIMIT_S)

    def test_a_job_whose_caller_is_gone_does_not_begin(self):
        # Ignoring SIGTERM simulates a system that sends no signal when a parent process ends.
        with self.held_up(preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN)) as (process, launcher):
            process.kill()
            process.wait()
            os.kill(launcher, 0)
            self.file("pipe").read_text()
            self.check_nothing_is_left(LIMIT_S)
        self.assertFalse(self.file("started").exists())

    def test_a_launcher_that_is_killed_before_the_job_began_is_told(self):
        with self.held_up() as (process, launcher):
            os.kill(launcher, signal.SIGKILL)
            out, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual((process.returncode, out), (128 + signal.SIGKILL, b""))
            self.assertIn(b"the launcher was ended by SIGKILL before the job began", err)


if __name__ == "__main__":
    unittest.main()

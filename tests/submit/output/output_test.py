"""The output of the processes: prefixes, lines in pieces, logs, terminals, and readers that are slow or gone."""

import fcntl
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import termios
import time
import unittest

from submit_case import IDLE, LIMIT_S, PROGRAM, STOP_LIMIT_S, STOP_LIMIT_SLACK_S, SubmitCase, open_terminal, python
from warren_testing import memory_bound, wait_for


class Output(SubmitCase):
    def test_each_line_has_its_worker_in_front_and_keeps_its_stream(self):
        code = "import os, sys; print('out', os.environ['DMLC_TASK_ID']); print('err', file=sys.stderr)"
        process = self.submit("--num-workers", 2, "--env", "OMP_NUM_THREADS=1", *python(code))
        self.assertEqual(sorted(process.out.splitlines()), ["[0] out 0", "[1] out 1"])
        self.assertEqual(sorted(process.err.splitlines()), ["[0] err", "[1] err"])

    def test_servers_and_scheduler_are_named(self):
        process = self.submit("--num-workers", 1, "--num-servers", 1, "echo", "x")
        self.assertEqual(sorted(process.out.splitlines()), ["[0] x", "[scheduler] x", "[server 0] x"])

    def test_bytes_are_not_altered(self):
        data = bytes(range(256)) * 3 + b"\0\n\xff\xfe\r\n\n"
        code = f"import sys; sys.stdout.buffer.write({data!r})"
        process = self.start("--num-workers", 1, *python(code))
        out, _ = process.communicate(timeout=LIMIT_S)
        drawn = re.sub(rb"\r(?!\n)", b"\r[0] ", data)  # after a carriage return, the line is drawn again, with the prefix
        self.assertEqual(out, b"".join(b"[0] " + line + b"\n" for line in drawn.split(b"\n")[:-1]))

    #: Defines step(), which prints `text` and waits until the file `name` exists.
    STEPS = ("import os, pathlib, sys, time\n"
             "def step(name, text, stream=sys.stdout):\n"
             "    print(text, end='', file=stream)\n"
             "    while not pathlib.Path(name).exists(): time.sleep(0.01)\n")

    def job_in_steps(self, code, *options, **settings):
        """Starts a job that runs STEPS and `code` in Python. Leaves out PYTHONUNBUFFERED, which users usually do not set."""
        self.file("steps.py").write_text(self.STEPS + code)
        environment = {name: value for name, value in self.environment().items() if name != b"PYTHONUNBUFFERED"}
        return self.note(subprocess.Popen([PROGRAM, "--cluster", "local", "--num-workers", "1", *options, "/usr/bin/python3", "steps.py"],
                                          env=environment, cwd=self.directory, stdin=subprocess.DEVNULL,
                                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}))  # fmt: skip

    def test_what_python_prints_is_seen_at_once(self):
        process = self.job_in_steps("step('a', 'first\\n'); step('b', 'second\\n')")
        self.wait_for_text(process.stdout, "[0] first\n")
        self.file("a").touch()
        self.wait_for_text(process.stdout, "[0] second\n")
        self.file("b").touch()

    def test_what_a_killed_worker_has_printed_is_not_lost(self):
        process = self.job_in_steps("for i in range(5): print('processing file', i)\nos.kill(os.getpid(), 9)", "--log-dir", "logs")
        out, err = process.communicate(timeout=LIMIT_S)
        lines = [f"processing file {i}" for i in range(5)]
        self.assertEqual(out.decode(), "".join(f"[0] {line}\n" for line in lines))
        self.assertEqual(self.file("logs/worker-0.log").read_text().splitlines(), lines)
        self.assertIn("dmlc-submit:   | processing file 4\n", err.decode())

    def test_progress_bars_are_seen_as_they_are_drawn(self):
        before = "step('a', '\\r 0%', sys.stderr); step('b', '\\r 50%', sys.stderr); step('c', '\\r100%\\n', sys.stderr)"
        behind = "step('a', ' 0%\\r', sys.stderr); step('b', ' 50%\\r', sys.stderr); step('c', '100%\\n', sys.stderr)"
        for code, shown in ((before, ("\r[0]  0%", "\r[0]  50%", "\r[0] 100%\n")), (behind, ("[0]  0%", "\r[0]  50%", "\r[0] 100%\n"))):
            for terminal in (False, True):
                with self.subTest(code=code, terminal=terminal):
                    master, slave = open_terminal() if terminal else os.pipe()
                    process = self.job_in_steps(code, "--color", "never", stderr=slave)
                    os.close(slave)
                    for name, text in zip("abc", shown):
                        self.wait_for_text(master, text)
                        self.file(name).touch()
                    process.communicate(timeout=LIMIT_S)
                    os.close(master)
                    for name in "abc":
                        self.file(name).unlink()

    def test_unfinished_last_line_comes_at_the_exit_as_it_is(self):
        process = self.submit("--num-workers", 1, "printf", "whole\\npart")
        self.assertEqual(process.out, "[0] whole\n[0] part")

    def test_long_lines_come_through_with_one_prefix_and_little_memory(self):
        megabytes = 200
        code = f"import sys\nfor _ in range({megabytes}): sys.stdout.write('x' * (1 << 20))\nprint()"
        process = self.start("--num-workers", 1, *python(code), stderr=subprocess.DEVNULL)
        size = 0
        while piece := os.read(process.stdout.fileno(), 1 << 20):
            self.assertEqual(piece.count(b"["), 1 if size == 0 else 0)
            size += len(piece)
        self.assertEqual(size, len("[0] \n") + (megabytes << 20))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        self.assertEqual(status, 0)
        self.assertLess(usage.ru_maxrss << 10, memory_bound((megabytes << 20) // 2))  # ru_maxrss is in KiB

    def test_line_in_pieces_is_not_torn_by_another_worker_without_a_new_prefix(self):
        code = (
            "import os, pathlib, sys, time\n"
            "mine = os.environ['DMLC_TASK_ID'] == '0'\n"
            "if mine: sys.stdout.write('x' * 70000); sys.stdout.flush()\n"
            "while not pathlib.Path('go-on' if mine else 'half').exists(): time.sleep(0.01)\n"
            "print('end' if mine else 'other')\n"
        )
        process = self.start("--num-workers", 2, *python(code))
        shown = self.wait_for_text(process.stdout, "[0] " + "x" * 65536)
        self.file("half").touch()
        shown += self.wait_for_text(process.stdout, "[1] other\n")
        self.file("go-on").touch()
        lines = (shown + process.communicate(timeout=LIMIT_S)[0].decode()).splitlines()
        self.assertEqual(lines, ["[0] " + "x" * 65536, "[1] other", "[0] " + "x" * (70000 - 65536) + "end"])

    def test_slow_reader_loses_nothing_and_slows_the_workers_down(self):
        lines = 200_000
        code = f"for i in range({lines}): print(i, 'x' * 40)\nopen('written', 'w').write('yes')"
        process = self.start("--num-workers", 1, *python(code), stderr=subprocess.DEVNULL)
        self.wait_for_text(process.stdout, "[0] 0 x")
        seen = wait_for(lambda: self.blocked(process), LIMIT_S, "a full pipe")
        self.assertTrue(seen)
        self.assertFalse(self.file("written").exists())  # the worker is blocked, since output is not buffered without limit
        rest, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(rest.endswith(f"[0] {lines - 1} {'x' * 40}\n".encode()))
        self.assertEqual(rest.count(b"\n[0] "), rest.count(b"\n") - 1)

    def blocked(self, process):
        """Whether a worker of this dmlc-submit seems to be blocked in a write to its pipe."""
        children = [p for p in self.marked() if p != process.pid]
        states = [pathlib.Path(f"/proc/{pid}/wchan").read_text() for pid in children]
        if any("pipe_write" in state for state in states):
            return True
        # Without permission, wchan shows nothing. In that case, check that the workers have not run for a while.
        before = [pathlib.Path(f"/proc/{pid}/stat").read_text() for pid in children]
        time.sleep(0.2)
        return before == [pathlib.Path(f"/proc/{pid}/stat").read_text() for pid in children]

    def test_stuck_reader_does_not_keep_the_job_from_being_stopped(self):
        process = self.start("--num-workers", 2, "yes")
        self.wait_for_text(process.stdout, "[0] y")
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_S), 130)
        self.assertLess(time.monotonic() - begin, STOP_LIMIT_S + STOP_LIMIT_SLACK_S)

    def test_stuck_terminal_does_not_keep_the_job_from_being_stopped(self):
        master, slave = os.openpty()
        process = self.start("--num-workers", 2, "--color", "never", "--until-stdin-closes", "yes", stdin=subprocess.PIPE, stdout=slave,
                             stderr=slave, environment={"TERM": "xterm"})  # fmt: skip
        os.close(slave)
        self.wait_for_text(master, "[0] y")
        wait_for(lambda: self.blocked(process), LIMIT_S, "a full terminal")
        process.stdin.close()  # unlike a signal, this does not interrupt a write that blocks
        self.assertEqual(process.wait(LIMIT_S), 128 + signal.SIGTERM)
        os.close(master)

    def test_vanished_reader_ends_the_job(self):
        process = self.start("--num-workers", 2, "yes")
        self.wait_for_text(process.stdout, "[0] y")
        process.stdout.close()
        self.assertEqual(process.wait(LIMIT_S), 141)
        self.assertIn(b"standard output was closed by its reader", process.stderr.read())

    def test_flags_of_the_shared_descriptors_are_left_alone(self):
        read_end, write_end = os.pipe()
        process = self.start("--num-workers", 1, *python("print('x', flush=True); " + IDLE), stdout=write_end)
        self.wait_for_text(read_end, "[0] x")
        self.assertEqual(fcntl.fcntl(write_end, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        process.terminate()
        os.close(read_end)
        os.close(write_end)

    def test_output_to_a_file_is_whole(self):
        with open(self.file("out"), "wb") as file:
            process = self.submit("--num-workers", 2, "seq", "50000", stdout=file)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(self.file("out").read_text().splitlines()), 100_000)

    def test_closed_standard_descriptors_do_no_harm(self):
        command = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', PROGRAM, "--num-workers", "2", "--log-dir", "logs"]
        environment = self.environment({"DMLC_SUBMIT_CLUSTER": "local"})
        code = subprocess.run([*command, "echo", "x"], cwd=self.directory, env=environment, timeout=LIMIT_S).returncode
        self.assertEqual(code, 0)
        self.assertEqual(self.file("logs/worker-1.log").read_text(), "x\n")

    # --- logs --------------------------------------------------------------------------------------------

    def test_log_dir_keeps_a_file_for_each_process(self):
        code = "import os, sys; print('out', os.environ['DMLC_TASK_ID'], flush=True); print('err', file=sys.stderr)"
        self.submit("--num-workers", 2, "--log-dir", "new/logs", *python(code), exit_code=0)
        self.assertEqual(sorted(p.name for p in self.file("new/logs").iterdir()), ["jobs", "worker-0.log", "worker-1.log"])
        self.assertEqual(
            sorted(self.file("new/logs/worker-1.log").read_text().splitlines()), ["err", "out 1"]
        )

    def test_log_has_all_attempts_and_starts_anew_with_the_job(self):
        code = "import os, sys; n = os.environ['DMLC_NUM_ATTEMPT']; print('attempt is', n); sys.exit(n == '0')"
        for _ in range(2):
            self.submit("--num-workers", 1, "--local-num-attempt", 1, "--log-dir", "logs", *python(code), exit_code=0)
        self.assertEqual(
            self.file("logs/worker-0.log").read_text(), "attempt is 0\n--- attempt 2 ---\nattempt is 1\n"
        )

    def test_log_dir_that_cannot_be_written_is_an_error_before_anything_starts(self):
        self.file("file").write_text("")
        process = self.submit("--num-workers", 1, "--log-dir", "file/logs", "touch", "started", exit_code=1)
        self.assertIn("cannot create the log directory 'file/logs'", self.last_line(process))
        (self.file("logs") / "worker-0.log").mkdir(parents=True)
        process = self.submit("--num-workers", 1, "--log-dir", "logs", "touch", "started", exit_code=1)
        self.assertIn("cannot write the log 'logs/worker-0.log': Is a directory", self.last_line(process))
        self.assertFalse(self.file("started").exists())

    def test_logs_of_an_earlier_job_are_moved_aside_and_nothing_else(self):
        for name in ("notes.txt", "worker-1.log.old", "worker-x.log"):
            self.file("logs").mkdir(exist_ok=True)
            self.file("logs/" + name).write_text("mine")
        first = self.submit("--num-workers", 3, "--log-dir", "logs", "--dashboard", "sh", "-c", "echo first $DMLC_TASK_ID")
        self.assertNotIn("earlier", first.err)
        self.file("logs/worker-2.stack").write_text("where it was")
        second = self.submit("--num-workers", 1, "--log-dir", "logs", "sh", "-c", "echo second")
        self.assertIn("dmlc-submit: the logs of an earlier job in 'logs' are now in 'logs/earlier'\n", second.err)
        self.assertEqual({path.name for path in self.file("logs").iterdir()},
                         {"worker-0.log", "earlier", "jobs", "notes.txt", "worker-1.log.old", "worker-x.log"})  # fmt: skip
        self.assertEqual(self.file("logs/worker-0.log").read_text(), "second\n")
        self.assertEqual({path.name for path in self.file("logs/earlier").iterdir()},
                         {"worker-0.log", "worker-1.log", "worker-2.log", "worker-2.stack", "job.html"})  # fmt: skip
        self.assertEqual(self.file("logs/earlier/worker-2.log").read_text(), "first 2\n")
        self.submit("--num-workers", 1, "--log-dir", "logs", "true")
        self.assertEqual({path.name: path.read_text() for path in self.file("logs/earlier").iterdir()}, {"worker-0.log": "second\n"})

    def test_log_file_has_the_messages_too(self):
        process = self.submit("--num-workers", 1, "--log-level", "DEBUG", "--log-file", "log", "false")
        log = self.file("log").read_text()
        self.assertRegex(log, r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} error: worker 0 .* exited with code 1")
        self.assertIn("debug: started worker 0", log)
        self.assertIn("dmlc-submit: started worker 0", process.err)
        process = self.submit("--num-workers", 1, "--log-file", "log/log", "true", exit_code=1)
        self.assertIn("--log-file", process.err)

    def test_what_may_hold_tokens_commands_and_output_is_for_the_user_alone(self):
        names = ("log", "logs/worker-0.log", "trace.json", "logs/job.html")
        for before in (None, 0o666):
            with self.subTest(before=before):
                if before is not None:
                    for name in names:
                        self.file(name).chmod(before)
                self.submit("--num-workers", 1, "--log-file", "log", "--log-dir", "logs", "--timeline", "trace.json",
                            "--dashboard", "echo", "x", preexec_fn=lambda: os.umask(0), exit_code=0)  # fmt: skip
                self.assertIn("token=", self.file("log").read_text())
                for name in (*names, *(path.relative_to(self.directory) for path in self.file("logs/jobs").iterdir())):
                    self.assertEqual(self.file(name).stat().st_mode & 0o777, 0o600, name)
        self.submit("--num-workers", 1, "--log-file", "/dev/stderr", "--dashboard", "true", exit_code=0)

    def test_a_log_file_that_may_grow_no_more_is_no_end_of_the_job(self):
        limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        for log in ("log", "/dev/full"):
            process = self.submit("--num-workers", 1, "--log-level", "DEBUG", "--log-file", log, "sh", "-c", "sleep 0.1; echo done",
                                  preexec_fn=limited, exit_code=0)
            self.assertIn("[0] done", process.out)
            self.assertEqual(process.err.count("dmlc-submit: warning: --log-file: messages are missing: "), 1, process.err)
            self.assertNotIn("LOG ERROR", process.err)
        self.assertEqual(self.file("log").stat().st_size, 200)

    # --- terminals ---------------------------------------------------------------------------------------

    def test_terminal_has_colours_and_pipes_have_none(self):
        shown, code = self.on_terminal("--num-workers", 1, "echo", "x")
        self.assertEqual((shown, code), ("\x1b[36m[0]\x1b[0m x\n", 0))
        for options, environment in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
            shown, _ = self.on_terminal(*options, "--num-workers", 1, "echo", "x", environment=environment)
            self.assertEqual(shown, "[0] x\n")
        process = self.submit("--num-workers", 1, "--color", "always", "echo", "x")
        self.assertEqual(process.out, "\x1b[36m[0]\x1b[0m x\n")

    def test_terminal_shows_a_bar_until_all_workers_are_up(self):
        self.file("worker.py").write_text(
            "import os, pathlib, time\n"
            "from warren_testing import ClassicWorker\n"
            "task = int(os.environ['DMLC_TASK_ID'])\n"
            "address = os.environ['DMLC_TRACKER_URI'], int(os.environ['DMLC_TRACKER_PORT'])\n"
            "worker = ClassicWorker(address, task)\n"
            "print('before', flush=True)\n"
            "worker.start()\n"
            "worker.shutdown()\n"
        )
        shown, code = self.on_terminal("--num-workers", 3, "/usr/bin/python3", "worker.py")
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"dmlc-submit: \[=+ +\] 1 of 3 workers connected\r")
        self.assertRegex(shown, r"(?:\n|\x1b\[J)dmlc-submit: all 3 workers are up \(\d+\.\d s\)\n")
        # If newlines replace the control sequences that redraw the bar, every line of output stands alone.
        bare = shown.replace("\r\x1b[J", "\n")
        self.assertEqual(sum(line.endswith("] before") or line.endswith("m before") for line in bare.splitlines()), 3)
        process = self.submit("--num-workers", 3, "/usr/bin/python3", "worker.py")
        self.assertNotIn("connected", process.err)
        self.assertNotIn("are up", process.err)
        for options in (["--quiet"], ["--log-format", "json"]):
            shown, code = self.on_terminal(*options, "--num-workers", 3, "/usr/bin/python3", "worker.py")
            self.assertEqual(code, 0, shown)
            self.assertNotIn("\r\x1b", shown)
            self.assertNotIn("connected", shown)

    def test_bar_fits_a_terminal_that_becomes_narrower_and_waits_for_the_end_of_lines(self):
        self.file("worker.py").write_text(
            "import os, pathlib, sys, time\n"
            "from warren_testing import ClassicWorker\n"
            "address = os.environ['DMLC_TRACKER_URI'], int(os.environ['DMLC_TRACKER_PORT'])\n"
            "if os.environ['DMLC_TASK_ID'] == '0':\n"
            "    ClassicWorker(address, 0).start()\n"
            "while not pathlib.Path('narrow').exists(): time.sleep(0.01)\n"
            "sys.stderr.write('x' * 65536 + 'y'); sys.stderr.flush()\n"  # dmlc-submit shows part of the line and waits for the rest
            "time.sleep(600)\n"
        )
        master, slave = open_terminal()
        process = self.start("--num-workers", 2, "/usr/bin/python3", "worker.py", stdout=slave, stderr=slave,
                             environment={"TERM": "xterm", "NO_COLOR": "1"})
        self.wait_for_text(master, "1 of 2 workers connected\r")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 21, 0, 0))
        process.send_signal(signal.SIGWINCH)
        self.wait_for_text(master, "\r\x1b[Jdmlc-submit: [======\r")
        self.file("narrow").touch()
        self.wait_for_text(master, "[1] " + "x" * 65536 + "\ndmlc-submit: [======\r")
        process.send_signal(signal.SIGTERM)
        self.wait_for_text(master, "\r\x1b[J[1] y")
        os.close(slave)
        os.close(master)


if __name__ == "__main__":
    unittest.main()

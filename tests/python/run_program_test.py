"""The program that starts jobs: how it watches and ends them, what remains when it ends, and where it may run: in a notebook, IPython, pytest."""
import contextlib
import fcntl
import io
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest
import urllib.parse
import urllib.request
from unittest import mock

import warren
from job_case import SLEEPER, InFolder, is_gone, task, with_cloudpickle
from warren._jobs import output as outputs
from warren_testing import wait_for


@with_cloudpickle
class Ends(InFolder):
    def test_a_fork_of_the_program_leaves_its_jobs_alone(self):
        command = self.script(SLEEPER + """
job = warren.start(lambda: time.sleep(1) or 7, num_workers=1, port=0)
if os.fork() == 0: sys.exit(0)
os.wait()
print(job.result(), job.logs(0))
""")
        ended = subprocess.run([*command, str(self.folder)], capture_output=True, text=True, check=False)
        self.assertEqual(ended.stdout, "[7] \n", ended.stderr)

    def test_ctrl_c_ends_the_job_and_is_raised(self):
        command = self.script(SLEEPER + "warren.run(sleep, folder, num_workers=2, port=0)\n")
        process = subprocess.Popen([*command, str(self.folder)], stderr=subprocess.PIPE, text=True)
        pids = self.pids(2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertRegex(error, r"(?s)interrupted by SIGINT.*KeyboardInterrupt")
        self.assertTrue(all(map(is_gone, pids)))

    def test_the_job_ends_with_the_program(self):
        for end in ("", "os.kill(os.getpid(), 9)"):
            with self.subTest(end=end):
                command = self.script(SLEEPER + f"""
warren.start(sleep, folder, num_workers=2, port=0)
while len(list(folder.glob("[0-9]*"))) < 2: time.sleep(0.01)
if os.fork() == 0: time.sleep(600)  # which holds nothing that keeps the job alive
{end}
""")
                for path in self.folder.glob("[0-9]*"):
                    path.unlink()
                process = subprocess.Popen([*command, str(self.folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           start_new_session=True)
                self.addCleanup(lambda group=process.pid: contextlib.suppress(ProcessLookupError).__enter__() or os.killpg(group, 9))
                pids = self.pids(2)
                process.wait(60)
                wait_for(lambda: all(map(is_gone, pids)), what="the end of the job")


    def test_the_logs_of_a_killed_program_are_removed_by_the_next_job(self):
        tmp = self.folder / "tmp"
        tmp.mkdir()
        (tmp / "warren-job-of-somebody").mkdir()
        environment = {**os.environ, "TMPDIR": str(tmp)}
        command = [*self.script(SLEEPER + "warren.start(sleep, folder, num_workers=1, port=0).result()"), str(self.folder)]
        programs = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
        self.addCleanup(lambda: [one.kill() for one in programs])
        pids = self.pids(2)
        left = set(tmp.iterdir())
        self.assertEqual(len(left), 3)
        programs[0].kill()
        programs[0].wait()
        subprocess.run([sys.executable, "-c", "import warren; warren.run(int, num_workers=1, port=0)"], env=environment, check=True)
        self.assertEqual(len(left & set(tmp.iterdir())), 2, "the folder of the program that runs, and the one without a lock")
        programs[1].send_signal(signal.SIGINT)
        programs[1].wait()
        self.assertEqual([path.name for path in tmp.iterdir()], ["warren-job-of-somebody"])
        wait_for(lambda: all(map(is_gone, pids)), what="the end of both jobs")


@with_cloudpickle
class Started(InFolder):
    @staticmethod
    def waiting(folder):
        print("begins")
        while not (folder / "go on").exists():
            time.sleep(0.01)
        print("ends")
        return task()

    def test_status_logs_and_result(self):
        job = warren.start(self.waiting, self.folder, num_workers=2, port=0)
        followed = []
        thread = threading.Thread(target=lambda: followed.extend(job.logs(follow=True)))
        thread.start()
        wait_for(lambda: job.logs().count("begins") == 2, what="its first lines")
        self.assertEqual((job.status().state, job.status().returned, job.done()), ("running", [], False))
        with self.assertRaisesRegex(TimeoutError, "has not ended after 0.01 s"):
            job.result(timeout=0.01)
        self.assertRegex(repr(job), r"<warren.Job running, [\d.]+ s, pid \d+>")
        (self.folder / "go on").touch()
        self.assertEqual(job.result(), [0, 1])
        self.assertEqual(job.result(), [0, 1], "again")
        status = job.status()
        self.assertEqual((status.state, status.returned, status.exit_code, job.done()), ("succeeded", [0, 1], 0, True))
        self.assertEqual(job.logs(1), "begins\nends\n")
        for rank in (2, -1, "a"):
            with self.assertRaisesRegex(ValueError, "the job has 2 workers: expected 0 to 1"):
                job.logs(rank)
        thread.join(30)
        self.assertEqual(sorted(line for line in followed if line.startswith("[")), ["[0] begins", "[0] ends", "[1] begins", "[1] ends"])
        self.assertEqual(list(job.logs(0, follow=True)), ["begins", "ends"])

    def test_the_page_is_shown_in_a_notebook_while_the_job_runs_and_afterwards(self):
        job = warren.start(self.waiting, self.folder, num_workers=1, port=0)
        page = job.page()
        self.assertRegex(page, r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]+$")
        address = re.search(r'src="([^"]*)"', page._repr_html_())[1]
        with urllib.request.urlopen(address) as answer:
            self.assertIn(b"<script", answer.read())
        (self.folder / "go on").touch()
        job.result()
        page = job.page()
        self.assertTrue(pathlib.Path(urllib.parse.urlparse(page).path).exists())
        self.assertIn("&lt;script", page._repr_html_())
        other = warren.start(task, num_workers=1, port=0, dashboard=False)
        with self.assertRaisesRegex(ValueError, "has no page"):
            other.page()

    def test_cancel(self):
        job = warren.start(time.sleep, 600, num_workers=2, port=0)
        wait_for(lambda: job.status().state == "running", what="the start")
        job.cancel()
        self.assertEqual(job.status().state, "interrupted")
        with self.assertRaisesRegex(warren.JobFailed, "interrupted by SIGINT"):
            job.result()
        job.cancel()
        early = warren.start(time.sleep, 600, num_workers=2, port=0)
        early.cancel()
        self.assertEqual(early.status().state, "interrupted")
        with self.assertRaisesRegex(warren.JobFailed, "interrupted"):
            early.result()

    def test_a_failed_job_says_why(self):
        job = warren.start(sys.exit, 5, num_workers=1, port=0, log_dir=self.folder / "logs")
        with self.assertRaisesRegex(warren.JobFailed, "exited with code 5"):
            job.result()
        self.assertEqual((job.status().state, job.status().exit_code), ("failed", 5))
        self.assertTrue((self.folder / "logs/job.log").exists())


    def test_the_record_of_an_earlier_process_with_the_same_pid_is_another_jobs(self):
        first, second = ((job, job.result())[0] for job in
                         (warren.start(task, num_workers=1, port=0, log_dir=self.folder / "logs") for _ in range(2)))
        self.assertRegex(second._record()["id"], f"-{second.pid}$")
        with mock.patch.object(warren.Job, "pid", first.pid):
            self.assertEqual(second._record(), {})


class Terminal:
    """A program that runs on its own terminal."""

    def __init__(self, command, **environment):
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 50, 200, 0, 0))
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                        env={**os.environ, "TERM": "xterm", **environment})
        os.close(slave)
        self._shown = b""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        with contextlib.suppress(OSError):  # raised when the last process has closed the terminal
            while piece := os.read(self._master, 1 << 16):
                self._shown += piece

    def wait_for(self, *texts):
        """Waits until the terminal has shown all of these texts. Escape sequences are ignored."""
        def found():
            shown = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])", "", self._shown.decode(errors="replace"))
            return all(text in shown for text in texts)

        try:
            wait_for(found, what=f"{texts}")
        except AssertionError as error:
            raise AssertionError(f"{error}; the terminal has got:\n{self._shown.decode(errors='replace')}") from None

    def type(self, line):
        os.write(self._master, line.encode() + b"\r")

    def interrupt(self):
        """Types Ctrl-C."""
        os.write(self._master, b"\x03")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        os.close(self._master)


@with_cloudpickle
class Surroundings(InFolder):
    def test_a_notebook_shows_the_output_the_live_line_and_the_line_that_failed(self):
        try:
            import nbclient
            import nbformat
        except ImportError:
            self.skipTest("SKIPPED: no nbclient (Debian: python3-nbclient python3-ipykernel)")
        shown = self.folder / "shown"

        class Client(nbclient.NotebookClient):
            """Creates the file `shown`, for which the function waits, once the live line shows round 1."""

            def process_message(self, msg, *more):
                if "round 1 of 3" in msg["content"].get("text", ""):
                    shown.touch()
                return super().process_message(msg, *more)

        cells = ["""
import os, time, warren
def function(shown):
    print("in the cell")
    warren.progress(1, 3, loss=0.5)
    while not os.path.exists(shown):
        time.sleep(0.01)
    return int(os.environ["DMLC_TASK_ID"])
""", f"warren.run(function, {str(shown)!r}, num_workers=2, port=0)", """
def fails():
    raise ValueError("here")  # this line
warren.run(fails, num_workers=1, port=0)
""", "warren.start(function, '/none', num_workers=1, port=0).cancel()"]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        with mock.patch.dict(os.environ, {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}):
            Client(notebook, timeout=120, allow_errors=True).execute()
        texts = [{name: "".join(one.get("text", "") for one in cell.outputs if one.get("name") == name) for name in ("stdout", "stderr")}
                 for cell in notebook.cells]
        self.assertEqual(sorted(texts[1]["stdout"].splitlines()), ["[0] in the cell", "[1] in the cell"])
        self.assertRegex(texts[1]["stderr"], r"[\r\n] *dmlc-submit: \d+:\d\d \| 2 workers \| round 1 of 3 \| loss 0.5\r")
        self.assertNotIn("\x1b[J", texts[1]["stderr"])
        self.assertEqual(notebook.cells[1].outputs[-1]["data"]["text/plain"], "[0, 1]")
        error = notebook.cells[2].outputs[-1]
        self.assertEqual((error["ename"], error["evalue"]), ("ValueError", "here"))
        self.assertIn('raise ValueError("here")  # this line', "\n".join(error["traceback"]))
        self.assertEqual([one for one in notebook.cells[3].outputs if one["output_type"] == "error"], [])

    def test_ipython_streams_the_output_and_goes_on_after_ctrl_c_and_exceptions(self):
        if subprocess.run([sys.executable, "-c", "import IPython"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("SKIPPED: no IPython (Debian: python3-ipython)")
        script = self.script(SLEEPER + """
def waits(folder):
    print("in", "IPython", flush=True)
    warren.progress(1, 3)
    while not (folder / "shown").exists():
        time.sleep(0.01)
    return 40 + int(os.environ["DMLC_TASK_ID"])

def fails():
    raise ValueError("here")  # this line
""")[1]
        with Terminal([sys.executable, "-m", "IPython", "--no-banner", "--no-confirm-exit", "--colors=NoColor", "-i", script, str(self.folder)],
                      IPYTHONDIR=str(self.folder / "of IPython")) as ipython:
            ipython.wait_for("In [1]:")
            ipython.type("warren.run(waits, folder, num_workers=2, port=0)")
            ipython.wait_for("[0] in IPython", "[1] in IPython", "2 workers | round 1 of 3")
            (self.folder / "shown").touch()
            ipython.wait_for("[40, 41]", "In [2]:")
            ipython.type("warren.run(sleep, folder, num_workers=2, port=0)")
            pids = self.pids(2)
            ipython.interrupt()
            ipython.wait_for("interrupted by SIGINT", "KeyboardInterrupt", "In [3]:")
            self.assertTrue(all(map(is_gone, pids)))
            ipython.type("warren.run(fails, num_workers=1, port=0)")
            ipython.wait_for('raise ValueError("here")  # this line', "ValueError: here", "In [4]:")
            ipython.type("exit")
            self.assertEqual(ipython.process.wait(60), 0)

    def test_pytest_captures_the_output(self):
        self.script("""
import warren
def test_job(capsys):
    assert warren.run(print, "captured", num_workers=2, port=0) == [None, None]
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0] captured", "[1] captured"]
""", "test_it.py")
        ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(self.folder)], capture_output=True,
                               text=True, check=False)
        if "No module named pytest" in ended.stderr:
            self.skipTest("SKIPPED: no pytest (Debian: python3-pytest)")
        self.assertEqual(ended.returncode, 0, ended.stdout)

    def test_a_terminal_is_left_to_dmlc_submit(self):
        self.assertFalse(outputs.is_notebooks())
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertFalse(outputs.is_terminals())
        master, slave = os.openpty()
        ended = subprocess.run(self.script("import warren; warren.run(print, 'on the terminal', num_workers=1, port=0)"), stdin=slave,
                               stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"}, check=True)
        os.close(slave)
        self.assertEqual(ended.returncode, 0)
        self.assertIn(b"on the terminal", os.read(master, 1 << 16))
        os.close(master)

    def test_modules_are_imported_when_they_are_used(self):
        out = subprocess.run([sys.executable, "-c", "import sys, warren; a = set(sys.modules); warren.collectives.Op; warren.Job; print('numpy' in a); "
                              "print(hasattr(warren, 'no_such'))"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(out.split(), ["False", "False"])
        self.assertRegex(warren.__version__, ".")


if __name__ == "__main__":
    unittest.main()

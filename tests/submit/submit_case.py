"""What the tests of dmlc-submit share: starting it, and seeing that nothing is left behind."""

import contextlib
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from warren_testing import BIN, wait_for

PROGRAM = str(BIN / "dmlc-submit")
LIMIT_S = 60  # for anything that should take moments, on a busy machine under a sanitizer
STOP_LIMIT_S = 1.0  # all processes are gone within this: the promise
STOP_LIMIT_SLACK_S = 1.0  # what a busy machine may add between an event and its being seen
AT_ONCE_S = 0.5  # less than the grace time between SIGTERM and SIGKILL
TRIES = 3  # for what must be quick, as any other load on the machine may hold up one of them
IDLE = "import time; time.sleep(600)"


# Jobs in the background of a script, and those under nohup, have these ignored, and dmlc-submit respects that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def python(code, *arguments):
    """A command that runs Python code."""
    return [sys.executable, "-c", code, *arguments]


def kill_at_once(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class SubmitCase(unittest.TestCase):
    """Each test has a directory of its own, and a mark in the environment of all it starts."""

    program = PROGRAM

    def setUp(self):
        self.mark = f"WARREN_TEST_MARK={uuid.uuid4().hex}"
        directory = tempfile.TemporaryDirectory(prefix="warren-submit-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.addCleanup(self.check_nothing_is_left)
        self.started = []

    def environment(self, extra=None):
        environment = {k: v for k, v in os.environb.items() if not k.startswith(b"DMLC_")}
        name, value = self.mark.split("=")
        environment[name.encode()] = value.encode()
        for key, value in (extra or {}).items():
            environment[os.fsencode(key)] = os.fsencode(value)
        return environment

    def start(self, *words, environment=None, **settings):
        """Starts dmlc-submit with these words; local is chosen unless they say otherwise."""
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.directory, **settings}
        extra = {"DMLC_SUBMIT_CLUSTER": "local", **(environment or {})}
        process = subprocess.Popen(
            [self.program, *map(os.fspath, map(str_or_bytes, words))],
            stdin=subprocess.DEVNULL,
            env=self.environment(extra),
            **settings,
        )
        return self.note(process)

    def note(self, process):
        """Notes what was started, to be ended with the test."""
        self.started.append(process)
        self.addCleanup(self.end, process)
        return process

    def said(self, process):
        """What one that has ended wrote to standard error and nobody has read."""
        return process.stderr.read().decode(errors="replace") if process.stderr and not process.stderr.closed else ""

    def end(self, process):
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        process.wait()

    def submit(self, *words, **settings):
        """Runs dmlc-submit to its end; `out` and `err` of what is returned are text."""
        process = self.start(*words, **settings)
        out, err = process.communicate(timeout=LIMIT_S)
        process.out, process.err = (out or b"").decode(), (err or b"").decode()
        self.check_nothing_is_left()
        return process

    def marked(self):
        """The living processes that have the mark: dmlc-submit, its watchdog, workers, what they started."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    if (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                        found.append(int(entry.name))
        return found

    def check_nothing_is_left(self, seconds=STOP_LIMIT_S + STOP_LIMIT_SLACK_S):
        try:
            wait_for(lambda: not self.marked(), seconds, "the end of all processes")
        finally:
            for pid in self.marked():
                kill_at_once(pid)

    def file(self, name):
        return self.directory / name

    def wait_for_files(self, *names):
        """Waits until workers have written these; returns what is in them. Fails at once when dmlc-submit has failed."""

        def all_there():
            failed = [process for process in self.started[-1:] if (process.poll() or 0) > 0]
            if all(self.file(n).exists() and self.file(n).read_text() for n in names):
                return True
            for process in failed:
                self.fail(f"no {names}, but dmlc-submit exited with code {process.returncode}: {self.said(process)}")
            return False

        wait_for(all_there, LIMIT_S, f"{names}")
        return [self.file(name).read_text() for name in names]

    def wait_for_text(self, stream, text):
        """Reads from a pipe until `text` came; returns all that came."""
        seen = b""
        end = time.monotonic() + LIMIT_S
        while text.encode() not in seen:
            self.assertGreater(end, time.monotonic(), f"no {text!r} in {seen!r}")
            if select.select([stream], [], [], 0.1)[0]:
                piece = os.read(stream.fileno() if hasattr(stream, "fileno") else stream, 65536)
                self.assertTrue(piece, f"the end came before {text!r}: {seen!r}")
                seen += piece
        return seen.decode()

    def last_line(self, process):
        return process.err.rstrip("\n").rpartition("\n")[2]


def str_or_bytes(word):
    return word if isinstance(word, (str, bytes)) else str(word)

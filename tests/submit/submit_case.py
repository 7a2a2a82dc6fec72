"""Base class of dmlc-submit's tests: starts dmlc-submit and checks that no process is left behind."""

import contextlib
import fcntl
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import uuid

from warren_testing import BIN, wait_for

PROGRAM = str(BIN / "dmlc-submit")
LIMIT_S = 60  # limit for operations that normally take a fraction of a second: allows for busy machines and sanitizers
STOP_LIMIT_S = 1.0  # all processes must be gone within this time
STOP_LIMIT_SLACK_S = 1.0  # additional time, since a busy machine may notice an event late
AT_ONCE_S = 0.5  # less than the grace time between SIGTERM and SIGKILL
TRIES = 3  # attempts to meet a time limit, since other load on the machine may delay one of them
IDLE = "import time; time.sleep(600)"
# A Python program that writes its arguments and environment, in hexadecimal, and other settings of its process to the file
# ROLE-TASK-ATTEMPT.
RECORD = r"""
import json, os, resource, signal, sys
arguments = open('/proc/self/cmdline', 'rb').read().split(b'\0')[:-1]
fds = sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd))
record = {
    'arguments': [a.hex() for a in arguments],
    'environment': {k.hex(): v.hex() for k, v in os.environb.items()},
    'stdin': os.readlink('/proc/self/fd/0'),
    'fds': fds,
    'group': os.getpgid(0) == os.getpid(),
    'files': resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    'status': [l for l in open('/proc/self/status') if l.startswith(('SigBlk', 'SigIgn'))],
}
name = '-'.join((os.environ['DMLC_ROLE'], os.environ['DMLC_TASK_ID'], os.environ['DMLC_NUM_ATTEMPT']))
with open(name + '.tmp', 'w') as file:
    json.dump(record, file)
os.rename(name + '.tmp', name)
"""

# Words that a shell, a launcher or a file format might change.
NASTY = [
    "a b",
    "",
    "it's",
    '"quoted"',
    "$HOME",
    "${PATH}",
    "`id`",
    "$(id)",
    "; touch broken",
    "& | > < * ? ~ # ! \\",
    "two\nlines\n",
    "tab\there",
    "-x",
    "--",
    "--num-workers=9",
    "naïve 漢字",
    b"not utf-8 \xff\xfe",
    "[a,b]",
    "%s%n",
    "x" * 100000,
]


# Background jobs of scripts start with SIGINT ignored, and programs under nohup with SIGHUP ignored. dmlc-submit would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def python(code, *arguments):
    """A command that runs Python code."""
    return [sys.executable, "-c", code, *arguments]


def as_bytes(word):
    return word if isinstance(word, bytes) else word.encode()


def python_with(package):
    """Returns the Python interpreter of a virtual environment with this package. Creates the environment in the build directory if needed.
    Raises unittest.SkipTest if that fails."""
    place = BIN.parent / "interop" / package
    if not (place / "ready").exists():
        for command in ([sys.executable, "-m", "venv", place], [place / "bin/pip", "install", "--quiet", package]):
            if subprocess.run(command, capture_output=True, check=False).returncode != 0:
                raise unittest.SkipTest(f"{package} could not be installed from PyPI")
        (place / "ready").touch()
    return place / "bin/python"


def path_with_py_spy():
    """A value of PATH with py-spy. Raises unittest.SkipTest if py-spy cannot be installed."""
    return f"{os.environ['PATH']}{os.pathsep}{python_with('py-spy').parent}"


def open_terminal():
    """A new terminal that leaves newlines untranslated: the file descriptors of its two ends."""
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    return master, slave


def kill_at_once(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class SubmitCase(unittest.TestCase):
    """Each test has its own directory. All processes that a test starts have a mark in their environment."""

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
        """Starts dmlc-submit with these arguments, by default with --cluster local."""
        settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.directory, **settings}
        extra = {"DMLC_SUBMIT_CLUSTER": "local", **(environment or {})}
        process = subprocess.Popen(
            [self.program, *map(os.fspath, map(str_or_bytes, words))],
            env=self.environment(extra),
            **settings,
        )
        return self.note(process)

    def note(self, process):
        """Registers a process that is killed after the test if it still runs. Returns the process."""
        self.started.append(process)
        self.addCleanup(self.end, process)
        return process

    def said(self, process):
        """The part of an ended process's standard error that has not been read yet."""
        return process.stderr.read().decode(errors="replace") if process.stderr and not process.stderr.closed else ""

    def end(self, process):
        if process.poll() is None:
            process.kill()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        process.wait()

    def submit(self, *words, exit_code=None, **settings):
        """Runs dmlc-submit to its end and checks that nothing is left, and its exit code if one is given. Returns the process, with its
        output as text in `out` and `err`."""
        process = self.start(*words, **settings)
        out, err = process.communicate(timeout=LIMIT_S)
        process.out, process.err = (out or b"").decode(), (err or b"").decode()
        self.check_nothing_is_left()
        if exit_code is not None:
            self.assertEqual(process.returncode, exit_code, process.err)
        return process

    def on_terminal(self, *words, columns=0, environment=None):
        """Runs dmlc-submit on a terminal. Returns all output to the terminal, and the exit code."""
        master, slave = open_terminal()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        process = self.start(*words, stdout=slave, stderr=slave, environment={"TERM": "xterm", **(environment or {})})
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: no process has the terminal open
            while piece := os.read(master, 65536):
                shown += piece
        os.close(master)
        return shown.decode(), process.wait(LIMIT_S)

    def marked(self):
        """The pids of the live processes that have the mark: dmlc-submit, its watchdog, the workers, and their descendants."""
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

    def folder_of_programs(self, *names):
        """A new folder with these programs, as a value of PATH."""
        self.file("tools").mkdir()
        for name in names:
            (self.file("tools") / name).symlink_to(shutil.which(name))
        return self.file("tools")

    def wait_for_files(self, *names):
        """Waits until workers have written to these files. Returns their contents. Fails immediately if the process that was started last
        has exited with a code above 0."""

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
        """Reads from a pipe until `text` arrives. Returns everything read."""
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

"""A running world: its processes, and the lines that its rank 0 prints."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time

EXIT_WRONG_RESULT = 3  # the workers' exit code for a wrong result (worker.cc)
CHECK_S = 0.5
EXIT_S = 60
TERMINATE_S = 5


class WorldFailed(Exception):
    """The world failed; the message says why."""


class WorldStalled(WorldFailed):
    """The world did not answer in time."""


class WrongResult(WorldFailed):
    """A collective gave a wrong result."""


class World:
    """Use it in a `with` statement; leaving the block terminates every process."""

    def __init__(self, description):
        self.description = description
        self.processes = []
        self.helpers = []
        self.tracker_environment = {}
        self._folder = tempfile.TemporaryDirectory(prefix="warren-bench-")
        self.folder = self._folder.name
        self._errors = open(os.path.join(self.folder, "stderr"), "w+", encoding="utf-8", errors="replace")
        self._reader, self._writer = os.pipe()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes + self.helpers:
            _end(process)
        os.close(self._reader)
        if self._writer is not None:
            os.close(self._writer)
        self._errors.close()
        self._folder.cleanup()

    def start(self, command, environment):
        """Starts a process of the world. Rank 0 writes lines of JSON to standard output.

        All processes stay in one session, like the ranks of one mpirun: Linux gives each session a separate share of the cores
        (autogroups), and a rank that yields gives way only within its session.
        """
        self.processes.append(subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=self._writer,
            stderr=self._errors, process_group=0))

    def start_tracker(self, command):
        """Starts a tracker, and sets `tracker_environment` to the variables it prints for the workers."""
        tracker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors,
                                   text=True, process_group=0)
        self.helpers.append(tracker)
        for line in tracker.stdout:
            if line.strip() == "DMLC_TRACKER_ENV_END":
                return
            name, equals, value = line.strip().partition("=")
            if equals:
                self.tracker_environment[name] = value
        raise WorldFailed(f"{self.description}: the tracker did not start\n{self.errors()}")

    def lines(self, number, stall_s):
        """Yields `number` lines of rank 0, parsed from JSON."""
        os.close(self._writer)
        self._writer = None
        rest = b""
        heard = time.monotonic()
        while number > 0:
            ready, _, _ = select.select([self._reader], [], [], CHECK_S)
            if not ready:
                self.check_exit_codes()  # a failed rank makes the others wait forever
                if time.monotonic() - heard > stall_s:
                    raise WorldStalled(f"{self.description}: no result within {stall_s} s")
                continue
            heard = time.monotonic()
            data = os.read(self._reader, 65536)
            if not data:
                self.wait()
                raise WorldFailed(f"{self.description}: ended early\n{self.errors()}")
            *whole, rest = (rest + data).split(b"\n")
            results = [json.loads(line) for line in whole if line.startswith(b"{")]
            number -= len(results)
            yield from results

    def wait(self):
        """Waits for all processes to exit. Raises WorldFailed unless all exit codes are 0, and WorldStalled if a process does not exit in
        time."""
        for process in self.processes:
            try:
                process.wait(EXIT_S)
            except subprocess.TimeoutExpired:
                raise WorldStalled(f"{self.description}: does not end") from None
        self.check_exit_codes()

    def check_exit_codes(self):
        codes = [process.poll() for process in self.processes]
        if any(codes):
            kind = WrongResult if EXIT_WRONG_RESULT in codes else WorldFailed
            raise kind(f"{self.description}: exit codes {codes}\n{self.errors()}")

    def errors(self, lines=8):
        """The last lines of standard error of all processes."""
        self._errors.seek(0)
        return "".join(self._errors.readlines()[-lines:]).strip()


def _end(process):
    """Ends a process and its children; SIGTERM comes first, so that launchers can end their ranks on other hosts."""
    for number, seconds in ((signal.SIGTERM, TERMINATE_S), (signal.SIGKILL, None)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass

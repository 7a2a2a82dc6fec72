"""What the servers of a real cluster on this machine have in common: waiting until they are there, and an end."""

import os
import pathlib
import signal
import time


def until(condition, timeout, what, processes, tail):
    """Waits for the condition; OSError with what `tail()` says when a process has ended or the time is up."""
    deadline = time.monotonic() + timeout
    while not condition():
        for process in processes:
            if process.poll() is not None:
                raise OSError(f"{process.args[0]} ended ({process.returncode}): {tail()}")
        if time.monotonic() > deadline:
            raise OSError(f"not within {timeout} s: {what}: {tail()}")
        time.sleep(0.1)


def kill_tree(pid):
    """SIGKILL for a process and all that descends from it."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == pid:
                kill_tree(int(entry.name))
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass

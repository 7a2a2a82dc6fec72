"""Shared code for the servers of a real cluster on this machine: waiting until they are up, and ending them."""

import os
import pathlib
import signal
import time


def until(condition, timeout, what, processes, tail):
    """Waits for the condition. Raises OSError with the text of `tail()` if a process ends or the time is up."""
    deadline = time.monotonic() + timeout
    while not condition():
        for process in processes:
            if process.poll() is not None:
                raise OSError(f"{process.args[0]} ended ({process.returncode}): {tail()}")
        if time.monotonic() > deadline:
            raise OSError(f"not within {timeout} s: {what}: {tail()}")
        time.sleep(0.1)


def kill_tree(pid):
    """Sends SIGKILL to a process and all its descendants."""
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

"""Gives a test its own network, which the pods of its cluster share."""

import ctypes
import os
import subprocess

NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def own_network():
    """Moves this thread and its future children to a new network namespace: in the current one, the tracker's fixed port may be in use.
    Returns a function that moves the thread back."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if libc.unshare(NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "no network of its own")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def leave():
        libc.setns(before, NEW_NETWORK)
        os.close(before)

    return leave

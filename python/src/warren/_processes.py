"""The cores of this process, on Linux and elsewhere."""
import os


def own_cores() -> int:
    """How many cores this process may run on; all of them where a process cannot be kept to some."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

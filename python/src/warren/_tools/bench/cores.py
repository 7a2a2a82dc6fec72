"""The cores of this process, on Linux and elsewhere."""
import os


def own_cores() -> int:
    """Returns the number of cores on which this process may run; all cores of the machine if the system cannot restrict a process to some
    of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

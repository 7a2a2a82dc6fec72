"""Keeps forked processes from holding what belongs to the process from which they were forked."""
import os
import weakref
from typing import Any

#: Objects that keep a child process alive, or a folder or port reserved; closed in forked processes.
closed: "weakref.WeakSet[Any]" = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: [held.close() for held in list(closed)])

"""Errors of warren.horovod, and the object that reports hvd.elastic as unsupported."""
from typing import Any


class HorovodInternalError(RuntimeError):
    """Raised if an operation has failed: a rank died, or the ranks submitted different operations under one name."""


class HostsUpdatedInterrupt(RuntimeError):
    """Raised by elastic jobs in Horovod, never here; it exists for scripts that catch it."""


class Elastic:
    """Stands in for `hvd.elastic`: using any member raises NotImplementedError."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            f"warren.horovod has no hvd.elastic.{name}: the ranks of a job do not change. dmlc-submit --max-restarts N restarts a whole "
            "job, which then resumes from its checkpoint")


elastic = Elastic()

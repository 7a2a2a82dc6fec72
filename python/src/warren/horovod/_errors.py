"""Errors of warren.horovod, and what says by name that it is not there."""
from typing import Any


class HorovodInternalError(RuntimeError):
    """An operation has failed: a rank died, or the ranks called different things by one name."""


class HostsUpdatedInterrupt(RuntimeError):
    """Of elastic jobs, which are not there; scripts catch it."""


class Elastic:
    """In place of `hvd.elastic`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            f"warren.horovod has no hvd.elastic.{name}: jobs keep their ranks. dmlc-submit --max-restarts N starts a whole job "
            "again, which then goes on from a checkpoint that it saved")


elastic = Elastic()

"""Errors of warren.horovod."""


class HorovodInternalError(RuntimeError):
    """Raised if an operation has failed, for example because a rank died, or because the ranks submitted different operations under one
    name."""


class HostsUpdatedInterrupt(RuntimeError):
    """Raised on all ranks of an elastic job when the workers are about to change. `skip_sync` is always false, since new ranks need the
    state."""

    skip_sync = False

"""Passes the tracker's address, which XGBoost's own communicator needs, between processes started by mpirun, srun or torchrun."""
from typing import Callable, Optional

import numpy as np

from warren._launch.launched import Launched
from warren._launch.shared_tracker import Exchange, TorchStore

_MOST_ADDRESS_BYTES = 4096


class LauncherWorld:
    """The ranks of mpirun or srun, connected by librabit. If this object had to join their job, `from_rank_zero` leaves it."""

    def __init__(self, found: Launched) -> None:
        from warren import collectives  # pylint: disable=import-outside-toplevel  # loads librabit, which other jobs do not need

        self._leave: Optional[Callable[[], None]] = None
        try:
            self._world = collectives.world()
        except RuntimeError:
            collectives.init([])
            self._leave = collectives.leave
            self._world = collectives.world()
        if (self._world.rank, self._world.size) != (found.rank, found.size):
            raise RuntimeError(f"{found.description()}, and joined a job as rank {self._world.rank} of {self._world.size}")
        local = self._world.local()
        self.is_one_host: bool = local.size == found.size
        local.free()

    def from_rank_zero(self, text: str) -> str:
        """Returns rank 0's text on all ranks."""
        address = np.frombuffer(text.encode().ljust(_MOST_ADDRESS_BYTES), np.uint8).copy()
        received = self._world.broadcast(address, 0).tobytes().decode()
        if self._leave is not None:
            self._leave()
        return received


def exchange_of(found: Launched) -> Exchange:
    """Returns the exchange between the processes of a launcher. A collective call of these processes. Raises RuntimeError if the ranks cannot
    find each other."""
    if found.launcher == "torchrun":
        return TorchStore(found)
    return LauncherWorld(found)

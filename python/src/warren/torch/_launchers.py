"""Makes init_process_group work if neither torchrun nor dmlc-submit has set RANK and MASTER_ADDR: the engine connects ranks that were started by
mpirun or srun, or that have a tracker, and the variables that torchrun would have set are set here. A program started without a launcher is a
single rank."""
import functools
import os
import socket
from typing import Any, Callable, Iterator

import numpy as np
from torch.distributed.rendezvous import _rendezvous_handlers

from warren._frameworks.world import communicator_or_world

_LONGEST_PLACE = 256


def _address() -> str:
    """This host's address for other hosts: the address of its name or, if that is a loopback address, the address on the default route."""
    for *_, place in _addresses_of(socket.gethostname()):
        if not str(place[0]).startswith("127.") and place[0] != "::1":
            return str(place[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _addresses_of(name: str) -> Any:
    try:
        return socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return []


def _free_port() -> int:
    with socket.create_server(("", 0)) as listener:
        return int(listener.getsockname()[1])


def _find_each_other() -> None:
    """A collective call. Sets those of RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT that are not set yet."""
    world = communicator_or_world(None, "init_process_group")
    local = world.local()
    place = np.zeros(_LONGEST_PLACE, np.uint8)
    if world.rank == 0:
        address = "127.0.0.1" if local.size == world.size else _address()
        place = np.frombuffer(f"{address} {_free_port()}".encode().ljust(_LONGEST_PLACE, b"\0"), np.uint8).copy()
    address, port = world.broadcast(place, 0).tobytes().rstrip(b"\0").decode().split()
    found = {"RANK": world.rank, "WORLD_SIZE": world.size, "LOCAL_RANK": local.rank, "LOCAL_WORLD_SIZE": local.size,
             "MASTER_ADDR": address, "MASTER_PORT": port}
    local.free()
    for name, value in found.items():
        os.environ.setdefault(name, str(value))


def _finding(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(original)
    def rendezvous(url: str, *args: Any, **kwargs: Any) -> Iterator[Any]:
        if "RANK" not in os.environ and "rank=" not in url:
            _find_each_other()
        return original(url, *args, **kwargs)

    return rendezvous


def install() -> None:
    """Makes init_process_group() work, with any backend, without arguments for this rank and the address of rank 0."""
    _rendezvous_handlers["env"] = _finding(_rendezvous_handlers["env"])

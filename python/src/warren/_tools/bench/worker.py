"""A rank of `warren bench`. All ranks measure; the first one prints the figures. Arguments: the largest size, the number of samples."""
import json
import os
import socket
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from warren import collectives
from warren._tools.bench import report
from warren._tools.bench.cores import own_cores

#: The approximate duration of a sample, in seconds. Within a sample, faster calls are repeated.
_SAMPLE_S = 0.01
_MOST_CALLS = 500
_COPY_BYTES = _MESSAGE_BYTES = 32 << 20


def _timed(world: collectives.Communicator, call: Callable[[], Any], samples: int) -> float:
    """Returns the duration of one call in seconds: the median over samples. Each sample is the time of the slowest rank."""
    call()
    seconds = np.zeros(1)
    calls = np.ones(1, np.int64)
    for _ in range(2):  # the second pass measures the time of a warm call
        began = time.perf_counter()
        for _ in range(int(calls[0])):
            call()
        seconds[0] = (time.perf_counter() - began) / calls[0]
        world.allreduce(seconds, collectives.Op.MAX, out=seconds)
        calls[0] = min(_MOST_CALLS, max(1, round(_SAMPLE_S / max(seconds[0], 1e-9))))
        world.broadcast(calls, 0)
    times = np.zeros(samples)
    for sample in range(samples):
        world.barrier()
        began = time.perf_counter()
        for _ in range(int(calls[0])):
            call()
        times[sample] = (time.perf_counter() - began) / calls[0]
    world.allreduce(times, collectives.Op.MAX, out=times)
    return float(statistics.median(times.tolist()))


def _hosts(world: collectives.Communicator) -> Tuple[List[str], List[Dict[str, Any]]]:
    """A collective call. Returns the host name of each rank, and the name, rank count and core count of each host."""
    own = np.zeros(256, np.uint8)
    record = json.dumps([socket.gethostname()[:200], own_cores()]).encode()
    own[:len(record)] = np.frombuffer(record, np.uint8)
    records = [json.loads(bytes(row).rstrip(b"\0")) for row in world.allgather(own.reshape(1, -1))]
    names = [name for name, _ in records]
    return names, [{
        "name": name,
        "ranks": names.count(name),
        "cores": max(cores for other, cores in records if other == name)
    } for name in dict.fromkeys(names)]


def _copy(world: collectives.Communicator, samples: int) -> float:
    source, target = np.ones(_COPY_BYTES // 8), np.zeros(_COPY_BYTES // 8)
    return _COPY_BYTES / _timed(world, lambda: np.copyto(target, source), samples)


def _messages(world: collectives.Communicator, partner: int, samples: int) -> Dict[str, float]:
    """A collective call. Measures messages between rank 0 and its partner, while the other ranks wait."""
    small, large, answer = np.zeros(1), np.ones(_MESSAGE_BYTES // 8), np.zeros(1)

    def there_and_back(data: Any) -> None:
        if world.rank == 0:
            world.send(data, partner)
            world.recv(answer, partner)
        elif world.rank == partner:
            world.recv(data, 0)
            world.send(answer, 0)

    latency = _timed(world, lambda: there_and_back(small), samples) / 2
    whole = _timed(world, lambda: there_and_back(large), samples)
    return {"latency_s": latency, "bytes_per_s": _MESSAGE_BYTES / max(whole - latency, 1e-9)}


def _partner(names: List[str], elsewhere: bool) -> Optional[int]:
    return next((rank for rank in range(1, len(names)) if (names[rank] != names[0]) == elsewhere), None)


def _rows(world: collectives.Communicator, largest: int, samples: int) -> List[Dict[str, Any]]:
    rows = []
    for collective in ("allreduce", "broadcast"):
        for size in report.sizes(largest):
            data = np.zeros(size // 4, np.float32)
            call = (lambda data=data: world.allreduce(data, out=data)) if collective == "allreduce" else (
                lambda data=data: world.broadcast(data, 0))
            rows.append({"collective": collective, "bytes": data.nbytes, "seconds": _timed(world, call, samples)})
    return rows


def main() -> None:
    """Runs the whole measurement."""
    largest, samples = int(sys.argv[1]), int(sys.argv[2])
    with collectives.context([]) as world:
        names, hosts = _hosts(world)
        figures: Dict[str, Any] = {"hosts": hosts, "copy_bytes_per_s": _copy(world, samples)}
        for name, elsewhere in (("on_a_host", False), ("between_hosts", True)):
            partner = _partner(names, elsewhere)
            figures[name] = None if partner is None else _messages(world, partner, samples)
        figures["rows"] = _rows(world, largest, samples)
        if world.rank == 0:
            print(report.MARK + json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()

"""A rank of bench/parameter_server. Rank 0 prints the seconds of a push and a pull by all ranks, or of an allreduce. Arguments: the size of
the array in bytes, and the number of servers (0: allreduce)."""
import sys
import time

import numpy as np

from warren import collectives
from warren.parameter_server import ParameterServer

ROUNDS = 4  # the first one warms up


def main():
    count, servers = int(sys.argv[1]) // 4, int(sys.argv[2])
    with collectives.context([]) as world:
        given, taken = np.ones(count, np.float32), np.empty(count, np.float32)
        server = ParameterServer(np.zeros(count, np.float32), world, servers=servers) if servers else None
        for number in range(ROUNDS):
            world.barrier()
            begin = time.perf_counter()
            if server is None:
                world.allreduce(given, out=taken)
                expected = world.size
            else:
                server.send(given, "add").wait()
                world.barrier()
                server.receive(taken).wait()
                expected = (number + 1) * world.size
            world.barrier()
            seconds = time.perf_counter() - begin
            if taken[0] != expected or taken[-1] != expected:
                sys.exit(f"wrong result: {taken[0]}, expected {expected}")
            if world.rank == 0 and number > 0:
                print(f"seconds {seconds}", flush=True)
        if server is not None:
            server.free()


if __name__ == "__main__":
    main()

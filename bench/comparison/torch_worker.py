"""A rank of the gloo inside PyTorch, through torch.distributed, as its users call it: what bench/allreduce's programs are in C++.

Its place comes from the environment: BENCH_RANK, BENCH_WORLD_SIZE, BENCH_STORE (an empty folder that all ranks see) and
BENCH_INTERFACE (of the network). `--conductor SOCKET` says what to time (bench/allreduce/conducted.h).
"""

import os
import socket
import sys
import time

import torch
import torch.distributed as dist

EXIT_WRONG_RESULT = 3
PATTERN = 8191  # as in measure.cc


class Measurement:
    """One collective at one size: checked once, then timed in blocks of `block_s` seconds."""

    def __init__(self, collective, size, block_s):
        self.collective = collective
        self.world_size = dist.get_world_size()
        self.buffer = torch.zeros(size // 4)
        self.slices = list(self.buffer.chunk(self.world_size)) if collective == "allgather" else []
        self.root = -1
        self.operations = 1
        self.check()
        while True:
            seconds = self.block()
            if seconds >= block_s:
                return
            self.operations = int(self.operations * min(100, max(1.2, 1.2 * block_s / seconds))) + 1

    def run(self):
        if self.collective == "allreduce":
            dist.all_reduce(self.buffer)
        elif self.collective == "broadcast":
            self.root = (self.root + 1) % self.world_size
            dist.broadcast(self.buffer, self.root)
        elif self.collective == "allgather":
            own = self.slices[dist.get_rank()]
            own[::16].add_(0)  # something new to bring, as in measure.cc
            dist.all_gather(self.slices, own)
        else:
            dist.barrier()

    def check(self):
        """The sum of numbers that tell ranks and places apart."""
        if self.collective == "allreduce":
            pattern = torch.arange(len(self.buffer)).remainder(PATTERN).float()
            self.buffer.copy_(pattern + dist.get_rank())
            self.run()
            if not torch.equal(self.buffer, pattern * self.world_size + self.world_size * (self.world_size - 1) / 2):
                print("wrong result", file=sys.stderr, flush=True)
                os._exit(EXIT_WRONG_RESULT)
            self.buffer.zero_()

    def block(self):
        """Seconds of the slowest rank."""
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(self.operations):
            self.run()
        seconds = torch.tensor([time.perf_counter() - begin])
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        return float(seconds)


def main():
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["BENCH_INTERFACE"]
    torch.set_num_threads(1)
    size = int(os.environ["BENCH_WORLD_SIZE"])
    store = dist.FileStore(os.path.join(os.environ["BENCH_STORE"], "store"), size)
    dist.init_process_group("gloo", store=store, rank=int(os.environ["BENCH_RANK"]), world_size=size)
    conductor = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    conductor.connect(sys.argv[sys.argv.index("--conductor") + 1])
    with conductor.makefile("rw") as stream:
        print(dist.get_rank(), file=stream, flush=True)
        current, measurement = None, None
        for line in stream:
            words = line.split()
            if words[0] == "forget":
                current, measurement = None, None
                print("ok", file=stream, flush=True)
                continue
            if words[1] != current:
                collective, _, number = words[1].partition(":")
                measurement = None
                current, measurement = words[1], Measurement(collective, int(number), float(words[2]))
            print(measurement.block() / measurement.operations, measurement.operations, file=stream, flush=True)
    os._exit(0)  # the others may have gone: no orderly end


if __name__ == "__main__":
    main()

"""A rank of a library that is called from Python, as its users call it: the counterpart of the C++ programs of bench/allreduce.

    python_worker.py LIBRARY --conductor SOCKET        the conductor determines what is timed (bench/allreduce/conducted.h)

LIBRARY is `warren.rabit`, `xgboost` (xgboost.collective), or torch.distributed: `torch:gloo`, `torch:warren`, or `torch:alone`, whose ranks
compute without communication. Ranks that use a tracker find it by DMLC_TRACKER_URI and DMLC_TRACKER_PORT. PyTorch's ranks use BENCH_RANK,
BENCH_WORLD_SIZE, BENCH_STORE (an empty folder that all ranks can access) and, for gloo, BENCH_INTERFACE (the network interface).
"""

import contextlib
import functools
import itertools
import os
import socket
import sys
import time
import warnings

import numpy as np

EXIT_WRONG_RESULT = 3
PATTERN = 8191  # kPatternLength of measure.cc


class Numpy:
    """The common interface of warren.rabit and xgboost.collective: an allreduce of arrays that returns the result."""

    def __init__(self, module, operations):
        self.rank, self.size = module.get_rank(), module.get_world_size()
        self._allreduce, self._operations = module.allreduce, operations

    def most(self, value):
        return float(self._allreduce(np.array([value]), self._operations.MAX)[0])

    def barrier(self):
        self.most(0)

    def call(self, collective, whole, _other):
        if collective != "allreduce":
            raise ValueError(f"{collective}: only an allreduce")
        return functools.partial(self._allreduce, whole, self._operations.SUM)


class Torch:
    """torch.distributed, on tensors that share the arrays' memory."""

    def __init__(self, backend):
        import torch
        import torch.distributed as dist

        if backend == "warren":
            import warren.torch  # noqa: F401
        torch.set_num_threads(1)
        os.environ.setdefault("GLOO_SOCKET_IFNAME", os.environ["BENCH_INTERFACE"])
        self.rank, self.size = int(os.environ["BENCH_RANK"]), int(os.environ["BENCH_WORLD_SIZE"])
        store = dist.FileStore(os.path.join(os.environ["BENCH_STORE"], "store"), self.size)
        dist.init_process_group("gloo" if backend == "alone" else backend, store=store, rank=self.rank, world_size=self.size)
        self._torch, self._dist, self._alone = torch, dist, backend == "alone"
        self.barrier = dist.barrier

    def most(self, value):
        found = self._torch.tensor([value], dtype=self._torch.float64)
        self._dist.all_reduce(found, self._dist.ReduceOp.MAX)
        return float(found)

    def call(self, collective, whole, other):
        if collective.endswith("-step"):
            from torch_steps import step

            return step(collective.removesuffix("-step"), parallel=not self._alone)
        dist, data, output = self._dist, self._torch.from_numpy(whole), self._torch.from_numpy(other)
        if collective == "broadcast":
            roots = itertools.cycle([self.size - 1, *range(self.size - 1)])
            return lambda: dist.broadcast(data, next(roots))
        if collective == "allgather":
            own = data.chunk(self.size)[self.rank]
            lines = own.numpy()[::16]

            def gather():
                np.add(lines, 0, out=lines)  # rewrites the slice, as in measure.cc
                dist.all_gather_into_tensor(data, own)

            return gather
        return functools.partial(*{"allreduce": (dist.all_reduce, data), "barrier": (dist.barrier,),
                                   "reduce-scatter": (dist.reduce_scatter_tensor, output, data),
                                   "all-to-all": (dist.all_to_all_single, output, data)}[collective])  # fmt: skip


def joined(library, stack):
    """Joins the world and returns the library. Except with PyTorch, the rank leaves when the stack is closed."""
    if library == "warren.rabit":
        from warren import rabit

        stack.enter_context(rabit.context())
        return Numpy(rabit, rabit.Op)
    if library == "xgboost":
        from xgboost import collective

        found = {name: os.environ[name.upper()] for name in ("dmlc_tracker_uri", "dmlc_task_id")}
        stack.enter_context(collective.CommunicatorContext(**found, dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"])))
        return Numpy(collective, collective.Op)
    return Torch(library.partition(":")[2])


class Measurement:
    """One collective at one size, which is checked once, then timed in blocks of `block_s` seconds."""

    def __init__(self, library, collective, size, block_s):
        self.library = library
        count, ranks, rank = size // 4, library.size, library.rank
        places = np.arange(count) % PATTERN
        own = slice(count // ranks * rank, count // ranks * (rank + 1))
        whole = np.zeros(count, np.float32)
        other = np.zeros({"reduce-scatter": count // ranks, "all-to-all": count}.get(collective, 0), np.float32)
        self.call = library.call(collective, whole, other)
        self.operations = 1
        # Inputs that differ by rank and position, and the expected result of one call.
        expected, result = places, whole
        if collective in ("allreduce", "reduce-scatter"):
            whole[:] = places + rank
            expected = places * ranks + ranks * (ranks - 1) // 2
        elif collective == "broadcast":
            whole[:] = places if rank == ranks - 1 else -1
        elif collective == "allgather":
            whole[:] = -1
            whole[own] = places[own]
        elif collective == "all-to-all":
            whole[:] = (np.tile(places[: count // ranks], ranks) + count // ranks * rank) % PATTERN
        if collective in ("reduce-scatter", "all-to-all"):
            result = other
            expected = expected[own] if collective == "reduce-scatter" else expected
        returned = self.call()
        if count and not np.array_equal(returned if isinstance(returned, np.ndarray) else result, expected):
            print(f"wrong result of {collective}", file=sys.stderr, flush=True)
            os._exit(EXIT_WRONG_RESULT)
        whole[:] = 0
        while (seconds := self.block()) < block_s:
            self.operations = int(self.operations * min(100, max(1.2, 1.2 * block_s / seconds))) + 1

    def block(self):
        """Measures a block; returns the time of the slowest rank in seconds."""
        call, times = self.call, range(self.operations)
        self.library.barrier()
        begin = time.perf_counter()
        for _ in times:
            call()
        return self.library.most(time.perf_counter() - begin)


def main():
    warnings.simplefilter("ignore")
    with contextlib.ExitStack() as stack:
        library = joined(sys.argv[1], stack)
        conductor = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        conductor.connect(sys.argv[sys.argv.index("--conductor") + 1])
        stream = stack.enter_context(conductor.makefile("rw"))
        print(library.rank, file=stream, flush=True)
        current, measurement = None, None
        for line in stream:
            words = line.split()
            if words[0] == "forget":
                current, measurement = None, None
                print("ok", file=stream, flush=True)
                continue
            if words[1] != current:
                collective, _, number = words[1].partition(":")
                measurement = None  # frees its buffers first
                current, measurement = words[1], Measurement(library, collective, int(number), float(words[2]))
            print(measurement.block() / measurement.operations, file=stream, flush=True)
        os._exit(0)  # an orderly exit would wait for ranks that have already exited


if __name__ == "__main__":
    main()

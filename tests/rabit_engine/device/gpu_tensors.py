"""Tests PyTorch's tensors and, if CuPy is installed, CuPy's arrays, on the world and on communicators split from the world. One rank of a
job that scripts/gpu-check starts."""

import torch

from warren import collectives, device

with collectives.context([]) as world:
    torch.cuda.set_device(device.select())
    kinds = [torch]
    try:
        import cupy
        kinds.append(cupy)
    except ImportError:
        pass
    for comm in (world, world.split(world.rank % 2)):
        total = comm.size * (comm.size + 1) / 2
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
            x = torch.full((1000, 3), comm.rank + 1, dtype=dtype, device="cuda")
            handle = comm.allreduce_async(x, out=x)
            assert handle.wait() is x and (x == total).all(), (dtype, x)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x = torch.ones(1 << 22, device="cuda") * (comm.rank + 1)
            handle = comm.allreduce_async(x, collectives.Op.AVG, out=x, stream=stream)
            y = x * 2
        handle.wait()
        stream.synchronize()
        assert (y == 2 * total / comm.size).all(), y
        comm.broadcast(x.fill_(comm.rank), comm.size - 1)
        assert (x == comm.size - 1).all()
        parts = comm.allgather(torch.full((5,), comm.rank, device="cuda"), out=torch.empty(5 * comm.size, dtype=torch.int64, device="cuda"))
        assert parts.cpu().tolist() == [rank for rank in range(comm.size) for _ in range(5)], parts
        mine = comm.reduce_scatter(torch.ones(7 * comm.size, device="cuda"), out=torch.empty(7, device="cuda"))
        assert (mine == comm.size).all(), mine
        if len(kinds) > 1:
            z = kinds[1].full(100, comm.rank + 1, "float64")
            assert (comm.allreduce(z, out=z) == total).all()
    print("tensors of", *(kind.__name__ for kind in kinds), "by", device.describe())

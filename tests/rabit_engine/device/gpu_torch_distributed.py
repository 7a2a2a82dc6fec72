"""Tests the "warren" backend of torch.distributed: collectives, and training with DistributedDataParallel and FSDP2, which must give the
same model as a single process. One rank of a job that scripts/gpu-check starts."""

import torch
import torch.distributed as dist
import torch.distributed.fsdp

import warren.torch

dist.init_process_group("warren")
rank, size = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % torch.cuda.device_count())
total = size * (size + 1) / 2
for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
    x = torch.full((1000, 3), rank + 1, dtype=dtype, device="cuda")
    dist.all_reduce(x)
    assert (x == total).all(), (dtype, x)
x = torch.arange(12., device="cuda").reshape(3, 4).t() + rank  # not contiguous
work = dist.all_reduce(x, async_op=True)
work.wait()
assert torch.equal(x.cpu(), torch.arange(12.).reshape(3, 4).t() * size + size * (size - 1) / 2), x
dist.broadcast(x.fill_(rank), size - 1)
assert (x == size - 1).all()
whole = torch.empty(5 * size, device="cuda")
dist.all_gather_into_tensor(whole, torch.full((5,), float(rank), device="cuda"))
assert whole.cpu().tolist() == [float(one) for one in range(size) for _ in range(5)], whole
part = torch.empty(5, device="cuda")
dist.reduce_scatter_tensor(part, whole)
assert (part == rank * size).all(), part
# Lists, of one size and of several; and what goes by host memory.
parts = [torch.zeros(3, 2, device="cuda").t() for _ in range(size)]
dist.all_gather(parts, torch.full((2, 3), float(rank), device="cuda"))
assert [float(part.sum()) for part in parts] == [6.0 * one for one in range(size)], parts
part = torch.empty(4, device="cuda")
dist.reduce_scatter(part, [torch.full((4,), float(one + rank), device="cuda") for one in range(size)])
assert (part == size * rank + size * (size - 1) / 2).all(), part
parts = [torch.zeros(one + 1, device="cuda") for one in range(size)]
dist.all_gather(parts, torch.full((rank + 1,), float(rank), device="cuda"))
assert all((part == one).all() for one, part in enumerate(parts)), parts
x = torch.full((1 << 20,), rank + 1.0, device="cuda")
for _ in range(3):  # behind what the stream has to do, and before what it does next
    x.mul_(2).div_(2)
dist.reduce(x, 0)
assert (x == (total if rank == 0 else rank + 1)).all(), x
made = torch.empty(size, device="cuda")
work = dist.all_to_all_single(made, torch.arange(float(size), device="cuda") + size * rank, async_op=True)
work.wait()
assert made.tolist() == [float(size * one + rank) for one in range(size)], made
dist.gather(x[:2], [torch.empty(2, device="cuda") for _ in range(size)] if rank == 0 else None)
dist.scatter(x[:2], [torch.full((2,), float(one), device="cuda") for one in range(size)] if rank == 0 else None)
assert (x[:2] == rank).all(), x
if size > 1:
    request = dist.isend(torch.full((5,), float(rank), device="cuda"), (rank + 1) % size)
    dist.recv(x[:5], (rank - 1) % size)
    request.wait()
    assert (x[:5] == (rank - 1) % size).all(), x
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": one} for one in range(size)], objects


def train(model, inputs, targets):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.Tanh(), torch.nn.Linear(50, 3)).cuda()


torch.manual_seed(1)
inputs, targets = torch.randn(8 * size, 10).cuda(), torch.randn(8 * size, 3).cuda()
alone, together = make(), make()
train(alone, inputs, targets)
train(torch.nn.parallel.DistributedDataParallel(together), inputs[rank::size], targets[rank::size])
for one, other in zip(alone.parameters(), together.parameters()):
    assert torch.allclose(one, other, atol=1e-5), (one, other)
if hasattr(torch.distributed.fsdp, "fully_shard"):
    from torch.distributed.fsdp import fully_shard
    mesh, sharded, alone = dist.device_mesh.init_device_mesh("cuda", (size,)), make(), make()
    for layer in (sharded[0], sharded[2], sharded):
        fully_shard(layer, mesh=mesh)
    train(alone, inputs, targets)
    train(sharded, inputs[rank::size], targets[rank::size])
    for one, other in zip(alone.parameters(), sharded.parameters()):
        assert torch.allclose(one, other.full_tensor(), atol=1e-5), (one, other)
torch.cuda.synchronize()
dist.barrier()
print("torch.distributed on the GPU")

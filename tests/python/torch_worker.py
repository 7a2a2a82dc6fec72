"""A rank of torch_test.py. Runs the function named by its first argument. RANK and WORLD_SIZE, or a launcher's variables, are in its
environment; without any of them, it is the only rank."""
import datetime
import functools
import os
import signal
import sys
import threading
import time
import warnings
import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import refusals
import warren.torch

torch.set_num_threads(1)
refuses = functools.partial(refusals.refuses, (RuntimeError, ValueError, TypeError))


sizes = []  # the sizes of the worlds so far


def begin(**more):
    dist.init_process_group("warren", **more)
    sizes.append(dist.get_world_size())
    return dist.get_rank(), dist.get_world_size()


def same(got, expected):
    expected = torch.as_tensor(expected, dtype=got.dtype)
    assert got.shape == expected.shape and torch.equal(got, expected), (dist.get_rank(), got, expected)


def every_collective():
    rank, size = begin()
    total = size * (size + 1) // 2
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64):
        data = torch.full((2, 3), rank + 1, dtype=dtype)
        dist.all_reduce(data)
        same(data, torch.full((2, 3), total))
    for op, expected in ((dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.PRODUCT, torch.arange(1, size + 1).prod())):
        data = torch.full((3,), rank + 1)
        dist.all_reduce(data, op)
        same(data, [expected] * 3)
    data = torch.tensor([1 << rank, 0b1010, 1])
    dist.all_reduce(data, dist.ReduceOp.BOR)
    same(data, [(1 << size) - 1, 0b1010, 1])
    data = torch.full((2,), float(rank))
    dist.all_reduce(data, dist.ReduceOp.AVG)
    same(data, [(size - 1) / 2] * 2)
    data = torch.tensor([rank == 0, True, False])
    dist.all_reduce(data)
    same(data, [True, True, False])
    data = torch.full((2,), complex(1, rank))
    dist.all_reduce(data)
    same(data, [complex(size, total - size)] * 2)

    # Tensors that are not contiguous, are empty, or have no dimensions.
    data = torch.arange(12.0).view(3, 4).t()
    dist.all_reduce(data)
    same(data, torch.arange(12.0).view(3, 4).t() * size)
    dist.all_reduce(torch.empty(0))
    data = torch.tensor(1.0)
    dist.all_reduce(data)
    same(data, float(size))
    data = torch.arange(6.0)[::2] if rank == size - 1 else torch.zeros(6)[::2]
    dist.broadcast(data, size - 1)
    same(data, [0.0, 2.0, 4.0])
    # Parameters, for which autograd would refuse a copy.
    parameter = torch.nn.Parameter(torch.full((2, 3), float(rank)).t())
    dist.broadcast(parameter, size - 1)
    dist.all_reduce(parameter)
    same(parameter, torch.full((3, 2), size * (size - 1.0)))
    parameters = [torch.nn.Parameter(torch.zeros(3)) for _ in range(size)]
    dist.all_gather(parameters, torch.full((3,), float(rank)))
    same(torch.stack(parameters), torch.arange(float(size)).repeat_interleave(3).view(size, 3))

    data = torch.full((2,), rank + 1)
    dist.reduce(data, size - 1)
    if rank == size - 1:
        same(data, [total] * 2)
    outputs = [torch.empty(2, 2) for _ in range(size)]
    dist.all_gather(outputs, torch.full((2, 2), float(rank)))
    for other, output in enumerate(outputs):
        same(output, torch.full((2, 2), float(other)))
    # Tensors of different sizes.
    outputs = [torch.empty(other) for other in range(size)]
    dist.all_gather(outputs, torch.full((rank,), float(rank)))
    for other, output in enumerate(outputs):
        same(output, [float(other)] * other)
    output = torch.empty(2 * size)
    dist.all_gather_into_tensor(output, torch.full((2,), float(rank)))
    same(output, torch.arange(size).repeat_interleave(2))
    output = torch.empty(3)
    dist.reduce_scatter_tensor(output, torch.arange(3.0 * size))
    same(output, torch.arange(3.0 * rank, 3 * rank + 3) * size)
    output = torch.empty(rank)
    dist.reduce_scatter(output, [torch.full((other,), float(other)) for other in range(size)])
    same(output, [float(rank * size)] * rank)
    gathered = [torch.empty(3, dtype=torch.int16) for _ in range(size)] if rank == 0 else None
    dist.gather(torch.full((3,), rank, dtype=torch.int16), gathered, 0)
    for other, part in enumerate(gathered or []):
        same(part, [other] * 3)
    output = torch.empty(2)
    dist.scatter(output, [torch.full((2,), float(other)) for other in range(size)] if rank == 1 % size else None, 1 % size)
    same(output, [float(rank)] * 2)
    output = torch.empty(size, 2)
    dist.all_to_all_single(output, torch.full((size, 2), float(rank)))
    same(output, torch.arange(size).repeat_interleave(2).view(size, 2))
    output = torch.empty(size * (rank + 1))
    dist.all_to_all_single(output, torch.full((total,), float(rank)), [rank + 1] * size, list(range(1, size + 1)))
    same(output, torch.arange(size).repeat_interleave(rank + 1))
    outputs = [torch.empty(rank + 1) for _ in range(size)]
    dist.all_to_all(outputs, [torch.full((other + 1,), float(rank)) for other in range(size)])
    for other, output in enumerate(outputs):
        same(output, [float(other)] * (rank + 1))
    dist.barrier()

    sparse = torch.sparse_coo_tensor(torch.tensor([[0, rank + 1]]), torch.ones(2), (size + 1,))
    dist.all_reduce(sparse)
    same(sparse.to_dense(), [float(size)] + [1.0] * size)

    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": other} for other in range(size)]
    objects = [{"rank": rank}]
    dist.broadcast_object_list(objects, size - 1)
    assert objects == [{"rank": size - 1}]
    mine = [None]
    dist.scatter_object_list(mine, [f"for {other}" for other in range(size)] if rank == 0 else None, 0)
    assert mine == [f"for {rank}"]


def complex_numbers():
    """Every reduction of complex numbers, blocking and asynchronous, including conjugates, which are views with a flag."""
    rank, size = begin()
    world = dist.group.WORLD
    total = complex(size, size * (size - 1) // 2)
    for dtype in (torch.complex64, torch.complex128, torch.complex32):
        def own(count=2, value=complex(1, rank)):
            return torch.full((count,), value, dtype=torch.complex128).to(dtype)

        def expect(got, value, count=2):
            same(torch.view_as_real(got.resolve_conj()), torch.view_as_real(torch.full((count,), value, dtype=torch.complex128)))

        data = own()
        dist.all_reduce(data)
        expect(data, total)
        for op, value in ((dist.ReduceOp.SUM, total), (dist.ReduceOp.AVG, total / size)):
            options = dist.AllreduceOptions()
            options.reduceOp = op
            data = own()
            world.allreduce([data], options).wait()
            expect(data, value)
        several = [own(2), own(3)]
        world.allreduce_coalesced(several).wait()
        expect(several[0], total, 2)
        expect(several[1], total, 3)
        data = own()
        dist.reduce(data, size - 1)
        if rank == size - 1:
            expect(data, total)
        for is_async in (False, True):
            for function, parts in ((dist.reduce_scatter, [own() for _ in range(size)]), (dist.reduce_scatter_tensor, own(2 * size))):
                output = own()
                work = function(output, parts, async_op=is_async)
                if is_async:
                    work.wait()
                expect(output, total)
        # Conjugated tensors, at first on one rank only. In the collectives that are not tested here, torch.distributed itself refuses them.
        data = own().conj() if rank == 0 else own(2, complex(1, -rank))
        world.allreduce([data]).wait()
        expect(data, total.conjugate())
        data = own().conj() if rank == 0 else own(2, complex(1, -rank))
        dist.reduce(data, 0)
        if rank == 0:
            expect(data, total.conjugate())
        gathered = [torch.zeros(2, dtype=dtype).conj() for _ in range(size)]
        world.allgather([gathered], [own().conj()]).wait()
        for other, part in enumerate(gathered):
            expect(part, complex(1, -other))
        output = own()
        dist.reduce_scatter(output, [own().conj() for _ in range(size)])
        expect(output, total.conjugate())
    try:
        world.allreduce([torch.ones(1, dtype=torch.complex64)], dist.ReduceOp.PRODUCT)
    except (RuntimeError, TypeError) as error:
        assert "complex numbers support SUM and AVG" in str(error) or "PRODUCT" not in str(error), error
    else:
        raise AssertionError("no error")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.weight = torch.nn.Parameter(torch.randn(4, dtype=torch.complex64))

        def forward(self, data):
            return (data * self.weight * self.weight.conj()).abs().sum(1, keepdim=True)

    torch.manual_seed(1)
    inputs, targets = torch.randn(8 * size, 4), torch.randn(8 * size, 1)
    alone, together, synchronized = Model(), Model(), Model()
    train(alone, inputs, targets, 5)
    train(DistributedDataParallel(together), inputs[rank::size], targets[rank::size], 5)
    assert torch.allclose(alone.weight, together.weight, atol=1e-5), (rank, alone.weight, together.weight)
    torch.nn.functional.mse_loss(synchronized(inputs[rank::size]), targets[rank::size]).backward()
    warren.torch.synchronize_gradients(synchronized, communicator=world.communicator)
    alone = Model()
    torch.nn.functional.mse_loss(alone(inputs), targets).backward()
    assert torch.allclose(alone.weight.grad, synchronized.weight.grad, atol=1e-5), (rank, alone.weight.grad)


def sparse_sums():
    """Sums of sparse tensors, some without elements, and training with sparse gradients."""
    unchecked = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}
    rank, size = begin()

    def make(places, values, shape, dtype=torch.float32):
        return torch.sparse_coo_tensor(torch.tensor(places, dtype=torch.int64), torch.tensor(values).to(dtype), shape, **unchecked)

    def summed(tensor, expected):
        for is_async in (False, True):
            data = tensor.clone()
            work = dist.all_reduce(data, async_op=is_async)
            if is_async:
                future = work.get_future().wait()
                work.wait()
                same((future[0] if isinstance(future, list) else future).to_dense(), expected)
            same(data.to_dense(), expected)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Sparse invariant checks")  # PyTorch warns once, if check_invariants is not set
        summed(make([[0]], [1.0], (3,)), [float(size), 0.0, 0.0])
    for empty in (0, size - 1):
        mine = int(rank != empty)
        summed(make([[1] * mine], [1.0] * mine, (3,)), [0.0, size - 1.0, 0.0])
        summed(make([[1] * mine, [0] * mine], [2] * mine, (2, 2), torch.int64), [[0, 0], [2 * (size - 1), 0]])
        rows = torch.sparse_coo_tensor(torch.ones(1, mine, dtype=torch.int64), torch.ones(mine, 2, dtype=torch.bfloat16), (3, 2))
        summed(rows, [[0.0] * 2, [size - 1.0] * 2, [0.0] * 2])
    summed(make([[]], [], (3,)), [0.0] * 3)
    summed(torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 0), (4, 0)), torch.zeros(4, 0))
    summed(make([list(range(rank + 1))], [1.0] * (rank + 1), (size,)), torch.arange(size, 0, -1))
    summed(make([[0, 2, 0]], [1.0, 2.0, 3.0], (3,)), [4.0 * size, 0.0, 2.0 * size])
    # Tensors that cannot be added are refused on all ranks; later calls still work.
    for wrong in (make([[0]], [1.0], (3 + rank,)), make([[0]], [1.0], (3,), torch.float64 if rank else torch.float32)):
        if size > 1:
            refuses("rank 0 gives torch.float32 of shape [3]", dist.all_reduce, wrong)
    refuses("sparse_csr", dist.all_reduce, torch.eye(3).to_sparse_csr())
    refuses("only their sum", dist.all_reduce, make([[0]], [1.0], (3,)), dist.ReduceOp.MAX)
    summed(make([[0]], [1.0], (3,)), [float(size), 0.0, 0.0])

    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    class Words(torch.nn.Module):
        def __init__(self, kind):
            super().__init__()
            torch.manual_seed(0)
            self.words = kind(size + 3, 4, sparse=True)
            self.last = torch.nn.Linear(4, 1)

        def forward(self, data):
            found = self.words(data)
            return self.last(found if found.dim() == 2 else found.mean(1))

    inputs, targets = (torch.arange(2 * size * 3) % (size + 2)).view(2 * size, 3), torch.ones(2 * size, 1)
    for kind in (torch.nn.Embedding, torch.nn.EmbeddingBag):
        alone = Words(kind)
        train(alone, inputs, targets, 4)
        for more in ({}, {"gradient_as_bucket_view": True}, {"hook": default_hooks.allreduce_hook}):
            together = Words(kind)
            hook = more.pop("hook", None)
            model = DistributedDataParallel(together, **more)
            if hook is not None:
                model.register_comm_hook(None, hook)
            train(model, inputs[rank::size], targets[rank::size], 4)
            for one, other in zip(alone.parameters(), together.parameters()):
                assert torch.allclose(one, other, atol=1e-6), (kind, more, rank, one, other)


def without_waiting():
    rank, size = begin()
    total = size * (size - 1) // 2
    works = [dist.all_reduce(torch.full((1000,), float(rank)), async_op=True) for _ in range(20)]
    for work in reversed(works):
        work.wait()
        assert work.is_completed()
        same(work.result()[0], [float(total)] * 1000)
    work = dist.all_reduce(torch.full((3,), float(rank)), async_op=True)
    future = work.get_future()
    same(future.wait()[0] if isinstance(future.wait(), list) else future.wait(), [float(total)] * 3)
    mean = dist.all_reduce(torch.full((3,), float(rank)), async_op=True).get_future().then(lambda one: one.value()[0] / size)
    same(mean.wait(), [total / size] * 3)
    view = torch.zeros(4, 2)[:, 0]
    view += rank
    work = dist.all_reduce(view, async_op=True)
    work.wait()
    same(view, [float(total)] * 4)
    # The results are complete as soon as the work is, also where they are copied.
    view.fill_(rank)
    parts = [torch.zeros(2) for _ in range(size)]
    got = torch.zeros(3, 2)
    works = [dist.all_reduce(view, async_op=True), dist.all_gather(parts, torch.full((2,), float(rank)), async_op=True)]
    if size > 1:
        works += [dist.irecv(got[:, 0], (rank - 1) % size)]
        dist.send(torch.ones(3), (rank + 1) % size)
    for work in works:
        end = time.monotonic() + 30
        while not work.is_completed():
            assert time.monotonic() < end
            time.sleep(.01)
    same(view, [float(total)] * 4)
    same(torch.stack(parts)[:, 1], torch.arange(float(size)))
    same(got, [[float(size > 1), 0.0]] * 3)
    for work in works:
        assert work.exception() is None and work.wait()
    parameter = torch.nn.Parameter(torch.full((2, 3), float(rank)).t())
    with torch.no_grad():
        dist.broadcast(parameter, size - 1, async_op=True).get_future().wait()
    same(parameter, torch.full((3, 2), size - 1.0))
    # No work is kept after the next one was waited for.
    work = dist.barrier(async_op=True)
    work.wait()
    ended = weakref.ref(work)
    del work
    dist.barrier(async_op=True).wait()
    assert ended() is None
    dist.barrier(async_op=True).wait()
    # The call completes although no rank waits for it or keeps the tensor.
    dist.all_reduce(torch.ones(10), async_op=True)
    dist.barrier()


def callbacks_that_wait():
    """Callbacks of futures begin operations and wait for them in every possible way."""
    rank, size = begin(timeout=datetime.timedelta(seconds=60))
    total = size * (size - 1) // 2
    other = dist.new_group(list(range(size)))

    def reduced(group=None):
        return dist.all_reduce(torch.full((3,), float(rank)), group=group, async_op=True)

    def value(future):
        result = future.wait()
        return result[0] if isinstance(result, list) else result

    def by_future(_):
        return value(reduced().get_future())

    def by_work(_):
        work = reduced()
        work.wait()
        return work.result()[0]

    def blocking(_):
        data = torch.full((3,), float(rank))
        dist.barrier()
        dist.all_reduce(data)
        return data

    def in_another_group(_):
        return value(reduced(other).get_future())

    def by_messages(_):
        got = torch.zeros(3)
        if size > 1:
            received = dist.irecv(got, (rank - 1) % size).get_future()
            dist.isend(torch.full((3,), float(total)), (rank + 1) % size).wait()
            received.wait()
        return got + total * (size == 1)

    def deep(depth):
        return lambda _: value(reduced().get_future()) if depth == 0 else value(reduced().get_future().then(deep(depth - 1)))

    ways = [by_future, by_work, blocking, in_another_group, by_messages, deep(1), deep(5)]
    for way in ways + ways:
        future = reduced().get_future().then(way)
        same(future.wait(), [float(total)] * 3)
        work = reduced()
        future = work.get_future().then(way)
        work.wait()
        same(future.wait(), [float(total)] * 3)

    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    torch.manual_seed(1)
    inputs, targets = torch.randn(8 * size, 10), torch.randn(8 * size, 3)
    for compressed in (False, True) if hasattr(torch, "compile") else (False,):  # PyTorch 1.13 cannot multiply float16 on CPUs
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=3, start_powerSGD_iter=2, min_compression_rate=0.1)
        hook = default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook) if compressed else powerSGD_hook.powerSGD_hook
        together = make_model()
        model = DistributedDataParallel(together)
        model.register_comm_hook(state, hook)
        train(model, inputs[rank::size], targets[rank::size], 6)
        digests = [None] * size
        dist.all_gather_object(digests, [parameter.tolist() for parameter in together.parameters()])
        assert all(digest == digests[0] for digest in digests)


def callbacks_in_an_order_of_chance():
    """Rank 0 begins two barriers in a callback while another future is incomplete, and is warned only once."""
    rank, _ = begin()
    caught = []
    warnings.simplefilter("always")
    warnings.showwarning = lambda message, *_, **__: caught.append(str(message))
    data = torch.ones(1)
    begun = []

    def nested(_):
        begun.extend([dist.barrier(async_op=True), dist.barrier(async_op=True)])
        dist.send(data, 1, tag=2)

    if rank == 0:
        first = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(nested)
        second = dist.all_reduce(torch.ones(3), async_op=True).get_future()
        dist.send(data, 1, tag=1)
        first.wait()
        second.wait()
        begun[0].wait()
        begun[1].wait()
        assert len(caught) == 1 and "rank 0 begins WarrenBarrier inside a callback" in caught[0], caught
        # With only one future at a time, the order is fixed.
        dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda _: dist.all_reduce(torch.ones(3))).wait()
    else:
        dist.recv(data, 0, tag=1)
        dist.all_reduce(torch.ones(3))
        dist.recv(data, 0, tag=2)
        dist.all_reduce(torch.ones(3))
        dist.barrier()
        dist.barrier()
        dist.all_reduce(torch.ones(3))
        dist.all_reduce(torch.ones(3))
        assert not caught, caught


def ends_in_a_callback():
    """The program ends while a callback runs."""
    begin()
    began = threading.Event()

    def sleep(future):
        began.set()
        time.sleep(1.5)
        return future.value()

    dist.all_reduce(torch.ones(3), async_op=True).get_future().then(sleep)
    began.wait()


def late_in_a_callback():
    """The last rank does not make the call that the other ranks' callbacks wait for."""
    rank, size = begin()
    dist.barrier()
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds=1))

    def second(_):
        return dist.all_reduce(torch.ones(3), async_op=True).get_future().wait()

    work = dist.all_reduce(torch.ones(3), async_op=True)
    if rank == size - 1:
        work.wait()
        time.sleep(3)
        os._exit(0)
    try:
        work.get_future().then(second).wait()
    except RuntimeError as error:
        print(f"rank {rank}: {error}", flush=True)
        os._exit(0)
    sys.exit("no error")


def messages():
    rank, size = begin()
    to, source = (rank + 1) % size, (rank - 1) % size
    # All ranks send a long message before they receive one.
    got = torch.empty(300_000)
    sent = dist.isend(torch.full((300_000,), float(rank)), to)
    received = dist.irecv(got, source)
    sent.wait()
    received.wait()
    same(got, torch.full((300_000,), float(source)))
    # Messages with tags, received in a different order than they were sent.
    works = [dist.isend(torch.tensor([rank * 10 + tag]), to, tag=tag) for tag in range(5)]
    for tag in reversed(range(5)):
        got = torch.empty(1, dtype=torch.int64)
        dist.recv(got, source, tag=tag)
        same(got, [source * 10 + tag])
    for work in works:
        work.wait()
    # Rank 0 receives from any rank.
    if rank == 0:
        found = set()
        for _ in range(size - 1):
            got = torch.empty(1, dtype=torch.int64)
            sender = dist.recv(got, tag=9)
            same(got, [sender])
            found.add(sender)
        assert found == set(range(1, size))
    else:
        dist.send(torch.tensor([rank]), 0, tag=9)
    operations = [dist.P2POp(dist.isend, torch.tensor([rank]), to), dist.P2POp(dist.irecv, torch.empty(1, dtype=torch.int64), source)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(operations[1].tensor, [source])
    # Messages in a group, which numbers its ranks differently from the world.
    group = dist.new_group([size - 1, 0])
    if rank in (0, size - 1):
        other = size - 1 - rank
        got = torch.empty(2)
        sent = dist.isend(torch.full((2,), float(rank)), other, group=group)
        assert dist.recv(got, group=group) == other
        sent.wait()
        same(got, [float(other)] * 2)
    dist.barrier()


def groups():
    rank, size = begin()
    wanted = [[0], [size - 1, 0], list(range(size)), list(range(0, size, 2))]
    made = [(ranks, dist.new_group(ranks)) for ranks in wanted for _ in range(3)]
    for ranks, group in made:
        if rank in ranks:
            data = torch.tensor([1 << rank])
            dist.all_reduce(data, group=group)
            same(data, [sum(1 << other for other in set(ranks))])
            dist.broadcast(data, ranks[0], group=group)
            dist.barrier(group)
    for ranks, group in made[::2]:
        if rank in ranks:
            dist.destroy_process_group(group)
    data = torch.ones(1)
    dist.all_reduce(data)
    same(data, [float(size)])
    dist.destroy_process_group()
    # The same processes form another group, at another address, since at the old one some ranks could still reach the old store.
    os.environ["MASTER_PORT"] = os.environ["ANOTHER_PORT"]
    begin()
    data = torch.ones(1)
    dist.all_reduce(data)
    same(data, [float(size)])


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.Tanh(), torch.nn.Linear(50, 3))


def train(model, inputs, targets, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def data_parallel():
    """Training gives the same model as one process on all rows."""
    rank, size = begin()
    torch.manual_seed(1)
    inputs, targets = torch.randn(8 * size, 10), torch.randn(8 * size, 3)
    alone = make_model()
    train(alone, inputs, targets, 5)
    for more in ({}, {"bucket_cap_mb": 0.0001}, {"find_unused_parameters": True}):
        together = make_model()
        train(DistributedDataParallel(together, **more), inputs[rank::size], targets[rank::size], 5)
        for one, other in zip(alone.parameters(), together.parameters()):
            assert torch.allclose(one, other, atol=1e-6), (rank, one, other)
        digests = [None] * size
        dist.all_gather_object(digests, [parameter.tolist() for parameter in together.parameters()])
        assert all(digest == digests[0] for digest in digests)
    # Ranks with different numbers of batches: each step divides by the number of ranks that still take part.
    together = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(together.bias)
    model = DistributedDataParallel(together)
    with model.join(divide_by_initial_world_size=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        for _ in range(rank + 1):
            optimizer.zero_grad()
            model(torch.ones(1, 1)).sum().backward()
            optimizer.step()
    same(together.bias, [-float(size)])


def horovods_api():
    """warren.horovod finds the job by the same variables."""
    import warren.horovod.torch as hvd
    hvd.init()
    sizes.append(hvd.size())
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == hvd.size()


def compiled():
    """torch.compile of a whole model, of a module in it, of a step, and of functions that call collectives."""
    rank, size = begin()
    torch.manual_seed(1)
    inputs, targets = torch.randn(8 * size, 10), torch.randn(8 * size, 3)
    mine = inputs[rank::size], targets[rank::size]
    expected = make_model()
    train(expected, inputs, targets, 4)

    def compiled_whole(model):
        together = DistributedDataParallel(model)
        train(torch.compile(together, backend="aot_eager"), *mine, 4)

    def compiled_module(model):
        train(DistributedDataParallel(torch.compile(model, backend="aot_eager")), *mine, 4)

    def compiled_step(model):
        together = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(together(mine[0]), mine[1]).backward()
            optimizer.step()

        step = torch.compile(step, backend="aot_eager")
        for _ in range(4):
            step()

    for way in (compiled_whole, compiled_module, compiled_step):
        torch._dynamo.reset()
        model = make_model()
        way(model)
        for one, other in zip(expected.parameters(), model.parameters()):
            assert torch.allclose(one, other, atol=1e-6), (way, rank, one, other)

    def reduced(data):
        twice = data * 2
        dist.all_reduce(twice)
        return twice + 1

    def broadcasted(data):
        twice = data * 2
        dist.broadcast(twice, size - 1)
        return twice + dist.get_rank()

    def gathered(data):
        parts = [torch.empty_like(data) for _ in range(size)]
        dist.all_gather(parts, data * 2)
        return torch.stack(parts).sum(0)

    total = size * (size + 1)
    for function, result in ((reduced, total + 1), (broadcasted, 2 * size + rank), (gathered, total)):
        torch._dynamo.reset()
        same(torch.compile(function, backend="aot_eager")(torch.full((3,), rank + 1.0)), [float(result)] * 3)


def compiled_horovod():
    """torch.compile does not trace Horovod's hooks and operations. If it did, PyTorch would warn."""
    import warren.horovod.torch as hvd
    hvd.init()
    sizes.append(hvd.size())
    warnings.simplefilter("error")
    model = make_model()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters())

    def step(data):
        optimizer.zero_grad()
        model(data).pow(2).mean().backward()
        optimizer.step()
        return hvd.allreduce(data * 2, name="data") + 1

    same(torch.compile(step, backend="aot_eager")(torch.full((4, 10), 1.0 + hvd.rank())), torch.full((4, 10), hvd.size() + 2.0))
    hvd.shutdown()


def sharded():
    """FSDP2: parameters and gradients are sharded; training learns the same as one process."""
    from torch.distributed._composable.fsdp import fully_shard
    rank, size = begin()
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size,))
    torch.manual_seed(1)
    inputs, targets = torch.randn(8 * size, 10), torch.randn(8 * size, 3)
    alone, together = make_model(), make_model()
    train(alone, inputs, targets, 5)
    for layer in together:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(together, mesh=mesh)
    train(together, inputs[rank::size], targets[rank::size], 5)
    for one, other in zip(alone.parameters(), together.parameters()):
        assert torch.allclose(one, other.full_tensor(), atol=1e-6), (rank, one, other)


def distributed_tensors():
    """DTensor: products of sharded matrices, and conversions between placements."""
    try:
        from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
    except ImportError:  # PyTorch 2.4
        from torch.distributed._tensor import Partial, Replicate, Shard, distribute_tensor
    rank, size = begin()
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size,))
    torch.manual_seed(1)
    left, right = torch.randn(4 * size + 1, 6), torch.randn(6, 5)
    rows = distribute_tensor(left, mesh, [Shard(0)])
    product = rows @ distribute_tensor(right, mesh, [Replicate()])
    assert torch.allclose(product.full_tensor(), left @ right, atol=1e-5), rank
    columns = distribute_tensor(left, mesh, [Shard(1)])
    partial = columns @ distribute_tensor(right, mesh, [Shard(0)])
    assert isinstance(partial.placements[0], Partial)
    for placement in (Replicate(), Shard(0), Shard(1)):
        moved = partial.redistribute(mesh, [placement])
        assert torch.allclose(moved.full_tensor(), left @ right, atol=1e-5), (rank, placement)
    assert torch.equal(rows.redistribute(mesh, [Shard(1)]).full_tensor(), left)


def killed():
    """Rank 1 dies during training."""
    rank, _ = begin()
    model = DistributedDataParallel(make_model())
    inputs, targets = torch.randn(8, 10), torch.randn(8, 3)
    try:
        for step in range(1000):
            if rank == 1 and step == 20:
                print(f"killed at {time.time()}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            train(model, inputs, targets, 1)
    except RuntimeError as error:
        print(f"rank {rank} knows at {time.time()}: {error}", flush=True)
        return
    sys.exit("no error")


def late():
    """The last rank never makes the call that the other ranks make."""
    rank, size = begin()
    dist.barrier()
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds=1))
    if rank == size - 1:
        time.sleep(3)
        os._exit(0)
    try:
        dist.all_reduce(torch.ones(3))
    except RuntimeError as error:
        print(f"rank {rank}: {error}", flush=True)
        return
    sys.exit("no error")


def monitored():
    rank, size = begin()
    dist.monitored_barrier()
    if rank != size - 1:
        refuses(f"Rank {size - 1} failed to pass monitoredBarrier in 500 ms", dist.monitored_barrier,
                timeout=datetime.timedelta(seconds=0.5), wait_all_ranks=True)
    # The group still works.
    data = torch.ones(1)
    dist.all_reduce(data)
    same(data, [float(size)])


def different_roots():
    """Each rank names itself as the root."""
    rank, size = begin()
    # Rank 0 serves PyTorch's store, so all ranks must have left init_process_group before it fails and exits.
    dist.barrier()
    data = torch.full((3,), float(rank))
    calls = {"broadcast": lambda: dist.broadcast(data, rank),
             "scatter": lambda: dist.scatter(torch.empty(3), [data] * size, rank)}
    try:
        calls[os.environ["CALL"]]()
    except RuntimeError as error:
        print(f"rank {rank}: {error}", flush=True)


def refused():
    rank, size = begin()
    refuses("does not support SUM of torch.int16", dist.all_reduce, torch.ones(1, dtype=torch.int16))
    refuses("does not support AVG of torch.int64", dist.all_reduce, torch.tensor([1]), dist.ReduceOp.AVG)
    refuses("does not support BAND of torch.float32", dist.all_reduce, torch.ones(1), dist.ReduceOp.BAND)
    refuses("in the list", dist.all_gather, [torch.ones(1)] * (size + 1), torch.ones(1))
    refuses("all_to_all: 5 rows cannot be divided equally", dist.all_to_all_single, torch.ones(5), torch.ones(5))
    # torch.distributed itself may check the types of these calls, so the backend is called directly.
    world, ints, floats = dist.group.WORLD, torch.ones(size, dtype=torch.int32), torch.ones(size)
    refuses("all_to_all: tensors of torch.int32 and of torch.float32", world.alltoall_base, floats, ints, [], [])
    refuses("all_to_all: tensors of torch.float32 and of torch.int32", world.alltoall, list(floats.split(1)), list(ints.split(1)))
    if hasattr(torch, "float8_e4m3fn"):
        refuses("float8", dist.all_reduce, torch.ones(1).to(torch.float8_e4m3fn))
    refuses("meta", dist.all_reduce, torch.ones(1, device="meta"))
    group = warren.torch.ProcessGroup
    assert isinstance(dist.group.WORLD, group)
    # Later calls still work.
    data = torch.full((1,), float(rank))
    dist.all_reduce(data)
    same(data, [float(size * (size - 1) // 2)])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(f"well among {sizes[0]}", flush=True)

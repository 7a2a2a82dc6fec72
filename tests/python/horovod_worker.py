"""A rank of horovod_test.py. Runs the functions named by its arguments, one after the other."""
import os
import pathlib
import re
import signal
import sys
import time
import warnings

import torch

import warren.horovod.torch as hvd
from warren.horovod import _arrays
from warren.horovod import run as horovod_run
from warren.horovod.torch import _ops
from refusals import refuses
from warren_testing import wait_for

torch.set_num_threads(1)
BEFORE = {name: value for name, value in os.environ.items() if name.startswith("HOROVOD_") and ("RANK" in name or "SIZE" in name)}


def same(got, expected):
    expected = torch.as_tensor(expected, dtype=got.dtype)
    assert got.shape == expected.shape and torch.equal(got, expected), (hvd.rank(), got, expected)


def meet(what):
    """Waits until all ranks have called this with the same name. Uses files, not an operation."""
    folder = pathlib.Path(os.environ["MEETING"])
    (folder / f"{what}.{hvd.rank()}").touch()
    wait_for(lambda: len(list(folder.glob(f"{what}.*"))) == hvd.size())


def every_operation():
    rank, size = hvd.rank(), hvd.size()
    total = size * (size + 1) // 2
    assert (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (rank, size, 0, 1)
    assert hvd.is_homogeneous() and hvd.is_initialized()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64):
        mine = torch.full((2, 3), rank + 1, dtype=dtype)
        same(hvd.allreduce(mine, op=hvd.Sum), torch.full((2, 3), total))
        same(hvd.allreduce(mine, op=hvd.Max), torch.full((2, 3), size))
        same(hvd.allreduce(mine, op=hvd.Min), torch.full((2, 3), 1))
        same(hvd.allreduce(mine, op=hvd.Product), torch.full((2, 3), int(torch.arange(1, size + 1).prod())))
        average = total / size if dtype.is_floating_point else total // size
        same(hvd.allreduce(mine), torch.full((2, 3), average, dtype=dtype))
        same(mine, torch.full((2, 3), rank + 1))
        gathered = hvd.allgather(mine)
        same(gathered, torch.arange(1, size + 1).repeat_interleave(2)[:, None].repeat(1, 3))
        same(hvd.broadcast(mine, size - 1), torch.full((2, 3), size))
        same(hvd.allreduce(mine, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0), torch.full((2, 3), 6 * total).to(dtype))
    # The average of a type that cannot hold the number of ranks.
    some = torch.tensor([127, 0, -128], dtype=torch.int8)
    same(torch.from_numpy(_arrays._divided(some.numpy(), 128)), [0, 0, -1])
    same(_ops._Scaling(hvd.Average, 1.0, 1.0, 128).finish(some), [0, 0, -1])
    same(hvd.allreduce(torch.tensor([2 * size, -3]), postscale_factor=0.5), [size, -1])
    same(hvd.broadcast(torch.tensor([rank == 0, True]), 0), [True, True])

    # In place, with an asynchronous and a blocking operation.
    data = torch.full((4,), float(rank + 1))
    place = data.data_ptr()
    handle = hvd.allreduce_async_(data, op=hvd.Sum)
    assert hvd.synchronize(handle) is data and data.data_ptr() == place and hvd.poll(handle)
    same(data, [float(total)] * 4)
    assert hvd.broadcast_(data.add_(rank), 0) is data
    same(data, [float(total)] * 4)
    # Tensors that are not contiguous, are empty, or have no dimensions.
    data = torch.full((3, 4), float(rank)).t()
    hvd.allreduce_(data, op=hvd.Sum, postscale_factor=2.0)
    same(data, torch.full((4, 3), float(total - size) * 2))
    view = torch.full((4, 2), float(rank))[:, 1]
    same(hvd.broadcast_(view, size - 1), [size - 1.0] * 4)
    # Results in place are complete as soon as `poll` says so.
    column, integers, scaled, sent = torch.full((4, 2), float(rank))[:, 1], torch.tensor([2 * rank]), torch.ones(2), view.add_(rank)
    handles = [hvd.allreduce_async_(column, op=hvd.Sum), hvd.allreduce_async_(integers),
               hvd.allreduce_async_(scaled, op=hvd.Sum, postscale_factor=0.5), hvd.broadcast_async_(sent, 0)]
    for handle in handles:
        wait_for(lambda handle=handle: hvd.poll(handle))
    same(column, [float(total - size)] * 4)
    same(integers, [size - 1])
    same(scaled, [size / 2] * 2)
    same(sent, [size - 1.0] * 4)
    for handle in handles:
        hvd.synchronize(handle)
    same(hvd.allreduce(torch.empty(0)), torch.empty(0))
    same(hvd.allreduce(torch.tensor(float(rank)), op=hvd.Sum), float(total - size))
    same(hvd.allgather(torch.empty(0, 2)), torch.empty(0, 2))

    # Ranks with different numbers of rows, including none.
    expected = torch.arange(size).repeat_interleave(torch.arange(size))
    same(hvd.allgather(torch.full((rank, 2), rank)), expected[:, None].repeat(1, 2))
    same(hvd.alltoall(torch.arange(size) + 10 * rank), torch.arange(size) * 10 + rank)
    splits = torch.arange(size)  # r rows for rank r
    rows, received = hvd.alltoall(torch.arange(size).repeat_interleave(splits) + 10 * rank, splits)
    same(rows, (torch.arange(size) * 10 + rank).repeat_interleave(rank))
    same(received, [rank] * size)
    assert received.dtype == splits.dtype
    assert hvd.alltoall(torch.zeros(size), [1] * size)[1].dtype == torch.int32
    share = size + 1 if rank == 0 else size  # the extra row goes to rank 0
    begin = rank * size + (rank > 0)
    whole = torch.arange(size * size + 1.0)
    same(hvd.reducescatter(whole, op=hvd.Sum, prescale_factor=0.5), whole[begin:begin + share] * size / 2)
    same(hvd.reducescatter(whole.int()), whole[begin:begin + share])

    # Several tensors together.
    pair = [torch.full((3,), float(rank)), torch.full((2, 2), rank)]
    for one, shape in zip(hvd.grouped_allreduce(pair, op=hvd.Sum), ((3,), (2, 2))):
        same(one, torch.full(shape, total - size))
    for one, length in zip(hvd.grouped_allgather(pair), (3 * size, 2 * size)):
        assert len(one) == length
    for one in hvd.grouped_reducescatter([torch.ones(size), torch.ones(size, 2)], op=hvd.Sum):
        same(one, torch.full((1, *one.shape[1:]), size))
    hvd.grouped_allreduce_(pair, op=hvd.Max)
    same(pair[1], [[size - 1] * 2] * 2)

    sparse = torch.sparse_coo_tensor(torch.tensor([[0, rank + 1]]), torch.ones(2), (size + 1,))
    same(hvd.sparse_allreduce_async(sparse, "sparse", hvd.Sum)().to_dense(), [float(size)] + [1.0] * size)
    same(hvd.allreduce(torch.full((2,), float(rank)), compression=hvd.Compression.fp16, op=hvd.Sum), [float(total - size)] * 2)

    assert hvd.broadcast_object({"rank": rank}, size - 1) == {"rank": size - 1}
    assert hvd.allgather_object("x" * rank) == ["x" * other for other in range(size)]
    hvd.barrier()


def any_order():
    """Named operations begin in a different order on each rank."""
    rank, size = hvd.rank(), hvd.size()
    order = torch.randperm(30, generator=torch.Generator().manual_seed(rank)).tolist()
    handles = {}
    for i in order:
        mine = torch.full((i + 1,), float(rank + i))
        handles[i] = (hvd.allreduce_async(mine, name=str(i), op=hvd.Sum), hvd.allgather_async(mine[:rank], name=str(i)),
                      hvd.broadcast_async(mine, 0, name=str(i)))
    for i, (total, gathered, sent) in handles.items():
        same(hvd.synchronize(total), torch.full((i + 1,), size * (size - 1) / 2 + size * i))
        assert len(hvd.synchronize(gathered)) == sum(min(other, i + 1) for other in range(size))
        same(hvd.synchronize(sent), torch.full((i + 1,), float(i)))


def goes_on():
    """Operations complete whether or not this rank waits for them, including those that must exchange sizes first."""
    rank, size = hvd.rank(), hvd.size()
    handles = [hvd.allgather_async(torch.full((rank + 1,), rank)), hvd.alltoall_async(torch.arange(size)),
               hvd.allreduce_async(torch.ones(3), op=hvd.Sum)]
    if rank == 0:
        meet("begun")  # without waiting for the operations
    else:
        for handle in handles:
            hvd.synchronize(handle)
        meet("begun")
    wait_for(lambda: all(hvd.poll(handle) for handle in handles))
    same(hvd.synchronize(handles[2]), [float(size)] * 3)


def gradients():
    """Gradients through each operation."""
    rank, size = hvd.rank(), hvd.size()

    def gradient_of(function, shape, weights):
        source = torch.ones(shape, requires_grad=True)
        output = function(source)
        (output * weights(output)).sum().backward()
        return source.grad

    def ranked(output):
        return torch.full_like(output, rank + 1)

    total = float(size * (size + 1) // 2)
    same(gradient_of(lambda source: hvd.allreduce(source, op=hvd.Sum), (2, 2), ranked), torch.full((2, 2), total))
    same(gradient_of(lambda source: hvd.allreduce(source, prescale_factor=2.0), (3,), ranked), torch.full((3,), total / size * 2))
    same(gradient_of(lambda source: hvd.grouped_allreduce([source], op=hvd.Sum)[0], (3,), ranked), torch.full((3,), total))
    same(gradient_of(hvd.allgather, (rank + 1, 2), ranked), torch.full((rank + 1, 2), total / size))
    same(gradient_of(lambda source: hvd.broadcast(source, 0), (3,), ranked), torch.full((3,), total / size if rank == 0 else 0.0))
    same(gradient_of(hvd.alltoall, (size,), ranked), torch.arange(1.0, size + 1))
    same(gradient_of(lambda source: hvd.alltoall(source, [0] * (size - 1) + [1])[0], (2,), ranked), [float(size), 0.0])
    same(gradient_of(lambda source: hvd.reducescatter(source, op=hvd.Sum), (size, 2), ranked),
         torch.arange(1.0, size + 1)[:, None].repeat(1, 2) * size)


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.Tanh(), torch.nn.Linear(50, 3))


def train(model, optimizer, inputs, targets, steps=4, parts=1):
    for _ in range(steps):
        optimizer.zero_grad()
        for own_inputs, own_targets in zip(inputs.chunk(parts), targets.chunk(parts)):
            (torch.nn.functional.mse_loss(model(own_inputs), own_targets) / parts).backward()
        optimizer.step()


def optimizer():
    """Training learns the same as one process on all rows; the models of all ranks are bit-identical."""
    rank, size = hvd.rank(), hvd.size()
    torch.manual_seed(1)
    inputs, targets = torch.randn(8 * size, 10), torch.randn(8 * size, 3)
    alone = make_model()
    train(alone, torch.optim.Adam(alone.parameters(), lr=0.01), inputs, targets)
    for more, parts, tolerance in (({}, 1, 1e-6), ({"groups": 2}, 1, 1e-6), ({"gradient_predivide_factor": 2.0}, 1, 1e-6),
                                   ({"backward_passes_per_step": 2}, 2, 1e-6), ({"compression": hvd.Compression.fp16}, 1, 1e-2),
                                   ({"groups": "first layer"}, 1, 1e-6), ({"backward_passes_per_step": 9}, 2, 1e-6)):
        together = make_model()
        if more.get("groups") == "first layer":
            more = {"groups": [list(together[0].parameters())]}
        if rank != 0:
            with torch.no_grad():
                together[0].weight.zero_()
        hvd.broadcast_parameters(together.state_dict(), root_rank=0)
        wrapped = hvd.DistributedOptimizer(torch.optim.Adam(together.parameters(), lr=0.01), together.named_parameters(), **more)
        assert isinstance(wrapped, torch.optim.Adam)
        train(together, wrapped, inputs[rank::size], targets[rank::size], parts=parts)
        for one, other in zip(alone.parameters(), together.parameters()):
            assert torch.allclose(one, other, atol=tolerance), (rank, more, one, other)
        digests = hvd.allgather_object([parameter.tolist() for parameter in together.parameters()])
        assert all(digest == digests[0] for digest in digests)
    # A scheduler that was created before DistributedOptimizer, and has therefore wrapped the plain optimizer's step.
    model = make_model()
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(plain, 1)
    train(model, hvd.DistributedOptimizer(plain), inputs[rank::size], targets[rank::size], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the scheduler warns because the optimizer's step is no longer the scheduler's wrapper
        scheduler.step()
    digests = hvd.allgather_object(model[0].weight.tolist())
    assert all(digest == digests[0] for digest in digests)


def groups():
    """Ranks with different orders of the parameters form the same groups, and need no message from another rank for this."""
    rank, size = hvd.rank(), hvd.size()
    model = make_model()
    named = list(model.named_parameters())[::-1 if rank % 2 else 1]
    if rank == 0:  # the other ranks create their optimizers only when this rank has its own
        wrapped = hvd.DistributedOptimizer(torch.optim.SGD(dict(named).values(), lr=1.0), named, num_groups=2)
    meet("rank 0 has its optimizer")
    if rank != 0:
        wrapped = hvd.DistributedOptimizer(torch.optim.SGD(dict(named).values(), lr=1.0), named, num_groups=2)
    before = model[2].bias.detach().clone()
    (model(torch.ones(1, 10)).sum() * (rank + 1)).backward()
    wrapped.step()
    same(model[2].bias.detach(), before - (size + 1) / 2)


def closures():
    """The gradients that a closure computes are those of all ranks before the step uses them."""
    rank, size = hvd.rank(), hvd.size()
    model = torch.nn.Linear(1, 1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    sgd = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())

    def closure():
        sgd.zero_grad()
        loss = model(torch.ones(1, 1)).sum() * (rank + 1)
        loss.backward()
        return loss

    for _ in range(2):
        before, loss = model.bias.detach().clone(), model(torch.ones(1, 1)).item() * (rank + 1)
        assert abs(sgd.step(closure).item() - loss) < 1e-5
        same(model.bias.detach(), before - (size + 1) / 2)
        sgd.zero_grad()  # would fail if a gradient were still being reduced


def gradients_of_some():
    """Parameters that some ranks do not use, sparse gradients, and clipping."""
    rank, size = hvd.rank(), hvd.size()
    for sparse_as_dense in (False, True):
        model = torch.nn.ModuleList([torch.nn.Embedding(size + 1, 2, sparse=True), torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)])
        hvd.broadcast_parameters(model.state_dict(), 0)
        before = model[0].weight.detach().clone()
        sgd = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters(),
                                       sparse_as_dense=sparse_as_dense)
        with torch.no_grad():
            model[1].weight.fill_(1.0)
            model[2].weight.fill_(1.0)
        # Each rank uses its own row and the last one; only the first rank uses the last layer.
        layer = model[2] if rank == 0 else model[1]
        layer(model[0](torch.tensor([rank, size]))).sum().backward()
        sgd.synchronize()
        gradient = model[0].weight.grad
        assert gradient.is_sparse
        expected = torch.full((size + 1, 2), 1 / size)
        expected[size] = 1.0
        assert torch.allclose(gradient.to_dense(), expected), gradient
        if size > 1:
            assert torch.allclose(model[2].bias.grad, torch.tensor([2 / size]))
        torch.nn.utils.clip_grad_value_([model[1].bias, model[2].bias], 0.1)
        with sgd.skip_synchronize():
            sgd.step()
        assert torch.allclose(model[0].weight, before - expected)


def later_parameters():
    """Parameters that are unfrozen or added to the optimizer later are reduced as the others are."""
    rank, size = hvd.rank(), hvd.size()
    for more in ({}, {"groups": 1}, {"op": hvd.Adasum}) if size != 3 else ({}, {"groups": 1}):
        for is_named in (False, True):
            layers = [torch.nn.Linear(1, 1) for _ in range(3)]
            for layer in layers:
                torch.nn.init.ones_(layer.weight)
                torch.nn.init.zeros_(layer.bias)
            frozen, added, always = layers
            frozen.requires_grad_(False)
            names = torch.nn.Sequential(frozen, always).named_parameters() if is_named else None
            sgd = hvd.DistributedOptimizer(torch.optim.SGD([*frozen.parameters(), *always.parameters()], lr=1.0), names, **more)
            for step in range(3):
                if step == 1:
                    frozen.requires_grad_(True)
                    sgd.add_param_group({"params": added.parameters()})
                before = [layer.bias.item() for layer in layers]
                sgd.zero_grad()
                (sum(layer(torch.ones(1, 1)) for layer in layers).sum() * (rank + 1)).backward()
                sgd.step()
                # Adasum of equal directions is their average, too.
                moved = [start - layer.bias.item() for start, layer in zip(before, layers)]
                assert moved == [(size + 1) / 2 * (step > 0)] * 2 + [(size + 1) / 2], (rank, more, is_named, step, moved)


def optimizer_errors():
    size = hvd.size()
    model = make_model()
    inputs = torch.ones(4, 10)

    def wrapped(**more):
        return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1),
                                        **{"named_parameters": model.named_parameters(), **more})

    sgd = wrapped()
    model(inputs).sum().backward()
    refuses(AssertionError, "more than backward_passes_per_step times (1)", model(inputs).sum().backward)
    refuses(AssertionError, "before optimizer.step()", sgd.zero_grad)
    sgd.step()
    model(inputs).sum().backward()
    sgd.synchronize()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sgd.step()
    assert "without optimizer.skip_synchronize()" in str(said[0].message)
    names = [("same", parameter) for parameter in model.parameters()]
    refuses(ValueError, "same", wrapped, named_parameters=names)
    refuses(ValueError, "lacks 3", wrapped, named_parameters=list(model.named_parameters())[:1])
    refuses(ValueError, "pairs", wrapped, named_parameters=list(model.parameters()))
    refuses(ValueError, "predivide", wrapped, gradient_predivide_factor=2.0, op=hvd.Sum)
    refuses(ValueError, "at least 1", wrapped, backward_passes_per_step=0)
    refuses(ValueError, "in only one of them", wrapped, groups=[list(model.parameters())] * 2)
    refuses(ValueError, "torch.optim.LBFGS", hvd.DistributedOptimizer, torch.optim.LBFGS(model.parameters()))
    # A deleted optimizer does nothing.
    del sgd
    for _ in range(2):
        model(inputs).sum().backward()
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [float(size)])


def adasum_of(vectors):
    """Adasum, computed from its definition, two vectors at a time, in float64."""
    vectors = [vector.double() for vector in vectors]
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2])
        vectors = [sum(one * (1 - product / (2 * one.norm()**2) if one.norm() > 0 else 1) for one in pair)
                   for pair, product in ((pair, (pair[0] * pair[1]).sum()) for pair in pairs)]
    return vectors[0]


def close_to(got, expected, tolerance):
    error = (got.double() - expected).norm() / max(float(expected.norm()), 1e-300)
    assert error <= tolerance, (hvd.rank(), float(error))


def adasum():
    rank, size = hvd.rank(), hvd.size()
    torch.manual_seed(7)
    for dtype, tolerance in ((torch.float16, 1e-3), (torch.float32, 1e-6), (torch.float64, 1e-13)):
        for shape in ((1,), (3,), (size + 1, 5), (2, 70_001)):
            all_of_them = [torch.randn(shape).to(dtype) for _ in range(size)]
            mine = all_of_them[rank].clone()
            got = hvd.allreduce(mine, op=hvd.Adasum)
            same(mine, all_of_them[rank])
            close_to(got, adasum_of(all_of_them), tolerance)
            hvd.allreduce_(mine, op=hvd.Adasum)
            same(mine, got)
            same(hvd.broadcast(got, 0), got)                       # the same bits on all ranks
    basis = torch.linalg.qr(torch.randn(1000, size, dtype=torch.float64))[0].T
    close_to(hvd.allreduce(basis[rank].contiguous(), op=hvd.Adasum), basis.sum(0), 1e-12)                 # orthogonal: the sum
    parallel = basis[0][None] * torch.arange(1, size + 1, dtype=torch.float64)[:, None]
    close_to(hvd.allreduce(parallel[rank].clone(), op=hvd.Adasum), parallel.mean(0), 1e-12)               # parallel: the mean
    for scales in ([0.0] * size, [1.0] + [0.0] * (size - 1), [(-1.0)**index for index in range(size)],
                   [10.0**(12 * index - 20) for index in range(size)]):
        vectors = [basis[index // 2].float() * scale for index, scale in enumerate(scales)]
        close_to(hvd.allreduce(vectors[rank].clone(), op=hvd.Adasum), adasum_of(vectors), 1e-6)
    assert hvd.allreduce(torch.ones(0), op=hvd.Adasum).shape == (0,)
    same(hvd.allreduce(torch.full((5,), float(rank == 0)), op=hvd.Adasum, prescale_factor=2.0, postscale_factor=3.0), [6.0] * 5)
    # Each tensor of a group is combined separately; operations may begin in a different order on each rank.
    group = [[torch.randn(4, generator=torch.Generator().manual_seed(10 * index + one)) for one in range(size)] for index in range(3)]
    for got, vectors in zip(hvd.grouped_allreduce([vectors[rank] for vectors in group], op=hvd.Adasum), group):
        close_to(got, adasum_of(vectors), 1e-6)
    order = [0, 1, 2] if rank % 2 == 0 else [2, 0, 1]
    handles = {index: hvd.allreduce_async(group[index][rank], name=f"a{index}", op=hvd.Adasum) for index in order}
    for index in reversed(order):
        close_to(hvd.synchronize(handles[index]), adasum_of(group[index]), 1e-6)
    refuses(hvd.HorovodInternalError, "for different operations", hvd.allreduce, torch.ones(2 + rank % 2), op=hvd.Adasum)
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [float(size)])


def adasum_optimizer():
    """Compares the Adasum optimizer with one process that trains a copy of the model per rank and applies the Adasum of their steps."""
    rank, size = hvd.rank(), hvd.size()
    inputs, targets = torch.randn(size, 6, 10, generator=torch.Generator().manual_seed(1)), torch.ones(size, 6, 3)
    for kind, options in ((torch.optim.SGD, {"momentum": 0.5}), (torch.optim.Adam, {})):
        ours, alone = make_model(), [make_model() for _ in range(size)]
        optimizer = hvd.DistributedOptimizer(kind(ours.parameters(), lr=0.1, **options), ours.named_parameters(), op=hvd.Adasum)
        optimizers = [kind(model.parameters(), lr=0.1, **options) for model in alone]
        for _ in range(4):
            train(ours, optimizer, inputs[rank], targets[rank], steps=1)
            before = [parameter.detach().clone() for parameter in alone[0].parameters()]
            for one in range(size):
                train(alone[one], optimizers[one], inputs[one], targets[one], steps=1)
            for parameters, start in zip(zip(*(model.parameters() for model in alone)), before):
                step = adasum_of([parameter.detach() - start for parameter in parameters]).float()
                for parameter in parameters:
                    parameter.data.copy_(start + step)
        for got, expected in zip(ours.parameters(), alone[0].parameters()):
            close_to(got.detach(), expected.detach().double(), 1e-5)
            same(hvd.broadcast(got.detach(), 0), got.detach())
        assert type(optimizer).__name__ == kind.__name__
        if size > 1:
            refuses(AssertionError, "reduces the steps", optimizer.skip_synchronize)
        optimizer.synchronize()
        loss = optimizer.step(lambda: torch.tensor(3.0))
        assert loss == 3.0
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)


def adasum_of_three():
    assert hvd.size() == 3
    refuses(NotImplementedError, "Adasum needs 2, 4, 8, ... ranks, but there are 3", hvd.allreduce, torch.ones(1), op=hvd.Adasum)
    refuses(NotImplementedError, "Adasum needs 2, 4, 8, ... ranks, but there are 3", hvd.DistributedOptimizer,
            torch.optim.SGD(make_model().parameters(), lr=0.1), op=hvd.Adasum)
    two = hvd.add_process_set([0, 2])
    if two.included():
        same(hvd.allreduce(torch.full((3,), 1.0 + hvd.rank()), op=hvd.Adasum, process_set=two), [2.0] * 3)


def environment():
    """HOROVOD_* variables match the ranks and sizes, and init() does not change those that the launcher set."""
    for kind, (rank, size) in {"": (hvd.rank(), hvd.size()), "LOCAL_": (hvd.local_rank(), hvd.local_size()),
                               "CROSS_": (hvd.cross_rank(), hvd.cross_size())}.items():
        assert (os.environ[f"HOROVOD_{kind}RANK"], os.environ[f"HOROVOD_{kind}SIZE"]) == (str(rank), str(size)), kind
        if BEFORE:
            assert (BEFORE[f"HOROVOD_{kind}RANK"], BEFORE[f"HOROVOD_{kind}SIZE"]) == (str(rank), str(size)), (kind, BEFORE)
    same(hvd.allgather(torch.tensor([hvd.rank()])), torch.arange(hvd.size()))


def state():
    """Broadcasts an optimizer's state from a rank that has one to ranks without one."""
    rank, size = hvd.rank(), hvd.size()
    for kind, options in ((torch.optim.Adam, {"betas": (0.5, 0.25)}), (torch.optim.SGD, {"momentum": 0.5}),
                          (torch.optim.SGD, {})):
        model = make_model()
        plain = kind(model.parameters(), lr=0.5 if rank == 0 else 0.25, **(options if rank == 0 else {}))
        if rank == 0:
            train(model, plain, torch.ones(2, 10), torch.zeros(2, 3))
        wrapped = hvd.DistributedOptimizer(plain)
        hvd.broadcast_optimizer_state(wrapped, root_rank=0)
        assert wrapped.param_groups[0]["lr"] == 0.5
        assert all(wrapped.param_groups[0][name] == value for name, value in options.items())
        states = hvd.allgather_object([{name: value.tolist() if torch.is_tensor(value) else value for name, value in one.items()}
                                       for one in wrapped.state_dict()["state"].values()])
        assert all(one == states[0] for one in states) and len(states) == size
    torch.nn.init.constant_(model[0].weight, rank)
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=size - 1)
    hvd.broadcast_parameters(list(model.parameters()), root_rank=size - 1)
    weights = hvd.allgather_object(model[0].weight.tolist())
    assert all(one == weights[0] for one in weights) and weights[0][0][0] == size - 1


def process_sets():
    rank, size = hvd.rank(), hvd.size()
    assert hvd.global_process_set.ranks == list(range(size)) and hvd.global_process_set.size() == size
    even = hvd.add_process_set(list(range(0, size, 2)))
    last = hvd.ProcessSet([size - 1, 1])
    assert last.size() is None and last.rank() is None
    hvd.add_process_set(last)
    refuses(ValueError, "has the same ranks as another", hvd.add_process_set, [1, size - 1])
    refuses(ValueError, "not a subset", hvd.add_process_set, [size])
    for made in (even, last):
        if not made.included():
            refuses(ValueError, f"rank {rank} is not a member", hvd.allreduce, torch.ones(1), process_set=made)
            continue
        assert made.ranks[made.rank()] == rank
        for _ in range(2):
            same(hvd.allreduce(torch.tensor([1 << rank]), op=hvd.Sum, process_set=made),
                 [sum(1 << other for other in made.ranks)])
            same(hvd.allgather(torch.tensor([rank]), process_set=made), made.ranks)
            same(hvd.broadcast(torch.tensor([rank]), made.ranks[-1], process_set=made), made.ranks[-1:])
            same(hvd.alltoall(torch.full((made.size(),), rank), process_set=made), made.ranks)
        outsider = next(other for other in range(size) if other not in made.ranks)
        refuses(ValueError, f"rank {outsider} is not a member", hvd.broadcast, torch.ones(1), outsider, process_set=made)
        assert hvd.broadcast_object(rank, made.ranks[-1], process_set=made) == made.ranks[-1]
        hvd.barrier(made)
    # Ranks outside the set have called fewer unnamed operations; later unnamed operations of all ranks still match.
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [float(size)])
    model = make_model()
    wrapped = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters(), process_set=even)
    train(model, wrapped, torch.full((2, 10), float(rank)), torch.zeros(2, 3), 1)
    digests = hvd.allgather_object(model[0].weight.tolist())
    assert all(digests[other] == digests[0] for other in even.ranks)
    assert digests[1] != digests[0]
    assert hvd.remove_process_set(even)
    assert not hvd.remove_process_set(even) and not hvd.remove_process_set(hvd.global_process_set)
    refuses(ValueError, "not part of the job", hvd.allreduce, torch.ones(1), process_set=even)
    hvd.add_process_set(even)
    hvd.remove_process_set(last)


def join():
    """Ranks have different numbers of batches."""
    rank, size = hvd.rank(), hvd.size()
    for batch in range(rank + 1):
        same(hvd.allreduce(torch.ones(2), op=hvd.Sum), [float(size - batch)] * 2)
    if rank == size - 1 and size > 1:
        refuses(hvd.HorovodInternalError, "can no longer take part", hvd.allgather, torch.ones(1))
    assert hvd.join() == size - 1
    # Unnamed operations still match, although ranks have called different numbers of them.
    same(hvd.allgather(torch.tensor([rank])), list(range(size)))


def ranks_that_differ():
    """Calls that differ between ranks fail on all of them, and later calls still work."""
    rank, size = hvd.rank(), hvd.size()
    shapes = [(6,), (2, 3)]
    for what, function, text in (
            ("shape", lambda: hvd.allreduce(torch.ones(shapes[rank % 2])), "float32 [2, 3]"),
            ("size", lambda: hvd.allreduce(torch.ones(rank % 2 + 1)), "of 1 elements of float"),
            ("type", lambda: hvd.allreduce(torch.ones(3).to([torch.float32, torch.int32][rank % 2])), "int32"),
            ("op", lambda: hvd.allreduce(torch.ones(3), op=[hvd.Sum, hvd.Max][rank % 2]), "(max)"),
            ("root", lambda: hvd.broadcast(torch.ones(3), rank % 2), "from rank 1"),
            ("kind", lambda: hvd.broadcast(torch.ones(3).to([torch.float32, torch.int32][rank % 2]), 0), "int32 [3]"),
            ("rows", lambda: hvd.allgather(torch.ones(2, rank % 2 + 1)), "rows of [2]"),
            ("parts", lambda: hvd.alltoall(torch.ones(size, rank % 2 + 1)), "rows of [2]"),
            ("shares", lambda: hvd.reducescatter(torch.ones((size, *shapes[rank % 2]))), ", 2, 3]"),
            ("group", lambda: hvd.grouped_allreduce([torch.ones(2), torch.ones(rank % 2 + 1)]), "float32 [2], float32 [2]")):
        error = refuses(hvd.HorovodInternalError, "for different operations", function)
        assert text in str(error) and len(re.findall(r"on rank \d", str(error))) == 2, (what, error)
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [float(size)])


def refused():
    rank, size = hvd.rank(), hvd.size()
    elsewhere = torch.ones(3, device="meta")
    for function, more in ((hvd.allreduce, ()), (hvd.allgather, ()), (hvd.broadcast, (0,)), (hvd.alltoall, ()),
                           (hvd.reducescatter, ())):
        refuses(ValueError, "on meta; give it tensor.cpu()", function, elsewhere, *more)
    refuses(ValueError, "int16 cannot be reduced", hvd.allreduce, torch.ones(1, dtype=torch.int16))
    refuses(NotImplementedError, "Adasum is only for allreduce", hvd.reducescatter, torch.ones(2), op=hvd.Adasum)
    refuses(ValueError, "Adasum takes float16, float32, float64, not int32", hvd.allreduce, torch.ones(1, dtype=torch.int32),
            op=hvd.Adasum)
    refuses(RuntimeError, "is a worker of a job already", horovod_run, train, np=4)
    refuses(TypeError, "no argument 'nodes'", horovod_run, train, nodes=4)
    refuses(ImportError, "not for mxnet", hvd.check_extension, "horovod.mxnet", "HOROVOD_WITH_MXNET", __file__, "mpi_lib")
    hvd.check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", __file__, "mpi_lib_v2")
    refuses(ValueError, "give only `op`", hvd.allreduce, torch.ones(1), average=True, op=hvd.Sum)
    refuses(ValueError, "no rows", hvd.allgather, torch.tensor(1.0))
    refuses(ValueError, "cannot be divided equally", hvd.alltoall, torch.ones(size + 1))
    refuses(ValueError, f"are of {size} rows, but there are 0", hvd.alltoall, torch.ones(0), [1] * size)
    refuses(ValueError, "splits must be integers", hvd.alltoall, torch.ones(size), torch.ones(size))
    refuses(ValueError, f"rank {size} is not a member", hvd.broadcast, torch.ones(1), size)
    refuses(RuntimeError, "before hvd.init", hvd.start_timeline, "x.json")
    refuses(ValueError, "is not part of the job", hvd.DistributedOptimizer, torch.optim.SGD(make_model().parameters(), lr=0.1),
            process_set=hvd.ProcessSet([0]))
    assert hvd.grouped_allreduce([]) == []
    refuses(ValueError, "LBFGS", hvd.broadcast_optimizer_state, torch.optim.LBFGS(make_model().parameters()), 0)
    for function in (hvd.allreduce_async, hvd.allgather_async):
        if rank == 0:
            handle = function(torch.ones(3), name="twice")
            error = refuses(ValueError, "twice' is already under way", function, torch.ones(3), name="twice")
            assert ("named_parameters" in str(error)) == (function is hvd.allreduce_async), error
            meet(function.__name__)
        else:
            meet(function.__name__)
            handle = function(torch.ones(3), name="twice")
        hvd.synchronize(handle)
        hvd.synchronize(function(torch.ones(3), name="twice"))


def batch_norm():
    """SyncBatchNorm normalizes as a single process with the batches of all ranks would."""
    rank, size = hvd.rank(), hvd.size()
    torch.manual_seed(3)
    whole = torch.randn(2 * size, 4, 3) * 5 + 100
    for more in ({}, {"momentum": None}, {"affine": False}):
        alone, together = torch.nn.BatchNorm1d(4, **more), hvd.SyncBatchNorm(4, **more)
        inputs, mine = whole.clone().requires_grad_(), whole[2 * rank:2 * rank + 2].clone().requires_grad_()
        for _ in range(2):
            expected, got = alone(inputs), together(mine)
        (expected ** 3).sum().backward()
        (got ** 3).sum().backward()
        assert torch.allclose(got, expected[2 * rank:2 * rank + 2], atol=1e-4)
        assert torch.allclose(mine.grad, inputs.grad[2 * rank:2 * rank + 2], atol=1e-3), (mine.grad, inputs.grad)
        assert torch.allclose(together.running_mean, alone.running_mean, rtol=1e-5)
        assert torch.allclose(together.running_var, alone.running_var, rtol=1e-4)
        if more.get("affine", True):
            assert torch.allclose(hvd.allreduce(together.weight.grad, op=hvd.Sum), alone.weight.grad, atol=1e-2)
        assert torch.allclose(together.eval()(mine), alone.eval()(inputs)[2 * rank:2 * rank + 2], atol=1e-4)
    # More rows than a half-precision number can count.
    many = torch.randn(70_000, 2).bfloat16().requires_grad_()
    got = hvd.SyncBatchNorm(2)(many)
    got.float().pow(2).sum().backward()
    assert got.dtype == many.grad.dtype == torch.bfloat16
    assert abs(float(got.float().mean())) < 0.02 and abs(float(got.float().std()) - 1) < 0.02, got


def again():
    """If one rank shuts Horovod down, it ends on all ranks and can be initialized again."""
    rank, size = hvd.rank(), hvd.size()
    if rank == 0:
        hvd.shutdown()
        assert not hvd.is_initialized()
        refuses(ValueError, "use hvd.init()", hvd.rank)
        refuses(ValueError, "use hvd.init()", hvd.allreduce, torch.ones(1))
    else:
        refuses(hvd.HorovodInternalError, "rank 0", hvd.allreduce, torch.ones(1))
        hvd.shutdown()
    hvd.init(process_sets=[hvd.ProcessSet([0])] if size > 1 else None)
    assert (hvd.rank(), hvd.size()) == (rank, size)
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [float(size)])


def ended_after_an_error():
    """If the end of one process set fails, the others end all the same."""
    size = hvd.size()
    own = hvd.add_process_set(list(range(size - 1)))
    if own.included():
        close = own._named.close

        def fails():
            close()
            raise RuntimeError("a rank is lost")

        own._named.close = fails
        refuses(RuntimeError, "a rank is lost", hvd.shutdown)
    else:
        hvd.shutdown()
    assert own.process_set_id is None and hvd.global_process_set.process_set_id is None
    hvd.init()
    same(hvd.allreduce(torch.ones(1), op=hvd.Sum), [float(size)])


def killed():
    """Rank 1 dies during training."""
    rank = hvd.rank()
    model = make_model()
    wrapped = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    hvd.allgather(torch.ones(rank))
    try:
        for step in range(1000):
            if rank == 1 and step == 20:
                print(f"killed at {time.time()}", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            train(model, wrapped, torch.ones(8, 10), torch.ones(8, 3), 1)
    except hvd.HorovodInternalError as error:
        known = time.time()
        refuses(hvd.HorovodInternalError, "rank 1", hvd.allgather, torch.ones(rank))
        print(f"rank {rank} knows at {known}: {error}", flush=True)
        (pathlib.Path(os.environ["MEETING"]) / f"knows.{rank}").touch()
        wait_for(lambda: len(list(pathlib.Path(os.environ["MEETING"]).glob("knows.*"))) == hvd.size() - 1)
        os._exit(0)
    sys.exit("no error")


if __name__ == "__main__":
    hvd.init()
    for function in sys.argv[1:]:
        globals()[function]()
        meet(function)
    print("well", flush=True)

"""A rank of torch_sgd_test.py. Runs the function named by its first argument."""
import functools
import sys
import threading

import torch
from torch.nn import Linear, Module, Parameter, ReLU, Sequential

import refusals
import warren.torch
from warren import collectives

torch.set_num_threads(1)
refuses = functools.partial(refusals.refuses, (RuntimeError, ValueError, TypeError))
ACCURACY = 0.9  # on ten digits; guessing would reach 0.1


def world():
    """The job's communicator. In tests that do not call collectives.init(), the first call of warren.torch joins the job."""
    return collectives.world()


def same_on_all_ranks(module):
    row = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()]).numpy()
    rows = world().allgather(row).reshape(world().size, -1)
    return all((other == rows[0]).all() for other in rows)


def make_model():
    return Sequential(Linear(10, 50), ReLU(), Linear(50, 20).to(torch.float32), ReLU(), Linear(20, 3))


def digits():
    """This rank's share of the training digits, and all test digits: noisy copies of ten random pictures of 64 pixels."""
    torch.manual_seed(3)
    pictures = torch.rand(10, 64)
    targets = torch.randint(10, (2000,))
    inputs = pictures[targets] + 0.3 * torch.randn(2000, 64)
    comm = world()
    return inputs[comm.rank:1600:comm.size], targets[comm.rank:1600:comm.size], inputs[1600:], targets[1600:]


def accuracy(model, inputs, targets):
    with torch.no_grad():
        return (model(inputs).argmax(1) == targets).float().mean().item()


def parameters():
    model = make_model()
    warren.torch.synchronize_parameters(model, root=0)  # joins the job
    me, size = world().rank, world().size
    model = Sequential(Linear(2, 3), torch.nn.BatchNorm1d(3), Linear(3, 1).double())
    model[1].running_mean.fill_(me)
    warren.torch.synchronize_parameters(model, root=size - 1)
    assert same_on_all_ranks(model[2]) and same_on_all_ranks(model[0])
    assert model[1].running_mean.tolist() == [size - 1] * 3
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(me)
    warren.torch.synchronize_parameters(model, average=True)
    assert all((parameter == (size - 1) / 2).all() for parameter in model.parameters())
    refuses("float8" if hasattr(torch, "float8_e4m3fn") else "bool", warren.torch.synchronize_parameters,
            Several(torch.zeros(2).to(getattr(torch, "float8_e4m3fn", torch.bool))), average=True)


class Several(Module):
    def __init__(self, *tensors):
        super().__init__()
        for i, tensor in enumerate(tensors):
            setattr(self, f"p{i}", Parameter(tensor, requires_grad=tensor.dtype.is_floating_point))


def gradients():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        module = Several(torch.zeros(3, dtype=dtype), torch.zeros(2, 2, dtype=dtype), torch.zeros(2, dtype=dtype), torch.zeros(0),
                         torch.tensor(1.0))
        warren.torch.synchronize_gradients(module)
        me, size = world().rank, world().size
        assert all(parameter.grad is None for parameter in module.parameters())
        for average, divisor in ((True, size), (False, 1)):
            module.p0.grad = torch.full((3,), me + 1, dtype=dtype)
            module.p1.grad = torch.full((2, 2), 4.0, dtype=dtype).t() if me == size - 1 else None
            module.p4.grad = torch.tensor(float(me))
            memory = module.p0.grad.data_ptr()
            warren.torch.synchronize_gradients(module, average)
            assert module.p0.grad.data_ptr() == memory
            total = torch.tensor(size * (size + 1) // 2 / divisor, dtype=dtype)
            assert (module.p0.grad == total).all(), module.p0.grad
            assert torch.allclose(module.p1.grad.double(), torch.full((2, 2), 4.0 / divisor).double(), rtol=1e-2), module.p1.grad
            assert module.p2.grad is None and module.p3.grad is None
            assert module.p4.grad == size * (size - 1) / 2 / divisor


def training():
    collectives.init([])
    me, size = world().rank, world().size
    torch.manual_seed(1)
    inputs, targets = torch.randn(6, 8 * size, 10), torch.randint(3, (6, 8 * size))
    start = make_model().state_dict()

    def trained(engine, batches, **how):
        model = make_model()
        if me == 0 or isinstance(engine, Alone):  # the other ranks receive the parameters of rank 0
            model.load_state_dict(start)
        state = engine.train(model, torch.nn.CrossEntropyLoss(), batches, max_epochs=3, **how)
        assert (state.t, state.epoch) == (18, 3)
        return model

    alone = trained(Alone(), list(zip(inputs, targets)), lr=0.1)
    mine = list(zip(inputs[:, me::size], targets[:, me::size]))
    together = []
    for how in ({}, {"asynchronous": True}, {"asynchronous": True, "prefetch": True}):
        engine = warren.torch.AllReduceSGDEngine(**how)
        model = trained(engine, lambda: iter(mine), lr=0.1)
        for one, other in zip(alone.parameters(), model.parameters()):
            assert torch.allclose(one, other, rtol=1e-4, atol=1e-6), (one - other).abs().max()
        assert same_on_all_ranks(model), how
        together.append(torch.cat([parameter.reshape(-1) for parameter in model.parameters()]))
    assert torch.equal(together[0], together[1]) and torch.equal(together[0], together[2])
    # A layer that is frozen in the first epoch.
    for how in ({}, {"asynchronous": True}):
        engine = warren.torch.AllReduceSGDEngine(**how)
        model = make_model()
        model[0].requires_grad_(False)
        engine.hooks.on_start_epoch = lambda state: state.network[0].requires_grad_(state.epoch > 0)
        engine.train(model, torch.nn.CrossEntropyLoss(), mine, lr=0.1, max_epochs=2)
        assert same_on_all_ranks(model), how
    # A criterion with parameters, and another optimizer.
    for asynchronous in (False, True):
        criterion = Scaled()
        with torch.no_grad():
            criterion.scale.fill_(me + 1.0)
        model = make_model()
        optimizer = torch.optim.Adam([*model.parameters(), *criterion.parameters()], 0.01)
        engine = warren.torch.AllReduceSGDEngine(asynchronous, average=False)
        engine.train(model, criterion, mine, optimizer=optimizer)
        assert same_on_all_ranks(model) and same_on_all_ranks(criterion) and criterion.scale != 1
    assert threading.active_count() == 1, threading.enumerate()


Alone = warren.torch.SGDEngine


class Scaled(Module):
    def __init__(self):
        super().__init__()
        self.scale = Parameter(torch.tensor(1.0))

    def forward(self, output, target):
        return torch.nn.functional.cross_entropy(output * self.scale, target)


class Branches(Module):
    """Uses its layers in an order that depends on the rank, one of them on rank 0 only, and one on no rank."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Linear(4, 4) for _ in range(4))

    def forward(self, data):
        rank = world().rank
        order = [0, 1] if rank % 2 else [1, 0]
        for layer in order + ([2] if rank == 0 else []):
            data = torch.tanh(self.layers[layer](data))
        return data


def unused():
    collectives.init([])
    found = []
    for asynchronous in (False, True):
        torch.manual_seed(world().rank)
        model = Branches()
        engine = warren.torch.AllReduceSGDEngine(asynchronous)
        seen = []
        engine.hooks.on_backward = lambda state, seen=seen: seen.append([p.grad is None for p in state.network.parameters()])
        engine.train(model, torch.nn.MSELoss(), [(torch.ones(2, 4) * (i + 1), torch.zeros(2, 4)) for i in range(4)],
                     optimizer=torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.1))
        assert seen == [[False] * 6 + [True] * 2] * 4, seen
        assert same_on_all_ranks(model)
        found.append(torch.cat([parameter.reshape(-1) for parameter in model.parameters()]))
    assert torch.equal(*found)


def hooks():
    called = []
    engine = warren.torch.AllReduceSGDEngine()
    for name in engine.hooks.NAMES:
        setattr(engine.hooks, name, lambda state, name=name: called.append(name))
    batches = [(torch.ones(1, 2), torch.zeros(1, 1))] * 2
    model = Linear(2, 1)
    engine.train(model, torch.nn.MSELoss(), batches, lr=0.1, max_epochs=2)
    step = ["on_sample", "on_forward", "on_forward_criterion", "on_backward_criterion", "on_backward", "on_update"]
    assert called == ["on_start"] + (["on_start_epoch"] + 2 * step + ["on_end_epoch"]) * 2 + ["on_end"], called
    del called[:]
    before = model.weight.clone()
    assert engine.test(model, torch.nn.MSELoss(), batches).t == 2
    assert called == ["on_start"] + 2 * ["on_sample", "on_forward", "on_forward_criterion"] + ["on_end"], called
    assert torch.equal(model.weight, before) and model.training
    # Hooks may change the sample.
    def zeros(state):
        state.sample = (torch.zeros(1, 2), torch.zeros(1, 1))
    engine.hooks.on_sample = zeros
    losses = []
    engine.hooks.on_forward_criterion = lambda state: losses.append(state.loss.item())
    engine.test(model, torch.nn.MSELoss(), batches)
    assert abs(losses[0] - model.bias.item() ** 2) < 1e-6
    refusals.refuses(AttributeError, "on_smaple", setattr, engine.hooks, "on_smaple", print)
    refuses("either a learning rate `lr` or an `optimizer`", engine.train, model, torch.nn.MSELoss(), batches)


def prefetch():
    engine = warren.torch.AllReduceSGDEngine(prefetch=True)
    loaded, loaders = [], set()
    next_is_there = threading.Event()

    def batches():
        for i in range(5):
            loaded.append(i)
            loaders.add(threading.current_thread())
            if i > 0:
                next_is_there.set()
            yield torch.ones(1, 2), torch.zeros(1, 1)

    def on_forward(state):
        if state.t < 4:
            assert next_is_there.wait(30), "the next batch is not loaded while this one trains"
            assert len(loaded) <= state.t + 2, loaded
        next_is_there.clear()
        if state.t + 2 < 5 and len(loaded) > state.t + 2:
            next_is_there.set()

    engine.hooks.on_forward = on_forward
    engine.train(Linear(2, 1), torch.nn.MSELoss(), batches, lr=0.1)
    assert loaded == list(range(5)) and threading.main_thread() not in loaders

    def broken():
        yield torch.ones(1, 2), torch.zeros(1, 1)
        raise KeyError("no more disk")

    engine.hooks.on_forward = None
    refusals.refuses(KeyError, "no more disk", engine.train, Linear(2, 1), torch.nn.MSELoss(), broken, lr=0.1)
    assert threading.active_count() == 1, threading.enumerate()


def tensors():
    with warren.torch.ParameterServer(torch.zeros(3, 4), root=0) as server:
        me, size = world().rank, world().size
        parameter = Parameter(torch.full((3, 4), me + 1.0))
        server.send(parameter, scale=2).wait()
        world().barrier()
        got = server.receive().wait()
        assert torch.equal(got, torch.full((3, 4), float(size * (size + 1)))), got
        assert server.receive(parameter).wait() is parameter
        assert torch.equal(parameter, got)
        world().barrier()
        server.send(None, "zero").wait()
        refuses("not of (4, 3)", server.send, torch.ones(4, 3))
        refuses("not float64", server.send, torch.ones(3, 4).double())
        refuses("contiguous", server.receive, torch.ones(4, 3).t())
        refuses("do not support torch.bfloat16; give it tensor.float()", server.send, torch.ones(3, 4).bfloat16())
        refuses("meta", server.send, torch.ones(3, 4, device="meta"))


def schedule():
    """Checks step by step what EASGD and Downpour do to the parameters of two ranks and of the servers."""
    collectives.init([])
    me = world().rank
    # At step 1 the servers hold element 0 of rank 0's parameter and element 1 of rank 1's. Alpha is 0.25; the only update is at step 3.
    at_once = ([0.0, 0.25] if me == 0 else [0.75, 1.0], [0.25, 0.75])
    in_turn = ([0.0, 0.25] if me == 0 else [0.75, 0.9375], [0.25, 0.8125])
    for prefetch, (own, center) in ((0, in_turn), (1, at_once), (2, at_once)):
        module = Several(torch.full((2,), float(me)))
        easgd = warren.torch.EASGD(module, beta=0.5, update_frequency=2, init_delay=1, prefetch=prefetch)
        for step in range(4):
            if step == 3 and me == 1:
                world().barrier()
            easgd.update(step)
            assert module.p0.tolist() == (own if step == 3 else [float(me)] * 2), (prefetch, step, module.p0)
            easgd.settle()
            if step == 3 and me == 0:
                world().barrier()
            world().barrier()
        easgd.pull()
        assert module.p0.tolist() == center, (prefetch, module.p0)
        easgd.close()
    module = Several(torch.zeros(2))
    downpour = warren.torch.Downpour(module, lr=0.5, send_frequency=2, update_frequency=4, init_delay=0)
    seen = []
    for step in range(5):
        module.p0.grad = torch.full((2,), 1.0 + me)
        downpour.update(step)
        downpour.settle()
        seen.append(module.p0.tolist())
        world().barrier()
        if step == 1:
            assert downpour._rows[0].server.receive().wait().tolist() == [-3.0] * 2
        world().barrier()
    assert seen == [[0.0] * 2] * 4 + [[-6.0] * 2], seen
    downpour.close()
    refuses("expected one from 1 on", warren.torch.EASGD, module, update_frequency=0)
    late = warren.torch.EASGD(module, init_delay=3)
    refuses("EASGD.update: step 5 is the first one, but the servers are created at step 3", late.update, 5)
    late.close()
    refuses("either a learning rate", warren.torch.Downpour, module)


def train_digits(make_update, lr, momentum, steps=150):
    collectives.init([])
    inputs, targets, test_inputs, test_targets = digits()
    torch.manual_seed(5)
    model = Sequential(Linear(64, 32), ReLU(), Linear(32, 10))
    update = make_update(model)
    optimizer = torch.optim.SGD(model.parameters(), lr, momentum, nesterov=momentum > 0)
    batches = torch.Generator().manual_seed(world().rank)
    for step in range(steps + 20 * world().rank):  # ranks take different numbers of steps
        chosen = torch.randint(len(inputs), (32,), generator=batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[chosen]), targets[chosen]).backward()
        update.update(step)
        optimizer.step()
    update.settle()
    world().barrier()
    own = accuracy(model, test_inputs, test_targets)
    update.pull()
    center = accuracy(model, test_inputs, test_targets)
    assert same_on_all_ranks(model)
    update.close()
    assert own >= ACCURACY and center >= ACCURACY, (own, center)


def downpour():
    train_digits(lambda model: warren.torch.Downpour(model, lr=0.1, update_frequency=2, init_delay=10, prefetch=1),
                 lr=0.1, momentum=0)


def easgd():
    train_digits(lambda model: warren.torch.EASGD(model, beta=0.9, update_frequency=5, init_delay=10, prefetch=2),
                 lr=0.05, momentum=0.9)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("well", flush=True)

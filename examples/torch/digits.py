"""Trains a network that recognizes digits on all workers, in one of TorchMPI's four modes.

    dmlc-submit --num-workers 2 python examples/torch/digits.py --mode allreduce
    dmlc-submit --num-workers 2 python examples/torch/digits.py --mode allreduce-async
    dmlc-submit --num-workers 2 python examples/torch/digits.py --mode downpour
    dmlc-submit --num-workers 2 python examples/torch/digits.py --mode easgd

Each worker has its share of scikit-learn's digits: 1,797 pictures of 8 by 8 pixels, 360 of which are the test set.
"""
import argparse
import sys

import torch
from torch.nn import CrossEntropyLoss, Linear, ReLU, Sequential

import warren.torch
from warren import collectives

try:
    from sklearn.datasets import load_digits
except ImportError:
    sys.exit("digits.py needs the digits data set of scikit-learn: apt-get install python3-sklearn, or pip install scikit-learn")

BATCH = 32
NUM_TEST = 360


def digits(rank, size):
    """Returns (inputs, targets) of this worker's training share, and of the test set."""
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    inputs = torch.tensor(data.data, dtype=torch.float32)[order] / 16
    targets = torch.tensor(data.target)[order]
    # Equal shares: with allreduce, all workers need the same number of batches.
    last = NUM_TEST + (len(order) - NUM_TEST) // size * size
    mine = slice(NUM_TEST + rank, last, size)
    return (inputs[mine], targets[mine]), (inputs[:NUM_TEST], targets[:NUM_TEST])


def batches_of(inputs, targets, seed):
    """Returns a function that yields an epoch's batches, in a new order each time."""
    generator = torch.Generator().manual_seed(seed)

    def batches():
        for chosen in torch.randperm(len(inputs), generator=generator).split(BATCH):
            yield inputs[chosen], targets[chosen]

    return batches


def prepared(options, model):
    """Returns the engine, the optimizer, and the object that exchanges parameters with the servers (None in modes without servers)."""
    if options.mode.startswith("allreduce"):
        engine = warren.torch.AllReduceSGDEngine(asynchronous=options.mode == "allreduce-async", prefetch=True)
        return engine, torch.optim.SGD(model.parameters(), options.lr, momentum=0.9), None
    engine = warren.torch.SGDEngine(prefetch=True)
    how = {"update_frequency": options.tau, "init_delay": options.init_delay, "prefetch": options.prefetch}
    if options.mode == "downpour":
        update = warren.torch.Downpour(model, lr=options.lr, **how)
        optimizer = torch.optim.SGD(model.parameters(), options.lr)
    else:
        update = warren.torch.EASGD(model, beta=options.beta, **how)
        optimizer = torch.optim.SGD(model.parameters(), options.lr, momentum=0.9, nesterov=True)
    engine.hooks.on_backward = lambda state: update.update(state.t)
    return engine, optimizer, update


def accuracy(engine, model, inputs, targets):
    right = []
    engine.hooks.on_forward = lambda state: right.append((state.output.argmax(1) == state.sample[1]).float().mean().item())
    engine.test(model, CrossEntropyLoss(), [(inputs, targets)])
    engine.hooks.on_forward = None
    return right[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("allreduce", "allreduce-async", "downpour", "easgd"), default="allreduce")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--tau", type=int, default=5, help="steps between exchanges with the servers (downpour, easgd)")
    parser.add_argument("--init-delay", type=int, default=20, help="steps before the first exchange (downpour, easgd)")
    parser.add_argument("--prefetch", type=int, default=2, help="steps from requesting the parameters to using them (downpour, easgd)")
    parser.add_argument("--beta", type=float, default=0.9, help="elasticity (easgd)")
    options = parser.parse_args()

    with collectives.context() as world:
        torch.manual_seed(1)
        model = Sequential(Linear(64, 64), ReLU(), Linear(64, 10))
        warren.torch.synchronize_parameters(model)
        train, test = digits(world.rank, world.size)
        engine, optimizer, update = prepared(options, model)
        batches = batches_of(*train, seed=world.rank)
        engine.train(model, CrossEntropyLoss(), batches, optimizer=optimizer, max_epochs=options.epochs)
        if update is not None:
            update.settle()
            world.barrier()
            update.pull()  # all workers end with the servers' parameters
            update.close()
        if world.rank == 0:
            print(f"{options.mode}, {world.size} workers: {100 * accuracy(engine, model, *test):.1f} % of the test digits")


if __name__ == "__main__":
    main()

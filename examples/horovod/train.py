"""Trains a digit classifier on several ranks with Horovod's API.

    dmlc-submit --num-workers 3 python3 train.py
    python3 train.py                                    # alone

Only the lines with `hvd` concern several ranks. With `import horovod.torch as hvd` instead of the first such line, this is a Horovod script, which
runs here with `python3 -m warren.compat train.py`.
"""
import argparse

import numpy as np
import torch
from torch import nn

import warren.horovod.torch as hvd


def load_digits():
    """Returns images of 8 x 8 pixels and their labels: scikit-learn's digits, or synthetic data if it is not installed."""
    try:
        from sklearn import datasets  # pylint: disable=import-outside-toplevel
        images, labels = datasets.load_digits(return_X_y=True)
        return images.astype("float32") / 16, labels
    except ImportError:
        generator = np.random.default_rng(0)
        labels = generator.integers(0, 10, 1800)
        ideals = generator.random((10, 64))
        return (ideals[labels] + 0.3 * generator.standard_normal((1800, 64))).astype("float32"), labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--lr", type=float, default=0.02, help="for one rank")
    options = parser.parse_args()

    hvd.init()
    torch.manual_seed(hvd.rank())
    torch.set_num_threads(1)

    images, labels = (torch.from_numpy(array) for array in load_digits())
    held_out = len(images) // 5
    train_set = torch.utils.data.TensorDataset(images[held_out:], labels[held_out:])
    sampler = torch.utils.data.DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank())
    loader = torch.utils.data.DataLoader(train_set, options.batch_size, sampler=sampler)

    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    # All ranks together process a batch that is hvd.size() times as large, so the learning rate is multiplied by the same factor.
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr * hvd.size(), momentum=0.9)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for batch, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), targets)
            loss.backward()  # each gradient is sent as soon as it is ready
            optimizer.step()
        mean = hvd.allreduce(loss.detach(), name="loss")
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {mean.item():.4f}", flush=True)

    # Each rank evaluates its share of the held-out images.
    share = slice(hvd.rank(), held_out, hvd.size())
    right = (model(images[share]).argmax(1) == labels[share]).sum()
    right = hvd.allreduce(right, name="right", op=hvd.Sum)
    if hvd.rank() == 0:
        print(f"{right.item()} of {held_out} are right ({right.item() / held_out:.1%}), by {hvd.size()} ranks", flush=True)


if __name__ == "__main__":
    main()

"""Trains a network that recognizes digits with DistributedDataParallel over the backend "warren".

    dmlc-submit --num-workers 2 python examples/torch/data_parallel.py      # or torchrun --nproc-per-node 2, mpirun -np 2, srun -n 2

The launcher provides the ranks and addresses that other backends must be given. `--backend gloo` runs PyTorch's own backend for comparison.
"""
import argparse
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import warren.torch  # noqa: F401  pylint: disable=unused-import

try:
    from sklearn.datasets import load_digits
except ImportError:
    sys.exit("data_parallel.py needs the digits data set of scikit-learn: apt-get install python3-sklearn, or pip install scikit-learn")

BATCH, NUM_TEST = 32, 360


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="warren")
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()

    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    inputs, targets = torch.tensor(digits.data, dtype=torch.float32)[order] / 16, torch.tensor(digits.target)[order]
    last = NUM_TEST + (len(order) - NUM_TEST) // size * size  # gives all ranks equal shares
    own_inputs, own_targets = inputs[NUM_TEST + rank:last:size], targets[NUM_TEST + rank:last:size]

    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    begin = time.perf_counter()
    for _ in range(options.epochs):
        for batch in torch.randperm(len(own_inputs)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(own_inputs[batch]), own_targets[batch]).backward()
            optimizer.step()
    seconds = time.perf_counter() - begin
    if rank == 0:
        right = (model.module(inputs[:NUM_TEST]).argmax(1) == targets[:NUM_TEST]).float().mean().item()
        print(f"{options.backend}, {size} ranks: {100 * right:.1f} % of the test digits, after {seconds:.2f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
